"""Nodes that were asked to end and take their time: clients go on meanwhile, so nobody waits for them here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.hosts import NodeProcess, NodeState
from nemesis.cluster import Evidence
from workloads.client import Clock

#: How long a node may take to end by itself; how often it is looked whether it has.
LEAVE_LIMIT_US: Final = 30_000_000
LOOK_EVERY_US: Final = 20_000


class Leaving:
    """Which nodes are on their way out, and their return when they have ended.

    ``process_of`` gives a node's newest process, ``start`` starts a node again and observes it.
    """

    def __init__(
        self, process_of: Callable[[int], NodeProcess], start: Callable[[int], Evidence], clock: Clock
    ) -> None:
        self._process_of = process_of
        self._start = start
        self._clock = clock
        self._leaving: set[int] = set()
        self._awaited: set[int] = set()

    def __contains__(self, node: object) -> bool:
        return node in self._leaving

    def ask(self, node: int) -> Evidence:
        """Ask a node to end, once. Evidence: ``pid`` and ``signal``; nothing of one that is frozen or dead."""
        if node in self._leaving or self._process_of(node).state() is not NodeState.RUNNING:
            return {}
        self._leaving.add(node)
        return self._process_of(node).terminate()

    def bring_back(self, node: int) -> Evidence:
        """Start a node that was asked to end, now or as soon as it has ended.

        Evidence: how it ended (``exit``) and the ``state`` of its new process, or ``"state": "ending"``.
        """
        if node in self._awaited:
            return {}
        ended = self._process_of(node).exit()
        if ended is not None:
            self._leaving.discard(node)
            return {"exit": ended, **self._start(node)}
        self._awaited.add(node)
        self._await_end(node, self._clock.now_us() + LEAVE_LIMIT_US)
        return {"state": "ending"}

    def _await_end(self, node: int, until_us: int) -> None:
        """Look again and again; a node that will not end is killed, as every operator's tool does at last."""
        now_us, process = self._clock.now_us(), self._process_of(node)
        if now_us > until_us:
            process.kill()
        if process.exit() is None:
            self._clock.call_at(now_us + LOOK_EVERY_US, lambda: self._await_end(node, until_us))
            return
        self._leaving.discard(node)
        self._awaited.discard(node)
        self._start(node)

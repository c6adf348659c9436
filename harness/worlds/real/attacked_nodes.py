"""Faults on the nodes' processes and on the links between them, with what was seen of them.

Nodes that were asked to end take their time: clients go on meanwhile, so nobody waits for them here.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from harness.hosts import Address, NodeState
from harness.records.journal import Journal
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import Viewer
from nemesis.cluster import ClusterView, Link
from nemesis.evidence import Evidence
from workloads import Clock

#: How long a node may take to end by itself; how often it is looked whether it has.
SHUTDOWN_LIMIT_US: Final = 30_000_000
LOOK_EVERY_US: Final = 20_000
#: A refusal on this machine takes microseconds; a dropped packet is taken for one after this.
PROBE_LIMIT_S: Final = 0.1
#: How often a restarted node is sent its cuts until it listens, and for how long.
UPDATE_EVERY_US: Final = 5_000
UPDATE_LIMIT_US: Final = 30_000_000


class AttackedNodes:
    """Implements :class:`nemesis.cluster.Processes` and :class:`nemesis.cluster.Links`.

    ``probe`` says what a client meets at an address; ``after_start`` are called with every node that was started again.
    """

    def __init__(
        self,
        nodes: Nodes,
        viewer: Viewer,
        journal: Journal,
        clock: Clock,
        probe: Callable[[Address], str],
    ) -> None:
        self.nodes = nodes
        self._probe = probe
        self._viewer = viewer
        self.journal = journal
        self.clock = clock
        self._ending: set[int] = set()
        self._returning: set[int] = set()
        self.after_start: Final[list[Callable[[int], None]]] = []

    def view(self) -> ClusterView:
        """See :attr:`Target.view`."""
        view = self._viewer.view()
        running = tuple(node for node in view.running if node not in self._ending)
        return msgspec.structs.replace(view, running=running)

    def kill(self, node: int) -> Evidence:
        """See :meth:`Processes.kill`. Evidence: ``exit``, ``pid``, and what a client meets there (``connect``)."""
        self.nodes.crashes.ordered(node, self.clock.now_us())
        evidence = self.nodes.process(node).kill()
        return {**evidence, "connect": self._probe(self.nodes.host.address(node))}

    def stop(self, node: int) -> Evidence:
        """See :meth:`Processes.stop`. Evidence: ``pid`` and ``signal``; nothing of one that is frozen or dead."""
        self.nodes.crashes.ordered(node, self.clock.now_us())
        if node in self._ending or self.nodes.process(node).state() is not NodeState.RUNNING:
            return {}
        self._ending.add(node)
        return self.nodes.process(node).terminate()

    def restart(self, node: int) -> Evidence:
        """See :meth:`Processes.restart`. The process runs when this returns; it is ready some tenths of a second later.

        A node that was asked to end is started now, or as soon as it has ended. Evidence: its ``state``, and of such a
        node how it ended (``exit``), or ``"state": "ending"``.
        """
        if node in self._returning:
            return {}
        if node in self._ending:
            self._returning.add(node)
            return self._return(node, self.clock.now_us() + SHUTDOWN_LIMIT_US)
        return self._start(node) if self.nodes.process(node).state() is NodeState.DEAD else {}

    def pause(self, node: int) -> Evidence:
        """See :meth:`Processes.pause`. Evidence: ``state`` ("T") and ``pid``."""
        return self.nodes.process(node).pause()

    def resume(self, node: int) -> Evidence:
        """See :meth:`Processes.resume`. The node finds the cuts and heals that it missed before anything else."""
        if self.nodes.process(node).state() is not NodeState.PAUSED:
            return {}
        updated = self.nodes.host.links.update(node)
        evidence = self.nodes.process(node).resume()
        return {**evidence, "links_updated": updated()}

    def cut(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.cut`. Evidence: what each end holds back, or packets dropped by link."""
        return self.nodes.host.links.cut(self.nodes.single_links(links), self._listening())

    def heal(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.heal`. Evidence: as of :meth:`cut`, counted until now."""
        return self.nodes.host.links.heal(self.nodes.single_links(links), self._listening())

    def _return(self, node: int, until_us: int) -> Evidence:
        """Look again and again; a node that will not end is killed, as every operator's tool does at last."""
        now_us, process = self.clock.now_us(), self.nodes.process(node)
        if now_us > until_us:
            process.kill()
        ended = process.exit()
        if ended is None:

            def again() -> None:
                self._return(node, until_us)

            self.clock.call_at(now_us + LOOK_EVERY_US, again)
            return {"state": "ending"}
        self._ending.discard(node)
        self._returning.discard(node)
        return {"exit": ended, **self._start(node)}

    def _start(self, node: int) -> Evidence:
        self.nodes.crashes.look(self.clock.now_us())  # the new process takes the place of one that may have crashed
        self.nodes.start(node)
        for started in self.after_start:
            started(node)
        self._update_cuts(node, self.clock.now_us() + UPDATE_LIMIT_US)
        return {"state": self.nodes.process(node).state().value}

    def _listening(self) -> tuple[int, ...]:
        return self.nodes.in_state(NodeState.RUNNING, self.nodes.all)

    def _update_cuts(self, node: int, until_us: int) -> None:
        """A restarted node knows the cuts of the moment of its start; it is sent the newest as soon as it listens."""
        updated = self.nodes.host.links.update(node)()
        now_us = self.clock.now_us()
        if not updated and now_us < until_us and self.nodes.process(node).state() is NodeState.RUNNING:
            self.clock.call_at(now_us + UPDATE_EVERY_US, lambda: self._update_cuts(node, until_us))


def connect(address: Address, limit_s: float = PROBE_LIMIT_S) -> str:
    """What a client meets there within ``limit_s`` seconds: ``accepted``, ``refused`` or ``silence``."""
    try:
        socket.create_connection(address, limit_s).close()
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silence"
    return "accepted"

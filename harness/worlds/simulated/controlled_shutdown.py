"""Clean stops in virtual time: a broker hands over what it leads, writes everything to its disk, and ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from harness.reference.core.broker import Broker
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.nodes import Process
from nemesis.cluster import Evidence

#: For how long a broker tries to hand over, as its server does, and how often it looks whether it may leave.
LEAVE_LIMIT_US: Final = 3_000_000
LOOK_EVERY_US: Final = 20_000


class ControlledShutdown:
    """Which brokers are on their way out. ``end`` ends a node's process, ``start`` starts it again."""

    def __init__(self, loop: Loop, end: Callable[[int], Evidence], start: Callable[[int], Evidence]) -> None:
        self._loop = loop
        self._end = end
        self._start = start
        self._leaving: dict[int, bool] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._leaving

    def ask(self, node: int, process: Process) -> Evidence:
        """Let a running broker leave. Evidence: its ``incarnation`` and that it is ``ending``."""
        broker = process.core
        if not isinstance(broker, Broker) or not process.alive or process.frozen or node in self._leaving:
            return {}
        self._leaving[node] = False
        process.do(broker.leave)
        self._look(node, process, broker, self._loop.time_us + LEAVE_LIMIT_US)
        return {"state": "ending", "incarnation": process.incarnation}

    def bring_back(self, node: int) -> Evidence:
        """Start it as soon as it has ended."""
        self._leaving[node] = True
        return {"state": "ending"}

    def _look(self, node: int, process: Process, broker: Broker, until_us: int) -> None:
        if process.alive and not broker.may_leave and self._loop.time_us < until_us:
            look_again = partial(self._look, node, process, broker, until_us)
            self._loop.call_at(self._loop.time_us + LOOK_EVERY_US, look_again)
            return
        if process.alive:
            for replica in broker.replicas.values():
                replica.log.checkpoint_high_watermark(replica.high_watermark)
                replica.log.flush()
        self._end(node)
        if self._leaving.pop(node):
            self._start(node)

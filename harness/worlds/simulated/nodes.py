"""Nodes of the simulated cluster: disks that stay, processes that come and go.

A process is one incarnation of a broker or of the controller around the sans-IO core. Killing it throws the core's
object away and keeps its disk; freezing it queues what reaches it, messages and timers alike, and thawing hands that
over in order at the time of the thaw, as the kernel does for a process under SIGSTOP.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from heapq import heappush
from typing import Any, Final

from harness.broker.core.broker import Broker
from harness.broker.core.effects import Arm, Core, Deliver, Effect, Timer
from harness.broker.core.types import NodeId, TopicPartition
from harness.ground.errors import HarnessError
from harness.ground.observations import Fact
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from nemesis.evidence import ProcessSeen

#: Messages that may wait for a frozen process, as in its sockets' receive buffers: far more than a run's writes during
#: a pause. More is an error of the harness: a message that disappears here would look like a fault that is not in the
#: schedule.
INBOX_MAX: Final = 50_000

#: The time for which a broker tries to hand over, as its server does, and between its looks.
LEAVE_LIMIT_US: Final = 3_000_000
LOOK_EVERY_US: Final = 20_000

Observer = Callable[[int, Fact], None]
#: Is called after each step of a core with its node, the message, timer or peer that caused the step (None for a step
#: of its own), and the effects, which are carried out by then.
Watcher = Callable[[NodeId, object, Sequence[Effect]], None]


class Process:
    """One incarnation of a node: ``alive`` until killed, ``frozen`` in between."""

    __slots__ = (
        "_fire", "_inbox", "_loop", "_network", "_observe", "_outgoing", "_watchers",
        "alive", "core", "frozen", "incarnation", "node", "receive",
    )  # fmt: skip

    def __init__(
        self,
        name: tuple[NodeId, int],
        core: Core,
        loop: Loop,
        network: Network,
        observe: Observer,
        *,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.node, self.incarnation = name
        self.core = core
        self.alive = True
        self.frozen = False
        self._loop = loop
        self._network = network
        self._outgoing = network.outgoing(self.node)
        self._observe = observe
        self._watchers = watchers
        self._inbox: list[tuple[Callable[..., Sequence[Effect]], tuple[Any, ...]]] = []
        self._fire = self._on_timer
        self.receive: Callable[[Any, Any], None] = self._on_message

    def start(self, draw: Callable[[int], int]) -> None:
        """Begin. A timer rings for the first time somewhere in its interval, as ``draw`` says; 0 is at its end.

        Real nodes start at any moment, so that their periodic work has a phase of its own. Nothing else varies:
        Kafka's heartbeats and ISR checks have no jitter.
        """
        now_us = self._loop.time_us
        effects = self.core.start(now_us)
        self._finish(None, [_sooner(effect, now_us, draw) if type(effect) is Arm else effect for effect in effects])

    def do(self, step: Callable[[int], Sequence[Effect]]) -> None:
        """Let the core take a step of its own now."""
        self._finish(None, step(self._loop.time_us))

    def kill(self) -> None:
        """End at once: whatever is still due to this process comes to nothing."""
        self.alive = self.frozen = False
        self._inbox.clear()
        self.receive = _drop

    def freeze(self) -> None:
        """Stop running; sockets stay open and fill."""
        self.frozen = True
        self.receive = self._queue_message

    def resume(self) -> int:
        """Run again: everything that waited is handled now, in order. The answer is how much waited."""
        self.frozen = False
        self.receive = self._on_message
        inbox, self._inbox = self._inbox, []
        for function, arguments in inbox:
            self._finish(arguments[-1], function(self._loop.time_us, *arguments))
        return len(inbox)

    def disconnected(self, peer: int) -> None:
        """The kernel at ``peer`` closed the connection; the controller knows sessions only."""
        core = self.core
        if not isinstance(core, Broker):
            return
        if self.frozen:
            self._queue(core.on_disconnect, (NodeId(peer),))
        elif self.alive:
            self._finish(peer, core.on_disconnect(self._loop.time_us, NodeId(peer)))

    def on_directory_failure(self, partitions: Collection[TopicPartition]) -> None:
        """The broker's next write to a disk fails; a frozen one finds out when it runs again."""
        core = self.core
        if isinstance(core, Broker) and self.frozen:
            self._queue(core.on_directory_failure, (partitions,))
        elif isinstance(core, Broker):
            self._finish(partitions, core.on_directory_failure(self._loop.time_us, partitions))

    def _on_message(self, source: NodeId, message: Any) -> None:
        effects = self.core.on_message(self._loop.time_us, source, message)
        if effects or self._watchers:
            self._finish(message, effects)

    def _on_timer(self, timer: Timer) -> None:
        if self.frozen:
            self._queue(self.core.on_timer, (timer,))
        elif self.alive:
            self._finish(timer, self.core.on_timer(self._loop.time_us, timer))

    def _queue_message(self, source: NodeId, message: Any) -> None:
        self._queue(self.core.on_message, (source, message))

    def _queue(self, function: Callable[..., Sequence[Effect]], arguments: tuple[Any, ...]) -> None:
        if len(self._inbox) >= INBOX_MAX:
            raise HarnessError(
                f"more than {INBOX_MAX} messages and timers wait for the frozen node {self.node} at "
                f"{self._loop.time_us} us; shorten the pauses or lower the rate of writes"
            )
        self._inbox.append((function, arguments))

    def _finish(self, cause: object, effects: Sequence[Effect]) -> None:
        """Carry out the effects of a step, and show it to those who watch."""
        loop, outgoing = self._loop, self._outgoing
        for effect in effects:
            kind = type(effect)
            if kind is Deliver:
                target = effect.target  # type: ignore[union-attr]
                wire = outgoing.get(target) or self._network.wire(self.node, target)
                if wire is not None:
                    wire.send(effect.message)  # type: ignore[union-attr]
            elif kind is Arm:
                time_us = max(effect.at_us, loop.time_us)  # type: ignore[union-attr]
                heappush(loop.heap, (time_us, loop.next_sequence(), self._fire, effect.timer))  # type: ignore[union-attr]
            else:
                self._observe(self.node, effect.fact)  # type: ignore[union-attr]
        for watch in self._watchers:
            watch(self.node, cause, effects)


class SimulatedShutdown:
    """Controlled shutdowns of brokers. ``end`` ends a node's process cleanly, ``start`` starts it again."""

    def __init__(self, loop: Loop, end: Callable[[int], None], start: Callable[[int], ProcessSeen]) -> None:
        self._loop = loop
        self._end = end
        self._start = start
        self._leaving: dict[int, bool] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._leaving

    def ask(self, node: int, process: Process) -> ProcessSeen:
        """Let a running broker leave."""
        broker = process.core
        if not isinstance(broker, Broker) or not process.alive or process.frozen or node in self._leaving:
            return {}
        self._leaving[node] = False
        process.do(broker.leave)
        self._look(node, process, broker, self._loop.time_us + LEAVE_LIMIT_US)
        return {"state": "ending", "incarnation": process.incarnation}

    def bring_back(self, node: int) -> ProcessSeen:
        """Start it as soon as it has ended."""
        self._leaving[node] = True
        return {"state": "ending"}

    def _look(self, node: int, process: Process, broker: Broker, until_us: int) -> None:
        if process.alive and not broker.session.may_leave and self._loop.time_us < until_us:
            look_again = partial(self._look, node, process, broker, until_us)
            self._loop.call_at(self._loop.time_us + LOOK_EVERY_US, look_again)
            return
        self._end(node)
        if self._leaving.pop(node):
            self._start(node)


def _sooner(arm: Arm, now_us: int, draw: Callable[[int], int]) -> Arm:
    return Arm(arm.at_us - draw(max(1, arm.at_us - now_us)), arm.timer)


def _drop(_source: int, _message: Any) -> None:
    """Drop a message to a dead process."""

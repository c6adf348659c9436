"""Watches the simulated world: every change of what a node has and knows, beside the messages that arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.broker.core import messages
from harness.broker.core.types import NONE, PartitionState
from harness.worlds.contract import ReplicaState
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.wires import Wire
from harness.worlds.simulated.world import SimulatedWorld


class SeenMessage(NamedTuple):
    """A message that arrived, at ``time_us`` of the run's clock. Nodes are those of :mod:`nemesis.cluster`."""

    time_us: int
    source: int
    target: int
    message: messages.Message


class SeenReplica(NamedTuple):
    """A replica's state from ``time_us`` on."""

    time_us: int
    node: int
    state: ReplicaState


class SeenPartition(NamedTuple):
    """List what the controller decided of the log partition, from ``time_us`` on."""

    time_us: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]


class Watching:
    """Given to a world before it opens, it collects what happens to ``partition`` after each step of the simulation.

    ``messages`` are all that arrive at a node or at a client.
    """

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._world: SimulatedWorld | None = None
        self._states: dict[int, ReplicaState] = {}
        self._decided: PartitionState | None = None
        self.messages: list[SeenMessage] = []
        self.replicas: list[SeenReplica] = []
        self.partitions: list[SeenPartition] = []

    def __call__(self, world: SimulatedWorld) -> None:
        """Watch ``world`` from now on."""
        self._world = world
        world.clock.on_step = self._step

    def _step(self, function: Callable[[Any], object], argument: Any) -> None:
        if self._world is None:
            return
        now_us, wire = self._world.clock.time_us, getattr(function, "__self__", None)
        # What comes to a cut on its way does not arrive.
        if type(wire) is Wire and wire.cut is None and isinstance(argument, messages.Message):
            self.messages.append(SeenMessage(now_us, wire.source, wire.target, argument))
        self._look(self._world, now_us)

    def _look(self, world: SimulatedWorld, now_us: int) -> None:
        for node in world.cluster.brokers:
            state = world.replicas.state(node, self._partition)
            if state != self._states.get(node):
                self._states[node] = state
                self.replicas.append(SeenReplica(now_us, node, state))
        decided = world.cluster.image().partition(parsed(self._partition))
        if decided is not None and decided is not self._decided:
            self._decided = decided
            leader = None if decided.leader == NONE else decided.leader
            self.partitions.append(SeenPartition(now_us, leader, decided.leader_epoch, decided.isr))

"""Watches the simulated world: every message that arrives, and every change of what a node has and knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.reference.core.messages import Message
from harness.reference.core.types import NONE, PartitionState
from harness.worlds.contract import ReplicaState
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.wires import Wire
from harness.worlds.simulated.world import SimulatedWorld


class SeenMessage(NamedTuple):
    """A message that arrived. Nodes are those of :mod:`nemesis.cluster`; times are the run's clock."""

    sent_us: int
    arrived_us: int
    source: int
    target: int
    message: Message


class SeenReplica(NamedTuple):
    """A replica's state from ``time_us`` on."""

    time_us: int
    node: int
    state: ReplicaState


class SeenPartition(NamedTuple):
    """What the controller decided of the log partition, from ``time_us`` on."""

    time_us: int
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]


class Watching:
    """Given to a world before it opens, it collects what happens to ``partition`` after each step of the simulation."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._world: SimulatedWorld | None = None
        self._sent: dict[tuple[int, int], int] = {}
        self._last_sequence = -1
        self._known: dict[int, ReplicaState] = {}
        self._decided: PartitionState | None = None
        self.messages: list[SeenMessage] = []
        self.replicas: list[SeenReplica] = []
        self.partitions: list[SeenPartition] = []

    def __call__(self, world: SimulatedWorld) -> None:
        """Watch ``world`` from now on."""
        self._world = world
        world.clock.on_step = self._step

    def _step(self, function: Callable[[Any], object], argument: Any) -> None:
        world = self._world
        if world is None:
            return
        wire, now_us = getattr(function, "__self__", None), world.clock.time_us
        if isinstance(wire, Wire) and isinstance(argument, Message):
            sent_us = self._sent.pop((id(wire), id(argument)), now_us)
            if wire.cut is None:  # What comes to a cut on its way does not arrive.
                self.messages.append(SeenMessage(sent_us, now_us, wire.source, wire.target, argument))
        self._find_sends(world, now_us)
        self._look(world, now_us)

    def _find_sends(self, world: SimulatedWorld, now_us: int) -> None:
        """What was put under way in this step stands in the loop's heap, under larger numbers than all before."""
        newest = self._last_sequence
        for _, sequence, function, argument in world.clock.heap:
            if sequence > self._last_sequence:
                newest = max(newest, sequence)
                self._sent[id(getattr(function, "__self__", None)), id(argument)] = now_us
        self._last_sequence = newest

    def _look(self, world: SimulatedWorld, now_us: int) -> None:
        for node in world.cluster.brokers:
            state = world.replicas.state(node, self._partition)
            if state != self._known.get(node):
                self._known[node] = state
                self.replicas.append(SeenReplica(now_us, node, state))
        decided = world.cluster.image().partition(parsed(self._partition))
        if decided is not None and decided is not self._decided:
            self._decided = decided
            leader = None if decided.leader == NONE else decided.leader
            self.partitions.append(SeenPartition(now_us, leader, decided.leader_epoch, decided.isr))

"""Kafka in KRaft mode: how its nodes are formatted and configured, and what its controllers' logs say as they grow."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.hosts import NodeState
from harness.observations import BrokerFenced, BrokerRegistered, ControllerActivated, ControllerStarted
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import MAIN
from harness.worlds.kafka.log_configuration import LEVELS
from harness.worlds.kafka.log_events import LogTail
from harness.worlds.kafka.log_patterns import LogEvent, PartitionChanged, PartitionDescribed
from harness.worlds.kafka.properties import NodePlace, node_properties
from harness.worlds.kafka.storage import BOOTSTRAP, META, format_directory, new_id
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import ClusterImage
from workloads import Settings


class KRaft:
    """Implements :class:`harness.worlds.kafka.distribution.Mode`: controllers of their own keep the metadata."""

    levels = LEVELS

    def __init__(self, settings: Settings, installation: Installation, brokers: int) -> None:
        self._settings = settings
        self._installation = installation
        self._brokers = brokers
        self._cluster = new_id()

    def main(self, node: int) -> str:  # noqa: ARG002 - all nodes alike
        """See :meth:`Mode.main`."""
        return MAIN

    def format(self, data: Path, node: int) -> tuple[Path, ...]:
        """See :meth:`Mode.format`: without, a node refuses to start."""
        if (data / META).exists():
            return ()
        format_directory(self._installation, data, node, self._cluster, elr=self._settings.eligible_leader_replicas)
        return (data / META, data / BOOTSTRAP)

    def properties(self, place: NodePlace) -> dict[str, str]:
        """See :meth:`Mode.properties`."""
        return node_properties(place, self._settings, self._brokers)

    def metadata(self, nodes: Nodes) -> ControllerLogs:
        """See :meth:`Mode.metadata`."""
        return ControllerLogs(nodes)


class ControllerLogs:
    """Implements :class:`harness.worlds.real.view.Metadata`: reads what the controllers log.

    Where all are away, the last view stands. Every controller applies the same changes in the same order, some a
    little later than others, and from the start again after its own restart. So the newest state of a partition is the
    one with the highest partition epoch.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._logs = {node: ControllerLog(nodes.log(node)) for node in nodes.controllers}
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._active = (0, nodes.controllers[0])
        self._starts_again = False

    def image(self) -> ClusterImage:
        """See :meth:`Metadata.image`: as far as one of the controllers has logged it."""
        for node, log in self._logs.items():
            for event in log.news():
                self._learn(node, event, log)
        # What is started again says so a second later, and works later still.
        self._starts_again |= bool(self._nodes.in_state(NodeState.DEAD, (self._active[1],)))
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def controllers(self) -> tuple[int, ...]:
        """See :meth:`Metadata.controllers`."""
        active = self._active[1]
        return (active, *(node for node in self._nodes.controllers if node != active))

    def controller_works(self) -> bool:
        """See :meth:`Metadata.controller_works`."""
        return not self._starts_again

    def _learn(self, node: int, event: LogEvent, log: ControllerLog) -> None:
        match event:
            case BrokerRegistered(broker=broker) | BrokerFenced(broker=broker):
                self._brokers[broker] = BrokerState(broker_epoch=0, fenced=isinstance(event, BrokerFenced))
            case ControllerActivated(epoch=epoch):
                self._active = max(self._active, (epoch, node))
                self._starts_again = False
            case ControllerStarted():
                self._starts_again |= node == self._active[1]
            case PartitionDescribed(partition) | PartitionChanged(partition) if partition in log.partitions:
                state, known = log.partitions[partition], self._partitions.get(partition)
                if known is None or state.partition_epoch >= known.partition_epoch:
                    self._partitions[partition] = state


class ControllerLog:
    """What one controller has logged of ``partitions``."""

    def __init__(self, log: Path) -> None:
        self._tail = LogTail(log)
        self.partitions: dict[str, PartitionState] = {}

    def news(self) -> list[LogEvent]:
        """What it has logged since the last call, which ``partitions`` know already."""
        events = self._tail.events()
        for event in events:
            if isinstance(event, PartitionDescribed):
                self.partitions[event.partition] = state_of(event)
            elif isinstance(event, PartitionChanged) and event.partition in self.partitions:
                new = {name: value for name, value in event._asdict().items() if value is not None and name in _STATE}
                self.partitions[event.partition] = msgspec.structs.replace(self.partitions[event.partition], **new)
        return events


_STATE: Final = frozenset(PartitionState.__struct_fields__)


def state_of(event: PartitionDescribed) -> PartitionState:
    """The state as the controller's metadata have it."""
    return PartitionState(**{name: value for name, value in event._asdict().items() if name in _STATE})

"""The controllers' word about the cluster, read from their logs as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.hosts import Host, NodeState
from harness.observations import BrokerFenced, BrokerRegistered, ControllerActivated, ControllerStarted
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.log_patterns import LogEvent, PartitionChanged, PartitionDescribed, read_line, understand
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.view import ClusterImage, Viewer

_READ_BYTES: Final = 1 << 20


class KafkaViewer(Viewer):
    """Reads what the controllers have logged since the last look. Where all are away, the last view stands.

    Every controller applies the same changes in the same order, some a little later than others, and from the start
    again after its own restart. So the newest state of a partition is the one with the highest partition epoch.
    """

    def __init__(self, host: Host, nodes: Nodes, topic: str) -> None:
        super().__init__(host, nodes, topic)
        self._logs = {node: ControllerLog(nodes.log(node)) for node in nodes.controllers}
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._active = (0, nodes.controllers[0])
        self._starts_again = False

    def image(self) -> ClusterImage:
        """The controllers' metadata, as far as one of them has logged it."""
        for node, log in self._logs.items():
            for event in log.news():
                self._learn(node, event, log)
        # What is started again says so a second later, and works later still.
        self._starts_again |= bool(self._nodes.in_state(NodeState.DEAD, (self._active[1],)))
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def controllers(self) -> tuple[int, ...]:
        """See :meth:`Viewer.controllers`."""
        active = self._active[1]
        return (active, *(node for node in self._nodes.controllers if node != active))

    def controller_active(self) -> bool:
        """See :meth:`Viewer.controller_active`."""
        return super().controller_active() and not self._starts_again

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
    """What one controller has told of ``partitions`` in its log."""

    def __init__(self, log: Path) -> None:
        self._tail = LogTail(log)
        self.partitions: dict[str, PartitionState] = {}

    def news(self) -> list[LogEvent]:
        """What it has told since the last call, after learning it."""
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
    """The state in the words of the controller's metadata."""
    return PartitionState(**{name: value for name, value in event._asdict().items() if name in _STATE})


class LogTail:
    """The whole lines that a node's growing log has gained since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._torn = b""

    def events(self) -> list[LogEvent]:
        """What the new lines say."""
        return [event for text in self.lines() if (line := read_line(text)) and (event := understand(line))]

    def lines(self) -> list[str]:
        """New lines; what follows the last newline is kept for the next look."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                gained = b"".join(iter(lambda: file.read(_READ_BYTES), b""))
        except FileNotFoundError:
            return []
        self._offset += len(gained)
        *whole, self._torn = (self._torn + gained).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

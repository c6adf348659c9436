"""The controllers' word about the cluster, read from their logs as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from harness.hosts.contract import Host, NodeState
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.log_patterns import LogEvent, read_line, understand
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
        self._told = {node: ControllerLog(nodes.log(node)) for node in nodes.controllers}
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._active = (0, nodes.controllers[0])
        self._starts_again = False

    def image(self) -> ClusterImage:
        """The controllers' metadata, as far as one of them has logged it."""
        for node, told in self._told.items():
            for said in told.news():
                self._learn(node, said, told)
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

    def _learn(self, node: int, said: LogEvent, told: ControllerLog) -> None:
        if said.what in {"registered", "fenced"}:
            self._brokers[said.facts["broker"]] = BrokerState(broker_epoch=0, fenced=said.what == "fenced")
        elif said.what == "active-controller":
            self._active = max(self._active, (said.facts["epoch"], node))
            self._starts_again = False
        elif said.what == "controller-starts":
            self._starts_again |= node == self._active[1]
        elif said.partition in told.partitions:
            state, known = told.partitions[said.partition], self._partitions.get(said.partition)
            if known is None or state.partition_epoch >= known.partition_epoch:
                self._partitions[said.partition] = state


class ControllerLog:
    """What one controller has told of ``partitions`` in its log."""

    def __init__(self, log: Path) -> None:
        self._tail = Tail(log)
        self.partitions: dict[str, PartitionState] = {}

    def news(self) -> list[LogEvent]:
        """What it has told since the last call, after learning it."""
        said = [said for text in self._tail.lines() if (line := read_line(text)) and (said := understand(line))]
        for one in said:
            self._learn(one)
        return said

    def _learn(self, said: LogEvent) -> None:
        if said.what == "election" and said.partition is not None:
            self.partitions[said.partition] = msgspec.convert(said.facts, PartitionState)
        elif said.what == "change" and said.partition in self.partitions:
            known: dict[str, Any] = msgspec.structs.asdict(self.partitions[said.partition])
            self.partitions[said.partition] = msgspec.convert(known | said.facts, PartitionState)


class Tail:
    """The whole lines that a growing file has gained since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._torn = b""

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

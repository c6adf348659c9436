"""The controller's word about the cluster, read from its log as it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from harness.hosts.contract import Host
from harness.replica.types import BrokerState, PartitionState
from harness.worlds.kafka.lines import Said, read_line, understand
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.view import ClusterImage, Viewer
from nemesis.contract import CONTROLLER

_READ_BYTES: Final = 1 << 20


class KafkaViewer(Viewer):
    """Reads what the controller has logged since the last look. A controller that is away leaves the last view."""

    def __init__(self, host: Host, nodes: Nodes, topic: str) -> None:
        super().__init__(host, nodes, topic)
        self._tail = Tail(nodes.log(CONTROLLER))
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}

    def image(self) -> ClusterImage:
        """The controller's metadata, as far as it has logged it."""
        for text in self._tail.lines():
            line = read_line(text)
            if line is not None and (said := understand(line)) is not None:
                self._learn(said)
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def _learn(self, said: Said) -> None:
        if said.what in {"registered", "fenced"}:
            self._brokers[said.facts["broker"]] = BrokerState(broker_epoch=0, fenced=said.what == "fenced")
        elif said.what == "election" and said.partition is not None:
            self._partitions[said.partition] = msgspec.convert(said.facts, PartitionState)
        elif said.what == "change" and said.partition in self._partitions:
            known: dict[str, Any] = msgspec.structs.asdict(self._partitions[said.partition])
            self._partitions[said.partition] = msgspec.convert(known | said.facts, PartitionState)


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

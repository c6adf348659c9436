"""A cluster with ZooKeeper: its nodes, and what its brokers tell of the controller's word."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.hosts.contract import Host
from harness.plan import RunSpec
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.log_configuration import TELLERS
from harness.worlds.kafka.log_patterns import LogEvent, read_line, understand
from harness.worlds.kafka.nodes import KafkaNodes
from harness.worlds.kafka.view import Tail
from harness.worlds.kafka.zookeeper_properties import MAIN, broker_properties, zookeeper_properties
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.view import ClusterImage, Viewer
from nemesis.cluster import CONTROLLER

#: Before it leaders tell which in-sync replicas they have written to ZooKeeper among their finest words only.
LOUD_ISR_SINCE: Final = (2, 4, 0)
#: Before it the controller tells brokers of the replicas in no order; only its own log says which is preferred.
ORDERED_SINCE: Final = (0, 11, 0)


class ZooKeeperNodes(KafkaNodes):
    """Brokers, and ZooKeeper in the place of the controller."""

    def __init__(
        self, host: Host, directory: Path, spec: RunSpec, installation: Installation, max_lifetime_s: float
    ) -> None:
        super().__init__(host, directory, spec, installation, max_lifetime_s)
        # Here every broker tells each word of the controller that reaches it, and nobody else does.
        self.tellers = {**TELLERS, "state.change.logger": "TRACE"}
        if installation.version < LOUD_ISR_SINCE:
            self.tellers |= {"kafka.cluster.Partition": "TRACE"}
        if installation.version < ORDERED_SINCE:
            self.tellers |= {"kafka.controller.KafkaController": "INFO"}

    def _main(self, node: int) -> str:
        return MAIN if node == CONTROLLER else super()._main(node)

    def _format(self, node: int, data: Path) -> tuple[Path, ...]:  # noqa: ARG002
        """Nothing: a broker starts on an empty disk."""
        return ()

    def _properties(self, node: int) -> dict[str, str]:
        if node == CONTROLLER:
            return zookeeper_properties(self._host.address(node), self.data(node).name, self._settings)
        return broker_properties(self._place(node), self._settings, len(self.brokers), self._installation.version)


class ZooKeeperViewer(Viewer):
    """Reads what the controller told the brokers, from the brokers' logs; brokers that are cut off have older news.

    The leader of a partition changes its in-sync replicas itself, and the controller hears of it later. Both count as
    versions of one record in ZooKeeper, so the highest version is the newest state.
    """

    def __init__(self, host: Host, nodes: Nodes, topic: str) -> None:
        super().__init__(host, nodes, topic)
        self._tails: Final = [Tail(nodes.log(node)) for node in nodes.brokers]
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._orders: dict[str, tuple[int, ...]] = {}

    def image(self) -> ClusterImage:
        """The metadata, as far as a broker has logged it."""
        for tail in self._tails:
            for text in tail.lines():
                line = read_line(text)
                if line is not None and (said := understand(line)) is not None:
                    self._learn(said)
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def _learn(self, said: LogEvent) -> None:
        if said.what == "registered":
            self._brokers[said.facts["broker"]] = BrokerState(broker_epoch=0, fenced=False)
        if said.partition is None:
            return
        known = self._partitions.get(said.partition)
        if said.what == "assigned":
            self._orders[said.partition] = tuple(said.facts["replicas"])
            state = known
        else:
            state = _news(said, known)
        if state is not None:
            self._partitions[said.partition] = self._ordered(said.partition, state)

    def _ordered(self, partition: str, state: PartitionState) -> PartitionState:
        order = self._orders.get(partition, ())
        return msgspec.structs.replace(state, replicas=order) if set(order) == set(state.replicas) else state


def _news(said: LogEvent, known: PartitionState | None) -> PartitionState | None:
    """The state of a partition after what was said; None if that is no news."""
    if said.what not in {"metadata", "isr"} or (known and said.facts["partition_epoch"] < known.partition_epoch):
        return None
    if said.what == "metadata":
        return msgspec.convert(said.facts, PartitionState)
    changes = {"isr": tuple(said.facts["isr"]), "partition_epoch": said.facts["partition_epoch"]}
    return None if known is None else msgspec.structs.replace(known, **changes)

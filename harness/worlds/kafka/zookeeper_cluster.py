"""A cluster with ZooKeeper: its nodes, and what its brokers tell of the controller's word."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.hosts import Host
from harness.observations import BrokerRegistered, IsrChanged
from harness.plan import RunSpec
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.log_configuration import TELLERS
from harness.worlds.kafka.log_patterns import LogEvent, PartitionDescribed, ReplicasAssigned
from harness.worlds.kafka.nodes import KafkaNodes
from harness.worlds.kafka.view import LogTail, state_of
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
        self._tails: Final = [LogTail(nodes.log(node)) for node in nodes.brokers]
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._orders: dict[str, tuple[int, ...]] = {}

    def image(self) -> ClusterImage:
        """The metadata, as far as a broker has logged it."""
        for tail in self._tails:
            for event in tail.events():
                self._learn(event)
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def _learn(self, event: LogEvent) -> None:
        match event:
            case BrokerRegistered(broker=broker):
                self._brokers[broker] = BrokerState(broker_epoch=0, fenced=False)
            case ReplicasAssigned(partition, replicas):
                self._orders[partition] = replicas
                if partition in self._partitions:
                    self._set(partition, self._partitions[partition])
            case PartitionDescribed(partition):
                if self._is_news(partition, event.partition_epoch):
                    self._set(partition, state_of(event))
            case IsrChanged(partition=partition, isr=isr, partition_epoch=epoch) if partition in self._partitions:
                if isr is not None and epoch is not None and self._is_news(partition, epoch):
                    known = self._partitions[partition]
                    self._set(partition, msgspec.structs.replace(known, isr=isr, partition_epoch=epoch))

    def _is_news(self, partition: str, partition_epoch: int) -> bool:
        known = self._partitions.get(partition)
        return known is None or partition_epoch >= known.partition_epoch

    def _set(self, partition: str, state: PartitionState) -> None:
        order = self._orders.get(partition, ())
        ordered = set(order) == set(state.replicas)
        self._partitions[partition] = msgspec.structs.replace(state, replicas=order) if ordered else state

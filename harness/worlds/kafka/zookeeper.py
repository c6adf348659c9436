"""Kafka with ZooKeeper: its nodes, ZooKeeper among them, and what its brokers log of the controller's word."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from harness.observations import BrokerRegistered, IsrChanged
from harness.reference.core.types import BrokerState, PartitionState
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import MAIN
from harness.worlds.kafka.kraft import state_of
from harness.worlds.kafka.log_configuration import LEVELS
from harness.worlds.kafka.log_events import LogTail
from harness.worlds.kafka.log_patterns import LogEvent, PartitionDescribed, ReplicasAssigned
from harness.worlds.kafka.properties import NodePlace
from harness.worlds.kafka.zookeeper_properties import MAIN as ZOOKEEPER_MAIN
from harness.worlds.kafka.zookeeper_properties import broker_properties, zookeeper_properties
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import ClusterImage
from nemesis.cluster import CONTROLLER
from workloads import Settings

#: Before it leaders log the in-sync replicas that they have written to ZooKeeper at level TRACE only.
LOUD_ISR_SINCE: Final = (2, 4, 0)
#: Before it the controller sends brokers the replicas in no order; only its own log has the preferred one first.
ORDERED_SINCE: Final = (0, 11, 0)


class ZooKeeper:
    """Implements :class:`harness.worlds.kafka.distribution.Mode`: one broker controls, and CONTROLLER is ZooKeeper."""

    def __init__(self, settings: Settings, installation: Installation, brokers: int) -> None:
        self._settings = settings
        self._installation = installation
        self._brokers = brokers
        # Here every broker logs each word of the controller that reaches it, and nobody else does.
        self.levels: Mapping[str, str] = {**LEVELS, "state.change.logger": "TRACE"}
        if installation.version < LOUD_ISR_SINCE:
            self.levels |= {"kafka.cluster.Partition": "TRACE"}
        if installation.version < ORDERED_SINCE:
            self.levels |= {"kafka.controller.KafkaController": "INFO"}

    def main(self, node: int) -> str:
        """See :meth:`Mode.main`."""
        return ZOOKEEPER_MAIN if node == CONTROLLER else MAIN

    def format(self, data: Path, node: int) -> tuple[Path, ...]:  # noqa: ARG002
        """See :meth:`Mode.format`: a broker starts on an empty disk."""
        return ()

    def properties(self, place: NodePlace) -> dict[str, str]:
        """See :meth:`Mode.properties`."""
        if place.node == CONTROLLER:
            return zookeeper_properties(place.address, str(place.data), self._settings)
        return broker_properties(place, self._settings, self._brokers, self._installation.version)

    def metadata(self, nodes: Nodes) -> BrokerLogs:
        """See :meth:`Mode.metadata`."""
        return BrokerLogs(nodes)


class BrokerLogs:
    """Implements :class:`harness.worlds.real.view.Metadata`: reads what the brokers log of the controller.

    Brokers that are cut off have older news.

    The leader of a partition changes its in-sync replicas itself, and the controller hears of it later. Both count as
    versions of one record in ZooKeeper, so the highest version is the newest state.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._tails: Final = [LogTail(nodes.log(node)) for node in nodes.brokers]
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}
        self._orders: dict[str, tuple[int, ...]] = {}

    def image(self) -> ClusterImage:
        """See :meth:`Metadata.image`: as far as a broker has logged it."""
        for tail in self._tails:
            for event in tail.events():
                self._learn(event)
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def controllers(self) -> tuple[int, ...]:
        """See :meth:`Metadata.controllers`: ZooKeeper stands for whichever broker controls."""
        return (CONTROLLER,)

    def controller_works(self) -> bool:
        """See :meth:`Metadata.controller_works`: nothing says otherwise."""
        return True

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

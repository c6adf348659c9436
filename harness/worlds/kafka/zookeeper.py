"""Kafka with ZooKeeper: its nodes, ZooKeeper among them, and what its brokers log of the controller's word.

Before 2.4 brokers take no request for planned changes: they are written into ZooKeeper. The operator's own tools of the
time did nothing else (``kafka-reassign-partitions``, and ``kafka-preferred-replica-election``): they made a node with
the wish, and the controller removed it when it was done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError
from kazoo.handlers.threading import KazooTimeoutError

from harness.errors import HostError
from harness.hosts import Address
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


#: Since when brokers take requests to move leaders and replicas (KIP-183, KIP-455).
ASKED_SINCE: Final = (2, 4, 0)
REASSIGN: Final = "/admin/reassign_partitions"
ELECT: Final = "/admin/preferred_replica_election"
#: One answer of ZooKeeper, which may be frozen; and all that the controller does.
ANSWER_LIMIT_S: Final = 1.5
DONE_LIMIT_S: Final = 4.0
_LOOK_EVERY_S: Final = 0.05
#: Also how long a session with a frozen ZooKeeper takes to end.
_SESSION_S: Final = 2.0


class ZooKeeperAdministration:
    """Implements :class:`harness.worlds.real.leadership.ReassigningOperator`. ``address`` is ZooKeeper's."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:
        """See :meth:`Operator.move_leader`: first in the order of replicas, then elected."""
        order = [broker, *(other for other in replicas if other != broker)]
        refused = self.reassign(partition, order)
        return refused or self._wish(ELECT, _wished(partition), "an election is under way")

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """See :meth:`Operator.reassign`. What is under way cannot be called off."""
        return self._wish(REASSIGN, _wished(partition, replicas=list(replicas)), "its replicas are being reassigned")

    def _wish(self, path: str, wish: Mapping[str, Any], busy: str) -> str:
        """Make the node, and wait until the controller has removed it; ``busy`` is the answer if there is one."""
        deadline = time.monotonic() + DONE_LIMIT_S
        try:
            with _session(self._address()) as client:
                client.create_async(path, json.dumps(wish).encode()).get(timeout=ANSWER_LIMIT_S)
                while client.exists_async(path).get(timeout=ANSWER_LIMIT_S):
                    if time.monotonic() > deadline:
                        raise HostError(f"the controller has not done {path} within {DONE_LIMIT_S:.0f} s")
                    time.sleep(_LOOK_EVERY_S)
        except NodeExistsError:
            return busy
        except (KazooException, KazooTimeoutError) as error:
            raise HostError(f"ZooKeeper does not answer ({str(error) or type(error).__name__})") from error
        return ""


@contextmanager
def _session(address: Address) -> Iterator[KazooClient]:
    client = KazooClient(f"{address.host}:{address.port}", timeout=_SESSION_S)
    try:
        client.start(ANSWER_LIMIT_S)
        yield client
    finally:
        client.stop()
        client.close()


def _wished(partition: str, **more: object) -> dict[str, Any]:
    topic, _, number = partition.rpartition("-")
    return {"version": 1, "partitions": [{"topic": topic, "partition": int(number), **more}]}

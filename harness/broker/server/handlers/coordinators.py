"""Tells clients who coordinates a group, or the transactions of a transactional id: the leader of a log partition.

Both logs are topics of the cluster's own, made the first time anybody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from harness.broker.core import transaction_coordinator
from harness.broker.core.coordinator import log_config
from harness.broker.core.types import (
    NONE,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    ErrorCode,
    Image,
    NodeId,
    TopicConfig,
    TopicPartition,
    serving_partition,
)
from harness.broker.server.codec.wire import Fields
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.handlers.metadata_and_topics import ClusterRequests

#: Topics to which no client writes, and which no producer adds to a transaction by itself.
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
_REPLICATION: Final = 3
#: Log partitions with groups.
OFFSETS_PARTITIONS: Final = 4
#: From this version on, several coordinators are asked for at once.
_SEVERAL: Final = 4


def partition_of(group: str) -> TopicPartition:
    """The log partition of a group; its leader coordinates the group."""
    return TopicPartition(OFFSETS_TOPIC, serving_partition(group, OFFSETS_PARTITIONS))


class _Coordinated(NamedTuple):
    """A kind of coordinator: the log partition that serves a key, and the number of these partitions."""

    partition_of: Callable[[str], TopicPartition]
    partitions: int


#: The numbers that FindCoordinator has for the kinds; others are not offered.
_GROUP: Final = 0
_TRANSACTION: Final = 1
_KINDS: Final[Mapping[int, _Coordinated]] = {
    _GROUP: _Coordinated(partition_of, OFFSETS_PARTITIONS),
    _TRANSACTION: _Coordinated(lambda _: transaction_coordinator.LOG, 1),
}


class Coordinators:
    """Finds coordinators in the image. The core is asked as ``sender``, a number of this broker's own.

    ``defaults`` are the brokers' own of topics.
    """

    def __init__(
        self, sender: NodeId, image: Callable[[], Image], cluster: ClusterRequests, defaults: TopicConfig
    ) -> None:
        self._sender = sender
        self._image = image
        self._cluster = cluster
        self._defaults = defaults
        self._creating: set[str] = set()

    def find(self, call: Call) -> None:
        """FindCoordinator: the leader of the partition that serves the key."""
        request = call.request
        if call.header.version < _SEVERAL:
            call.reply(self._find(request.key_type, request.key))
            return
        keys = request.coordinator_keys
        call.reply({"coordinators": [{"key": key, **self._find(request.key_type, key)} for key in keys]})

    def log_of_group(self, group: str) -> TopicPartition | None:
        """The log partition with the offsets of a group. Where it is missing it is being made: None."""
        kind, image = _KINDS[_GROUP], self._image()
        partition = kind.partition_of(group)
        if image.partition(partition) is not None:
            return partition
        self._create(partition.topic, kind, image)
        return None

    def _find(self, number: int, key: str) -> Fields:
        kind = _KINDS.get(number)
        if kind is None:
            return _no_coordinator(ErrorCode.INVALID_REQUEST)
        image, partition = self._image(), kind.partition_of(key)
        state = image.partition(partition)
        if state is None:
            self._create(partition.topic, kind, image)
        leader = None if state is None else image.brokers.get(state.leader)
        if state is None or leader is None or leader.fenced:
            return _no_coordinator(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return {"error_code": ErrorCode.NONE, "node_id": state.leader, "host": leader.host, "port": leader.port}

    def _create(self, topic: str, kind: _Coordinated, image: Image) -> None:
        if topic in self._creating or not image.brokers:
            return
        self._creating.add(topic)
        replicas = min(_REPLICATION, len(image.brokers))
        self._cluster.create_topic(
            self._sender,
            topic,
            partial(self._created, topic),
            partitions=kind.partitions,
            replication_factor=replicas,
            config=log_config(topic, self._defaults, replicas),
        )

    def _created(self, topic: str, _: Fields) -> None:
        """Forget the request, however it ended: the next client that asks has it sent again where it has to be."""
        self._creating.discard(topic)


def _no_coordinator(error: ErrorCode) -> Fields:
    return {"error_code": error, "node_id": NONE, "host": "", "port": NONE}

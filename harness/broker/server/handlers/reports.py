"""Answers DescribeProducers, DescribeTransactions and ListTransactions from the core's state (rule 50)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from harness.broker.core.producers import KnownProducer
from harness.broker.core.replica import Replica
from harness.broker.core.transaction_coordinator import TransactionRecord, TransactionState
from harness.broker.core.types import NONE, ErrorCode, Image, TopicPartition
from harness.broker.server.codec.wire import Fields, by_topic
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.runtime import now_us

#: From this version on, ListTransactions may ask for those only that are open for some time (KIP-994).
_LIST_BY_DURATION: Final = 1
#: The states as Kafka's tools call them.
_NAMES: Final = {state: state.name.title().replace("_", "") for state in TransactionState}
#: States that Kafka knows, and that no transactional id has here.
_OTHERS: Final = frozenset({"Dead", "PrepareEpochFence"})
#: The transactional ids that a coordinator knows, or why a broker knows none.
TransactionalIds = tuple[ErrorCode, Mapping[str, TransactionRecord]]


class Reports:
    """The questions of operators about producers and transactions. No answer changes anything.

    ``image`` and ``transactional_ids`` give what the broker has at the time of a request.
    """

    def __init__(
        self,
        image: Callable[[], Image],
        replicas: Mapping[TopicPartition, Replica],
        transactional_ids: Callable[[], TransactionalIds],
    ) -> None:
        self._image = image
        self._replicas = replicas
        self._transactional_ids = transactional_ids

    def describe_producers(self, call: Call) -> None:
        """The producers of log partitions, as the log of this broker's replica has them; it need not lead."""
        asked = [
            TopicPartition(topic.name, number) for topic in call.request.topics for number in topic.partition_indexes
        ]
        call.reply({"topics": by_topic((partition, self._producers(partition)) for partition in asked)})

    def _producers(self, partition: TopicPartition) -> Fields:
        replica = self._replicas.get(partition)
        if replica is not None:
            return {
                "error_code": ErrorCode.NONE,
                "active_producers": [_row(p) for p in replica.log.producers.described()],
            }
        elsewhere = self._image().partition(partition) is not None
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER if elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {"error_code": error, "active_producers": []}

    def list_transactions(self, call: Call) -> None:
        """The transactional ids that this broker coordinates, by state, producer, or time since their last begin."""
        request, (error, records) = call.request, self._transactional_ids()
        states, producers = set(request.state_filters), set(request.producer_id_filters)
        lasting_ms = request.duration_filter if call.header.version >= _LIST_BY_DURATION else NONE
        now_ms = now_us() // 1000
        rows = [
            {"transactional_id": name, "producer_id": record.producer_id, "transaction_state": _NAMES[record.state]}
            for name, record in sorted(records.items())
            if (not states or _NAMES[record.state] in states)
            and (not producers or record.producer_id in producers)
            and (lasting_ms < 0 or _lasts_ms(record, now_ms) > lasting_ms)
        ]
        loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        call.reply(
            {
                "error_code": error if loading else ErrorCode.NONE,
                "unknown_state_filters": sorted(states.difference(_NAMES.values(), _OTHERS)),
                "transaction_states": rows,
            }
        )

    def describe_transactions(self, call: Call) -> None:
        """The transactional ids by name, as their coordinator has them."""
        error, records = self._transactional_ids()
        rows = [_described(name, error, records.get(name)) for name in call.request.transactional_ids]
        call.reply({"transaction_states": rows})


def _row(producer: KnownProducer) -> Fields:
    return {
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_stamped_us // 1000,
        "coordinator_epoch": producer.coordinator_epoch,
        "current_txn_start_offset": producer.open_since,
    }


def _described(name: str, error: ErrorCode, record: TransactionRecord | None) -> Fields:
    if record is None:
        return {"error_code": error or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "transactional_id": name}
    topics: dict[str, list[int]] = {}
    for partition in record.partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return {
        "error_code": ErrorCode.NONE,
        "transactional_id": name,
        "transaction_state": _NAMES[record.state],
        "transaction_timeout_ms": record.timeout_ms,
        "transaction_start_time_ms": _date_ms(record.begun_ms) if _has_begun(record) else NONE,
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "topics": [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()],
    }


def _has_begun(record: TransactionRecord) -> bool:
    """The last transaction has a begin, which it keeps after its end, as in Kafka."""
    return record.state is not TransactionState.EMPTY


def _lasts_ms(record: TransactionRecord, now_ms: int) -> float:
    """The time since that; without a begin it is longer than any."""
    return now_ms - record.begun_ms if _has_begun(record) else inf


def _date_ms(begun_ms: int) -> int:
    """A time on the core's clock as one on the wall."""
    return begun_ms + time.time_ns() // 1_000_000 - now_us() // 1000

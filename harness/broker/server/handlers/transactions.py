"""Transactions at a broker: the requests of producers to their coordinator, and of coordinators to leaders.

Clients are offered version 1 of the protocol of transactions: they add log partitions themselves, and the end of a
transaction does not raise the epoch of its producer (:func:`harness.broker.server.config.spoken`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import (
    ACKS_ALL,
    TRANSACTIONS_TOPIC,
    ErrorCode,
    Image,
    TopicPartition,
)
from harness.broker.server.codec.wire import ApiKey, Fields, by_topic
from harness.broker.server.handlers.coordinators import INTERNAL_TOPICS, Coordinators
from harness.broker.server.handlers.gateway import Call, Gateway, Gather

#: Longest wait for the coordinator, silent while its log takes nothing: then the client is to look for another one.
COORDINATOR_LIMIT_S: Final = 3.0
#: Longest wait for a marker to be committed; less than the time after which a coordinator sends it again.
MARKER_LIMIT_MS: Final = 1_000
#: Kafka's default of transaction.max.timeout.ms.
TIMEOUT_MS_MAX: Final = 900_000
#: The versions from which on a client knows PRODUCER_FENCED (KIP-588); before, that is INVALID_PRODUCER_EPOCH.
_KNOWS_FENCED: Final = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}


class TransactionRequests:
    """The requests about transactions. What they mean is the core's to judge; ``image`` is the one that it has."""

    def __init__(self, gateway: Gateway, image: Callable[[], Image], coordinators: Coordinators) -> None:
        self._gateway = gateway
        self._image = image
        self._coordinators = coordinators

    def init_producer_id(self, call: Call) -> None:
        """A producer id: any new one, or that of the transactional id, with an epoch that fences all before it."""
        request = call.request

        def reply(answer: core.InitProducerIdResponse) -> None:
            names = ("producer_id", "producer_epoch")
            call.reply({"error_code": _told(call, answer.error), **{name: getattr(answer, name) for name in names}})

        if request.transactional_id is None:
            self._gateway.ask(call.sender, core.InitProducerId(0), reply)
        elif not request.transactional_id:
            reply(core.InitProducerIdResponse(0, ErrorCode.INVALID_REQUEST))
        elif not 0 < request.transaction_timeout_ms <= TIMEOUT_MS_MAX:
            reply(core.InitProducerIdResponse(0, ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        else:
            question = core.InitProducerId(
                0,
                request.transactional_id,
                request.transaction_timeout_ms,
                request.producer_id,
                request.producer_epoch,
            )
            self._ask(call, question, reply, core.InitProducerIdResponse)

    def add_partitions(self, call: Call) -> None:
        """AddPartitionsToTxn: all of them, or none where one cannot be written to."""
        request = call.request
        topics = request.v3_and_below_topics
        partitions = tuple(TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)
        image = self._image()
        refused = {partition: error for partition in partitions if (error := _objection(image, partition))}

        def reply(error: ErrorCode) -> None:
            rows = [(each, {"partition_error_code": refused.get(each, error)}) for each in partitions]
            call.reply({"results_by_topic_v3_and_below": by_topic(rows, partitions="results_by_partition")})

        if refused:
            reply(ErrorCode.OPERATION_NOT_ATTEMPTED)
            return
        question = core.AddPartitionsToTxn(
            0,
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            partitions,
        )
        self._ask(call, question, lambda answer: reply(_told(call, answer.error)), core.AddPartitionsToTxnResponse)

    def add_offsets(self, call: Call) -> None:
        """AddOffsetsToTxn: the log partition with the offsets of a group will need a marker, as any other."""
        request = call.request

        def reply(answer: core.AddPartitionsToTxnResponse) -> None:
            call.reply({"error_code": _told(call, answer.error)})

        partition = self._coordinators.log_of_group(request.group_id)
        if partition is None:
            reply(core.AddPartitionsToTxnResponse(0, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        producer = (request.producer_id, request.producer_epoch)
        question = core.AddPartitionsToTxn(0, request.transactional_id, *producer, (partition,))
        self._ask(call, question, reply, core.AddPartitionsToTxnResponse)

    def end(self, call: Call) -> None:
        """EndTxn: answered when the end is decided; markers follow."""
        request = call.request
        question = core.EndTxn(
            0, request.transactional_id, request.producer_id, request.producer_epoch, request.committed
        )
        self._ask(
            call, question, lambda answer: call.reply({"error_code": _told(call, answer.error)}), core.EndTxnResponse
        )

    def write_markers(self, call: Call) -> None:
        """WriteTxnMarkers, of a coordinator: each partition is answered when its marker is committed, or is not."""
        markers = call.request.markers
        gather = Gather(len(markers), lambda rows: call.reply({"markers": rows}))
        for index, wanted in enumerate(markers):
            self._write(call, wanted, gather.put_at(index))

    def _write(self, call: Call, wanted: Any, put: Callable[[Fields], None]) -> None:
        marker = core.Marker(wanted.transaction_result, wanted.coordinator_epoch, wanted.transaction_version)
        batch = marker_batch(wanted.producer_id, wanted.producer_epoch, marker)
        partitions = [
            TopicPartition(topic.name, number) for topic in wanted.topics for number in topic.partition_indexes
        ]

        def done(answers: list[core.ProduceResponse]) -> None:
            rows = [(answer.partition, {"error_code": answer.error}) for answer in answers]
            put({"producer_id": wanted.producer_id, "topics": by_topic(rows)})

        gather = Gather(len(partitions), done)
        for index, partition in enumerate(partitions):
            question = core.WriteTxnMarkers(0, partition, ACKS_ALL, MARKER_LIMIT_MS, batch)
            if partition.topic == TRANSACTIONS_TOPIC:
                gather.put(index, core.ProduceResponse(0, partition, ErrorCode.INVALID_TOPIC_EXCEPTION))
            else:
                self._gateway.ask(call.sender, question, gather.put_at(index))

    def _ask(
        self,
        call: Call,
        question: core.Message,
        reply: Callable[[Any], None],
        answer: type[core.CoordinatorAnswer],
    ) -> None:
        silent = partial(reply, answer(0, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._gateway.ask_within(COORDINATOR_LIMIT_S, call.sender, question, reply, silent)


def _objection(image: Image, partition: TopicPartition) -> ErrorCode:
    """The reason why a transaction cannot have this partition, which would need a marker in the end."""
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if image.partition(partition) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _told(call: Call, error: ErrorCode) -> ErrorCode:
    """The error by a name that the client knows."""
    fenced = error is ErrorCode.PRODUCER_FENCED and call.header.version < _KNOWS_FENCED[ApiKey(call.header.api_key)]
    return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else error

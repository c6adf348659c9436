"""Answers Produce, Fetch, ListOffsets and OffsetForLeaderEpoch, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.broker.server.codec.wire import Fields, TopicIds, by_partition, by_topic, fields_of
from harness.broker.server.handlers.coordinators import INTERNAL_TOPICS
from harness.broker.server.handlers.gateway import Call, Gateway, Gather
from harness.broker.server.storage.batches import (
    MAX_BATCH_BYTES,
    BatchError,
    ControlBatchError,
    OldFormatError,
    max_timestamp_ms,
    parse_incoming,
    whole,
)
from harness.broker.server.storage.log import FileLog

#: Bytes of one fetch response beyond its first batch, whatever the client asked for.
FETCH_BYTES: Final = 8 * 1024 * 1024
#: Bytes that one partition may carry at least, so that many partitions do not starve each other.
PARTITION_BYTES: Final = 65_536
#: The longest a request may be parked: one that asks for more would hold memory without use.
WAIT_MS: Final = 120_000
#: Timestamps with a meaning of their own (KIP-79), which the core answers.
_BY_NAME: Final = (core.LATEST, core.EARLIEST)
#: From these versions on: Fetch names topics by id only (KIP-516), and has a ReplicaState (KIP-903).
_FETCH_RACK: Final = 11
_FETCH_BY_ID: Final = 13
_FETCH_REPLICA_STATE: Final = 15
#: The isolation level of a reader of committed records.
_READ_COMMITTED: Final = 1


class DataRequests:
    """Everything that touches the records of a partition.

    Batches are parsed and bounded here; leadership, epochs and offsets are the core's to judge.
    """

    def __init__(self, gateway: Gateway, logs: Mapping[TopicPartition, FileLog], ids: TopicIds) -> None:
        self._gateway = gateway
        self._logs = logs
        self._ids = ids

    def produce(self, call: Call) -> None:
        """Append one batch for each partition; the answers go out when every partition has its own.

        With acks=0 the core is silent about what it took, so silence means success here. Leader hints (KIP-951)
        are not given: clients ask for metadata.
        """
        request = call.request

        def done(answers: list[core.ProduceResponse]) -> None:
            parts = fields_of(
                answers, error_code="error", base_offset="base_offset", log_start_offset="log_start_offset"
            )
            call.reply({"responses": by_topic(parts, partitions="partition_responses", index="index")})

        parts = list(by_partition(request.topic_data, partitions="partition_data", index="index"))
        gather = Gather(len(parts), done)
        for index, (partition, part) in enumerate(parts):
            batch = _checked(request.transactional_id, partition, part.records)
            if isinstance(batch, ErrorCode):
                gather.put(index, core.ProduceResponse(0, partition, batch))
                continue
            question = core.Produce(0, partition, request.acks, min(request.timeout_ms, WAIT_MS), batch)
            correlation = self._gateway.ask(call.sender, question, gather.put_at(index))
            if request.acks == 0 and self._gateway.give_up(correlation):
                gather.put(index, core.ProduceResponse(correlation, partition, ErrorCode.NONE))

    def fetch(self, call: Call) -> None:
        """A consumer's or a follower's fetch: the core may park it; the answer is bounded in bytes and in time.

        Fetch sessions (KIP-227) are declined by answering session 0.
        """
        request, by_id = call.request, call.header.version >= _FETCH_BY_ID
        wanted = [(topic, part) for topic in request.topics for part in topic.partitions]
        share = max(PARTITION_BYTES, min(request.max_bytes, FETCH_BYTES) // max(len(wanted), 1))
        replica = request.replica_state if call.header.version >= _FETCH_REPLICA_STATE else None
        question = core.Fetch(
            0,
            request.replica_id if replica is None else replica.replica_id,
            min(request.max_wait_ms, WAIT_MS),
            tuple(
                core.FetchPartition(
                    TopicPartition(self._ids.name(topic.topic_id) if by_id else topic.topic, part.partition),
                    part.fetch_offset,
                    part.current_leader_epoch,
                    part.last_fetched_epoch,
                    min(part.partition_max_bytes, share),
                )
                for topic, part in wanted
            ),
            request.min_bytes,
            request.max_bytes,
            NONE if replica is None else replica.replica_epoch,
            (request.rack_id or "") if call.header.version >= _FETCH_RACK else "",
            request.isolation_level == _READ_COMMITTED,
        )
        committed = question.read_committed
        self._gateway.ask(call.sender, question, lambda answer: call.reply(self._fetched(answer, committed=committed)))

    def _fetched(self, answer: core.FetchResponse, *, committed: bool) -> Fields:
        """Batches follow each other with the offsets and epochs that the leader gave them."""
        parts = ((part.partition, self._fetched_partition(part, committed=committed)) for part in answer.partitions)
        topics = by_topic(parts, name="topic")
        for topic in topics:
            topic["topic_id"] = self._ids.identity(topic["topic"])
        return {"responses": topics}

    def _fetched_partition(self, part: core.FetchedPartition, *, committed: bool) -> Fields:
        """Only a reader of committed records is told of aborted transactions; all are told how far those get."""
        log = self._logs.get(part.partition)
        stable = part.high_watermark if log is None else log.producers.transactions.stable_end(part.high_watermark)
        aborted = [{"producer_id": each.producer_id, "first_offset": each.first_offset} for each in part.aborted]
        fields: Fields = {
            "error_code": part.error,
            "high_watermark": part.high_watermark,
            "last_stable_offset": stable,
            "log_start_offset": part.log_start_offset,
            "aborted_transactions": aborted if committed else None,
            "preferred_read_replica": part.read_replica,
            "records": b"".join([whole(batch) for batch in part.batches]),
        }
        if part.diverging is not None:
            fields["diverging_epoch"] = {"epoch": part.diverging.leader_epoch, "end_offset": part.diverging.end_offset}
        return fields

    def list_offsets(self, call: Call) -> None:
        """By LATEST and EARLIEST the core answers; by timestamp the log is searched below what LATEST is."""
        replica, committed = call.request.replica_id, call.request.isolation_level == _READ_COMMITTED

        def question(partition: TopicPartition, part: Any) -> core.ListOffsets:
            timestamp = part.timestamp if part.timestamp in _BY_NAME else core.LATEST
            return core.ListOffsets(0, partition, timestamp, replica, part.current_leader_epoch, committed)

        def fields(part: Any, answer: core.ListOffsetsResponse) -> Fields:
            if part.timestamp in _BY_NAME or answer.error:
                return {"error_code": answer.error, "offset": answer.offset, "leader_epoch": answer.leader_epoch}
            return self._by_time(part.timestamp, answer)

        self._ask_each(call, question, fields)

    def offset_for_leader_epoch(self, call: Call) -> None:
        """The ends of leader epochs (rule 17, KIP-101). A debugger's replica id (-2) counts as a consumer's."""
        replica = max(call.request.replica_id, NONE)

        def question(partition: TopicPartition, part: Any) -> core.OffsetForLeaderEpoch:
            return core.OffsetForLeaderEpoch(0, partition, part.leader_epoch, part.current_leader_epoch, replica)

        def fields(_: Any, answer: core.OffsetForLeaderEpochResponse) -> Fields:
            end = answer.end
            return {"error_code": answer.error, "leader_epoch": end.leader_epoch, "end_offset": end.end_offset}

        self._ask_each(call, question, fields, name="topic", index="partition")

    def _ask_each(
        self,
        call: Call,
        question: Callable[[TopicPartition, Any], core.Message],
        fields: Callable[[Any, Any], Fields],
        **names: str,
    ) -> None:
        """Ask the core about each partition of a request, and reply with all answers; ``names`` as by_partition's."""
        parts = list(by_partition(call.request.topics, **names))
        gather = Gather(len(parts), lambda answers: call.reply({"topics": by_topic(answers, **names)}))

        def put(index: int, partition: TopicPartition, part: Any, answer: Any) -> None:
            gather.put(index, (partition, fields(part, answer)))

        for index, (partition, part) in enumerate(parts):
            self._gateway.ask(call.sender, question(partition, part), partial(put, index, partition, part))

    def _by_time(self, timestamp_ms: int, latest: core.ListOffsetsResponse) -> Fields:
        """The first batch below ``latest`` that reaches the timestamp; offset -1 where none does, as in Kafka."""
        log = self._logs.get(latest.partition)
        batch = log.first_at(timestamp_ms, latest.offset) if log is not None and timestamp_ms >= 0 else None
        if batch is None:
            return {"error_code": ErrorCode.NONE}
        return {
            "error_code": ErrorCode.NONE,
            "offset": batch.base_offset,
            "leader_epoch": batch.leader_epoch,
            "timestamp": max_timestamp_ms(batch),
        }


def _checked(
    transactional_id: str | None, partition: TopicPartition, records: bytes | None
) -> core.RecordBatch | ErrorCode:
    """The batch that a client sent for ``partition``, or the error that refuses it."""
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    try:
        batch = parse_incoming(records)
    except (OldFormatError, ControlBatchError):
        return ErrorCode.INVALID_RECORD
    except BatchError:
        return ErrorCode.CORRUPT_MESSAGE
    if batch.transactional and transactional_id is None:
        return ErrorCode.INVALID_REQUEST
    if batch.transactional and batch.producer_id == NONE:
        return ErrorCode.INVALID_RECORD
    return ErrorCode.MESSAGE_TOO_LARGE if batch.size_bytes > MAX_BATCH_BYTES else batch

"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId: what the core answers, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from harness.reference.core import messages as core
from harness.reference.core.types import ErrorCode, NodeId, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.batches import (
    MAX_BATCH_BYTES,
    BatchError,
    OldFormatError,
    max_timestamp_ms,
    parse_incoming,
)
from harness.reference.server.gateway import Gateway, Gather
from harness.reference.server.offsets import OFFSETS_TOPIC
from harness.reference.server.segments import SegmentLog

#: What one fetch response may carry beyond its first batch, whatever the client asked for.
FETCH_BYTES: Final = 8 * 1024 * 1024
#: What one partition may carry at least, so that many partitions do not starve each other.
PARTITION_BYTES: Final = 65_536
#: The longest a request may be parked: one that asks for more would keep memory for nobody.
WAIT_MS: Final = 120_000

Reply = Callable[[Any], None]


class DataRequests:
    """Everything that touches the records of a partition."""

    def __init__(self, gateway: Gateway, logs: Mapping[TopicPartition, SegmentLog]) -> None:
        self._gateway = gateway
        self._logs = logs

    def produce(self, sender: NodeId, request: plain.Produce, reply: Reply) -> None:
        """One batch for each partition; ``reply`` gets the answers when every one of them has its own.

        With acks=0 the core is silent about what it took, so silence stands for success here.
        """
        gather = Gather(len(request.parts), lambda parts: reply(plain.Produced(tuple(parts))))
        for place, (at, records) in enumerate(request.parts):
            batch = self._checked(request, at, records)
            if isinstance(batch, ErrorCode):
                gather.put(place, core.ProduceResponse(0, at, batch))
                continue
            correlation = self._gateway.ask(sender, partial(_produce, request, at, batch), gather.at(place))
            if request.acks == 0 and self._gateway.give_up(correlation):
                gather.put(place, core.ProduceResponse(correlation, at, ErrorCode.NONE))

    def fetch(self, sender: NodeId, request: core.Fetch, reply: Reply) -> None:
        """The core parks it; the answer is bounded in size and in time."""
        share = max(PARTITION_BYTES, min(request.max_bytes, FETCH_BYTES) // max(len(request.partitions), 1))
        parts = tuple(replace(part, max_bytes=min(part.max_bytes, share)) for part in request.partitions)
        wait_ms = min(request.max_wait_ms, WAIT_MS)
        self._gateway.ask(
            sender, lambda n: replace(request, correlation=n, partitions=parts, max_wait_ms=wait_ms), reply
        )

    def list_offsets(self, sender: NodeId, request: plain.OffsetsWanted, reply: Reply) -> None:
        """By LATEST and EARLIEST the core answers; by timestamp the log is searched below the high watermark."""
        gather = Gather(len(request.parts), lambda parts: reply(plain.OffsetsFound(tuple(parts))))
        for place, part in enumerate(request.parts):
            asked = part if part.timestamp in (core.LATEST, core.EARLIEST) else replace(part, timestamp=core.LATEST)
            self._gateway.ask(sender, partial(_numbered, asked), partial(self._found, gather, place, part))

    def epochs(self, sender: NodeId, request: plain.EpochsWanted, reply: Reply) -> None:
        """Where leader epochs end."""
        gather = Gather(len(request.parts), lambda parts: reply(plain.EpochsFound(tuple(parts))))
        for place, part in enumerate(request.parts):
            self._gateway.ask(sender, partial(_numbered, part), gather.at(place))

    def init_producer(self, sender: NodeId, request: plain.InitProducer, reply: Reply) -> None:
        """A producer id. Transactions are not offered."""
        if request.transactional:
            reply(core.InitProducerIdResponse(0, ErrorCode.INVALID_REQUEST))
        else:
            self._gateway.ask(sender, core.InitProducerId, reply)

    def _checked(
        self, request: plain.Produce, at: TopicPartition, records: bytes | None
    ) -> core.RecordBatch | ErrorCode:
        if request.transactional:
            return ErrorCode.INVALID_REQUEST
        if at.topic == OFFSETS_TOPIC:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        try:
            batch = parse_incoming(records)
        except OldFormatError:
            return ErrorCode.INVALID_RECORD
        except BatchError:
            return ErrorCode.CORRUPT_MESSAGE
        return ErrorCode.MESSAGE_TOO_LARGE if batch.size_bytes > MAX_BATCH_BYTES else batch

    def _found(self, gather: Gather, place: int, asked: core.ListOffsets, answer: core.ListOffsetsResponse) -> None:
        found = plain.OffsetFound(asked.partition, answer.error, answer.offset, answer.leader_epoch)
        if asked.timestamp not in (core.LATEST, core.EARLIEST) and not answer.error:
            found = self._by_time(asked, answer)
        gather.put(place, found)

    def _by_time(self, asked: core.ListOffsets, answer: core.ListOffsetsResponse) -> plain.OffsetFound:
        """Offset of the first batch that reaches the timestamp; NONE if there is none, as Kafka answers."""
        log = self._logs.get(asked.partition)
        batch = log.first_at(asked.timestamp, answer.offset) if log is not None and asked.timestamp >= 0 else None
        if batch is None:
            return plain.OffsetFound(asked.partition, ErrorCode.NONE)
        return plain.OffsetFound(
            asked.partition, ErrorCode.NONE, batch.base_offset, batch.leader_epoch, max_timestamp_ms(batch)
        )


def _produce(request: plain.Produce, at: TopicPartition, batch: core.RecordBatch, correlation: int) -> core.Produce:
    return core.Produce(correlation, at, request.acks, min(request.timeout_ms, WAIT_MS), batch)


def _numbered(question: core.ListOffsets | core.OffsetForLeaderEpoch, correlation: int) -> core.Message:
    return replace(question, correlation=correlation)

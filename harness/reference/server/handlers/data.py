"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId: what the core answers, partition by partition."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from harness.reference.core import messages as core
from harness.reference.core.types import ErrorCode, NodeId, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.handlers.committed import OFFSETS_TOPIC
from harness.reference.server.handlers.gateway import Gateway, Gather, Reply
from harness.reference.server.storage.batches import (
    MAX_BATCH_BYTES,
    BatchError,
    OldFormatError,
    max_timestamp_ms,
    parse_incoming,
)
from harness.reference.server.storage.log import SegmentLog

#: What one fetch response may carry beyond its first batch, whatever the client asked for.
FETCH_BYTES: Final = 8 * 1024 * 1024
#: What one partition may carry at least, so that many partitions do not starve each other.
PARTITION_BYTES: Final = 65_536
#: The longest a request may be parked: one that asks for more would keep memory for nobody.
WAIT_MS: Final = 120_000
#: Timestamps with a meaning of their own (KIP-79), which the core answers.
_BY_NAME: Final = (core.LATEST, core.EARLIEST)


class DataRequests:
    """Everything that touches the records of a partition."""

    def __init__(self, gateway: Gateway, logs: Mapping[TopicPartition, SegmentLog]) -> None:
        self._gateway = gateway
        self._logs = logs

    def produce(self, sender: NodeId, request: plain.ProduceRequest, reply: Reply) -> None:
        """Append one batch for each partition; ``reply`` gets the answers when every one of them has its own.

        With acks=0 the core is silent about what it took, so silence stands for success here.
        """
        gather = Gather(len(request.parts), plain.ProduceResponse, reply)
        for place, (at, records) in enumerate(request.parts):
            batch = self._checked(request, at, records)
            if isinstance(batch, ErrorCode):
                gather.put(place, core.ProduceResponse(0, at, batch))
                continue
            question = core.Produce(0, at, request.acks, min(request.timeout_ms, WAIT_MS), batch)
            correlation = self._gateway.ask_numbered(sender, question, gather.at(place))
            if request.acks == 0 and self._gateway.give_up(correlation):
                gather.put(place, core.ProduceResponse(correlation, at, ErrorCode.NONE))

    def fetch(self, sender: NodeId, request: core.Fetch, reply: Reply) -> None:
        """Let the core park it; the answer is bounded in size and in time."""
        share = max(PARTITION_BYTES, min(request.max_bytes, FETCH_BYTES) // max(len(request.partitions), 1))
        parts = tuple(replace(part, max_bytes=min(part.max_bytes, share)) for part in request.partitions)
        wait_ms = min(request.max_wait_ms, WAIT_MS)
        self._gateway.ask_numbered(sender, replace(request, partitions=parts, max_wait_ms=wait_ms), reply)

    def list_offsets(self, sender: NodeId, request: plain.ListOffsetsRequest, reply: Reply) -> None:
        """By LATEST and EARLIEST the core answers; by timestamp the log is searched below the high watermark."""
        gather = Gather(len(request.parts), plain.ListOffsetsResponse, reply)
        for place, part in enumerate(request.parts):
            asked = part if part.timestamp in _BY_NAME else replace(part, timestamp=core.LATEST)
            self._gateway.ask_numbered(sender, asked, partial(self._found, gather, place, part))

    def offset_for_leader_epoch(self, sender: NodeId, request: plain.OffsetForLeaderEpochRequest, reply: Reply) -> None:
        """Where leader epochs end, as the core says."""
        gather = Gather(len(request.parts), plain.OffsetForLeaderEpochResponse, reply)
        for place, part in enumerate(request.parts):
            self._gateway.ask_numbered(sender, part, gather.at(place))

    def init_producer_id(self, sender: NodeId, request: plain.InitProducerIdRequest, reply: Reply) -> None:
        """A producer id. Transactions are not offered."""
        if request.transactional:
            reply(core.InitProducerIdResponse(0, ErrorCode.INVALID_REQUEST))
        else:
            self._gateway.ask(sender, core.InitProducerId, reply)

    def _checked(
        self, request: plain.ProduceRequest, at: TopicPartition, records: bytes | None
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
        found = plain.FoundOffset(asked.partition, answer.error, answer.offset, answer.leader_epoch)
        if asked.timestamp not in _BY_NAME and not answer.error:
            found = self._by_time(asked, answer)
        gather.put(place, found)

    def _by_time(self, asked: core.ListOffsets, answer: core.ListOffsetsResponse) -> plain.FoundOffset:
        """Offset of the first batch that reaches the timestamp; NONE if there is none, as Kafka answers."""
        log = self._logs.get(asked.partition)
        batch = log.first_at(asked.timestamp, answer.offset) if log is not None and asked.timestamp >= 0 else None
        if batch is None:
            return plain.FoundOffset(asked.partition, ErrorCode.NONE)
        return plain.FoundOffset(
            asked.partition, ErrorCode.NONE, batch.base_offset, batch.leader_epoch, max_timestamp_ms(batch)
        )

"""The follower's side of Fetch, OffsetForLeaderEpoch and ListOffsets: its requests, and the leader's answers."""

from __future__ import annotations

from typing import Any, Final

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.consumer.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

from harness.reference.core import messages as core
from harness.reference.core.types import EpochEnd, ErrorCode, TopicPartition
from harness.reference.server.codec.wire import Fields, TopicIds, by_topic, decode, fields_of, request_frame
from harness.reference.server.links import BadFrameError
from harness.reference.server.storage.batches import BatchError, split

#: The version with topic ids and broker epochs (KIP-903) and nothing newer.
FETCH_VERSION: Final = 15
EPOCH_VERSION: Final = 4
OFFSETS_VERSION: Final = 6

FollowerRequest = core.Fetch | core.OffsetForLeaderEpoch | core.ListOffsets


def encode_request(request: FollowerRequest, correlation: int, client_id: str, ids: TopicIds) -> bytes:
    """A whole frame."""
    if isinstance(request, core.Fetch):
        return request_frame(FetchRequest, _fetch(request, ids), FETCH_VERSION, correlation, client_id)
    part = {"current_leader_epoch": request.current_leader_epoch}
    if isinstance(request, core.OffsetForLeaderEpoch):
        part["leader_epoch"] = request.leader_epoch
        topics = by_topic([(request.partition, part)], name="topic", index="partition")
        epochs = {"replica_id": request.replica_id, "topics": topics}
        return request_frame(OffsetForLeaderEpochRequest, epochs, EPOCH_VERSION, correlation, client_id)
    part["timestamp"] = request.timestamp
    offsets = {"replica_id": request.replica_id, "isolation_level": 0, "topics": by_topic([(request.partition, part)])}
    return request_frame(ListOffsetsRequest, offsets, OFFSETS_VERSION, correlation, client_id)


def _fetch(request: core.Fetch, ids: TopicIds) -> Fields:
    parts = fields_of(
        request.partitions,
        current_leader_epoch="current_leader_epoch",
        fetch_offset="fetch_offset",
        last_fetched_epoch="last_fetched_epoch",
        partition_max_bytes="max_bytes",
    )
    topics = by_topic(parts, name="topic", index="partition")
    for topic in topics:
        topic["topic_id"] = ids.identity(topic["topic"])
    return {
        "replica_state": {"replica_id": request.replica_id, "replica_epoch": request.broker_epoch},
        "max_wait_ms": request.max_wait_ms,
        "min_bytes": request.min_bytes,
        "max_bytes": request.max_bytes,
        "topics": topics,
    }


def decode_response(request: FollowerRequest, body: memoryview, ids: TopicIds) -> core.Message:
    """The core's response to ``request`` from what follows the correlation id of the response.

    Raises:
        BadFrameError: it is not an answer to this request, or a batch in it is damaged.
    """
    if bytes(body[:1]) != b"\0":
        raise BadFrameError("a response header with tags nobody asked for")
    if isinstance(request, core.Fetch):
        return _fetched(request, decode(FetchResponse, body[1:], FETCH_VERSION), ids)
    by_epoch = isinstance(request, core.OffsetForLeaderEpoch)
    schema, version = (
        (OffsetForLeaderEpochResponse, EPOCH_VERSION) if by_epoch else (ListOffsetsResponse, OFFSETS_VERSION)
    )
    try:
        part = decode(schema, body[1:], version).topics[0].partitions[0]
    except IndexError as error:
        raise BadFrameError("an answer without the partition that was asked for") from error
    asked, error_code = (request.correlation, request.partition), _error(part.error_code)
    if by_epoch:
        return core.OffsetForLeaderEpochResponse(*asked, error_code, EpochEnd(part.leader_epoch, part.end_offset))
    return core.ListOffsetsResponse(*asked, error_code, part.offset, part.leader_epoch)


def _fetched(request: core.Fetch, response: Any, ids: TopicIds) -> core.FetchResponse:
    try:
        parts = tuple(
            core.FetchedPartition(
                TopicPartition(ids.name(topic.topic_id), part.partition_index),
                _error(part.error_code),
                part.high_watermark,
                part.log_start_offset,
                _diverging(part.diverging_epoch),
                tuple(split(part.records or b"", verify=True)),
            )
            for topic in response.responses
            for part in topic.partitions
        )
    except BatchError as error:
        raise BadFrameError(f"the leader's records are damaged: {error}") from error
    return core.FetchResponse(request.correlation, parts)


def _diverging(epoch: Any) -> EpochEnd | None:
    """The diverging epoch of a fetch response (KIP-595), None where there is none."""
    return EpochEnd(epoch.epoch, epoch.end_offset) if epoch is not None and epoch.end_offset >= 0 else None


def _error(code: int) -> ErrorCode:
    """A code that this broker does not use counts as an unknown error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR

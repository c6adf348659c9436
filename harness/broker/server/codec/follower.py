"""A broker's own requests to leaders, and their answers.

A follower sends Fetch, OffsetForLeaderEpoch and ListOffsets, a transaction coordinator WriteTxnMarkers.
"""

from __future__ import annotations

from typing import Any, Final

from harness.broker.core import messages as core
from harness.broker.core.types import ErrorCode, TopicPartition
from harness.broker.server.codec import APIS
from harness.broker.server.codec.wire import ApiKey, Fields, TopicIds, by_topic, decode, fields_of, request_frame
from harness.broker.server.links import BadFrameError
from harness.broker.server.storage.batches import BatchError, split

FollowerRequest = core.Fetch | core.OffsetForLeaderEpoch | core.ListOffsets
LeaderRequest = FollowerRequest | core.WriteTxnMarkers
#: The API of each request, and the version that brokers use. That of Fetch is the one with topic ids and broker
#: epochs (KIP-903) and nothing newer.
_SENT: Final = {
    core.Fetch: (APIS[ApiKey.FETCH], 15),
    core.OffsetForLeaderEpoch: (APIS[ApiKey.OFFSET_FOR_LEADER_EPOCH], 4),
    core.ListOffsets: (APIS[ApiKey.LIST_OFFSETS], 6),
    core.WriteTxnMarkers: (APIS[ApiKey.WRITE_TXN_MARKERS], 2),
}


def encode_request(request: LeaderRequest, correlation: int, client_id: str, ids: TopicIds) -> bytes:
    """The whole frame of a request under the connection's own ``correlation``."""
    api, version = _SENT[type(request)]
    if isinstance(request, core.Fetch):
        fields = _fetch(request, ids)
    else:
        fields = _marked(request) if isinstance(request, core.WriteTxnMarkers) else _question(request)
    return request_frame(api.request, fields, version, correlation, client_id)


def _question(request: core.OffsetForLeaderEpoch | core.ListOffsets) -> Fields:
    part = {"current_leader_epoch": request.current_leader_epoch}
    if isinstance(request, core.ListOffsets):
        topics = by_topic([(request.partition, {**part, "timestamp": request.timestamp})])
        return {"replica_id": request.replica_id, "isolation_level": 0, "topics": topics}
    part["leader_epoch"] = request.leader_epoch
    return {
        "replica_id": request.replica_id,
        "topics": by_topic([(request.partition, part)], name="topic", index="partition"),
    }


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


def _marked(request: core.WriteTxnMarkers) -> Fields:
    batch, (topic, number) = request.batch, request.partition
    assert batch.marker is not None, "a marker is all that it has"  # noqa: S101 - for the type checker
    marker = {
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "transaction_result": batch.marker.commit,
        "topics": [{"name": topic, "partition_indexes": [number]}],
        "coordinator_epoch": batch.marker.coordinator_epoch,
        "transaction_version": batch.marker.transaction_version,
    }
    return {"markers": [marker]}


def decode_response(request: LeaderRequest, body: memoryview, ids: TopicIds) -> core.Message:
    """The core's response to ``request`` from what follows the correlation id of the response.

    Raises:
        BadFrameError: it is not an answer to this request, or a batch in it is damaged.
    """
    if bytes(body[:1]) != b"\0":
        raise BadFrameError("a response header with tags that were not asked for")
    api, version = _SENT[type(request)]
    response = decode(api.response, body[1:], version)
    if isinstance(request, core.Fetch):
        return _fetched(request, response, ids)
    marks = isinstance(request, core.WriteTxnMarkers)
    try:
        part = (response.markers[0] if marks else response).topics[0].partitions[0]
    except IndexError as error:
        raise BadFrameError("an answer without the partition that was asked for") from error
    asked, error_code = (request.correlation, request.partition), _error(part.error_code)
    if marks:
        return core.ProduceResponse(*asked, error_code)
    if isinstance(request, core.ListOffsets):
        return core.ListOffsetsResponse(*asked, error_code, part.offset, part.leader_epoch)
    return core.OffsetForLeaderEpochResponse(*asked, error_code, core.EpochEnd(part.leader_epoch, part.end_offset))


def _fetched(request: core.Fetch, response: Any, ids: TopicIds) -> core.FetchResponse:
    parts = tuple(
        _fetched_partition(TopicPartition(ids.name(topic.topic_id), part.partition_index), part)
        for topic in response.responses
        for part in topic.partitions
    )
    return core.FetchResponse(request.correlation, parts)


def _fetched_partition(partition: TopicPartition, part: Any) -> core.FetchedPartition:
    """One partition's answer. Records that are damaged in the leader's log are an error of that partition (rule 25)."""
    try:
        batches = tuple(split(part.records or b"", verify=True))
    except BatchError:
        return core.FetchedPartition(partition, ErrorCode.CORRUPT_MESSAGE)
    diverging = _diverging(part.diverging_epoch)
    return core.FetchedPartition(
        partition, _error(part.error_code), part.high_watermark, part.log_start_offset, diverging, batches
    )


def _diverging(epoch: Any) -> core.EpochEnd | None:
    """The diverging epoch of a fetch response (KIP-595), None where it has none."""
    return core.EpochEnd(epoch.epoch, epoch.end_offset) if epoch is not None and epoch.end_offset >= 0 else None


def _error(code: int) -> ErrorCode:
    """A code that this broker does not use counts as an unknown error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR

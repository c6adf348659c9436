"""What a broker sends as a follower, Fetch, OffsetForLeaderEpoch and ListOffsets, and how it reads the answers."""

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
from harness.reference.core.types import EpochEnd, TopicPartition
from harness.reference.server.batches import BatchError, split
from harness.reference.server.codec.data import by_topic, end_of, error_of
from harness.reference.server.codec.wire import TopicIds, decode, request_frame
from harness.reference.server.links import BadFrameError

#: The version with topic ids and broker epochs (KIP-903) and nothing newer.
FETCH_VERSION: Final = 15
EPOCH_VERSION: Final = 4
OFFSETS_VERSION: Final = 6

FollowerRequest = core.Fetch | core.OffsetForLeaderEpoch | core.ListOffsets


def encode_request(request: FollowerRequest, correlation: int, client_id: str, ids: TopicIds) -> bytes:
    """A whole frame."""
    if isinstance(request, core.Fetch):
        return request_frame(_fetch(request, ids), correlation, client_id)
    message = _epoch(request) if isinstance(request, core.OffsetForLeaderEpoch) else _offsets(request)
    return request_frame(message, correlation, client_id)


def decode_answer(request: FollowerRequest, body: memoryview, ids: TopicIds) -> core.Message:
    """The core's response to ``request`` from what follows the correlation id of the response.

    Raises:
        BadFrameError: it is not an answer to this request, or a batch in it is damaged.
    """
    if bytes(body[:1]) != b"\0":
        raise BadFrameError("a response header with tags nobody asked for")
    if isinstance(request, core.Fetch):
        return _fetched(request, decode(FetchResponse, body[1:], FETCH_VERSION), ids)
    try:
        if isinstance(request, core.OffsetForLeaderEpoch):
            return _epoch_found(request, decode(OffsetForLeaderEpochResponse, body[1:], EPOCH_VERSION))
        return _offset_found(request, decode(ListOffsetsResponse, body[1:], OFFSETS_VERSION))
    except IndexError as error:
        raise BadFrameError("an answer without the partition that was asked for") from error


def _fetch(request: core.Fetch, ids: TopicIds) -> Any:
    topic_class = FetchRequest.FetchTopic
    topics = [
        topic_class(
            version=FETCH_VERSION,
            topic_id=ids.identity(topic),
            partitions=[
                topic_class.FetchPartition(
                    version=FETCH_VERSION,
                    partition=part.partition.partition,
                    current_leader_epoch=part.current_leader_epoch,
                    fetch_offset=part.fetch_offset,
                    last_fetched_epoch=part.last_fetched_epoch,
                    partition_max_bytes=part.max_bytes,
                )
                for part in parts
            ],
        )
        for topic, parts in by_topic(request.partitions, lambda part: part.partition)
    ]
    state = FetchRequest.ReplicaState(
        version=FETCH_VERSION, replica_id=request.replica_id, replica_epoch=request.broker_epoch
    )
    return FetchRequest(
        version=FETCH_VERSION,
        replica_state=state,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        topics=topics,
    )


def _fetched(request: core.Fetch, response: Any, ids: TopicIds) -> core.FetchResponse:
    try:
        parts = tuple(
            core.FetchedPartition(
                TopicPartition(ids.name(topic.topic_id), part.partition_index),
                error_of(part.error_code),
                part.high_watermark,
                part.log_start_offset,
                end_of(part.diverging_epoch),
                tuple(split(part.records or b"", verify=True)),
            )
            for topic in response.responses
            for part in topic.partitions
        )
    except BatchError as error:
        raise BadFrameError(f"the leader's records are damaged: {error}") from error
    return core.FetchResponse(request.correlation, parts)


def _epoch(request: core.OffsetForLeaderEpoch) -> Any:
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    part = topic_class.OffsetForLeaderPartition(
        version=EPOCH_VERSION,
        partition=request.partition.partition,
        current_leader_epoch=request.current_leader_epoch,
        leader_epoch=request.leader_epoch,
    )
    topic = topic_class(version=EPOCH_VERSION, topic=request.partition.topic, partitions=[part])
    return OffsetForLeaderEpochRequest(version=EPOCH_VERSION, replica_id=request.replica_id, topics=[topic])


def _epoch_found(request: core.OffsetForLeaderEpoch, response: Any) -> core.OffsetForLeaderEpochResponse:
    part = response.topics[0].partitions[0]
    end = EpochEnd(part.leader_epoch, part.end_offset)
    return core.OffsetForLeaderEpochResponse(request.correlation, request.partition, error_of(part.error_code), end)


def _offsets(request: core.ListOffsets) -> Any:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    part = topic_class.ListOffsetsPartition(
        version=OFFSETS_VERSION,
        partition_index=request.partition.partition,
        current_leader_epoch=request.current_leader_epoch,
        timestamp=request.timestamp,
    )
    topic = topic_class(version=OFFSETS_VERSION, name=request.partition.topic, partitions=[part])
    return ListOffsetsRequest(version=OFFSETS_VERSION, replica_id=request.replica_id, isolation_level=0, topics=[topic])


def _offset_found(request: core.ListOffsets, response: Any) -> core.ListOffsetsResponse:
    part = response.topics[0].partitions[0]
    return core.ListOffsetsResponse(
        request.correlation, request.partition, error_of(part.error_code), part.offset, part.leader_epoch
    )

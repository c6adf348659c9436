"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId: the requests that touch partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Final

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.consumer.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse
from kafka.protocol.producer.transaction import InitProducerIdRequest, InitProducerIdResponse

from harness.reference.core import messages as core
from harness.reference.core.types import NONE, EpochEnd, ErrorCode, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.batches import whole
from harness.reference.server.codec.wire import TopicIds, text

#: From this version on, Fetch names topics by id only (KIP-516).
FETCH_BY_ID: Final = 13
#: From this version on, the follower's number and broker epoch are in ReplicaState (KIP-903).
FETCH_REPLICA_STATE: Final = 15


def by_topic(parts: Iterable[Any], partition: Callable[[Any], TopicPartition]) -> list[tuple[str, list[Any]]]:
    """Neighbouring partitions of one topic together, order kept."""
    return [(topic, list(group)) for topic, group in groupby(parts, key=lambda part: partition(part).topic)]


def decode_produce(request: Any, version: int, ids: TopicIds) -> plain.Produce:
    """Versions before 3 carry formats 0 and 1 and are refused by the table of versions."""
    del version, ids
    return plain.Produce(
        request.transactional_id is not None,
        request.acks,
        request.timeout_ms,
        tuple(
            (TopicPartition(text(topic.name), part.index), part.records)
            for topic in request.topic_data
            for part in topic.partition_data
        ),
    )


def encode_produced(answer: plain.Produced, version: int, ids: TopicIds) -> Any:
    """Leader hints (KIP-951) are not given; clients ask for metadata."""
    del ids
    topic_class = ProduceResponse.TopicProduceResponse
    part_class = topic_class.PartitionProduceResponse
    topics = [
        topic_class(
            version=version,
            name=topic,
            partition_responses=[
                part_class(
                    version=version,
                    index=part.partition.partition,
                    error_code=int(part.error),
                    base_offset=part.base_offset,
                    log_start_offset=part.log_start_offset,
                )
                for part in parts
            ],
        )
        for topic, parts in by_topic(answer.parts, lambda part: part.partition)
    ]
    return ProduceResponse(version=version, responses=topics)


def decode_fetch(request: Any, version: int, ids: TopicIds) -> core.Fetch:
    """A consumer's or a follower's fetch; fetch sessions (KIP-227) are declined by answering session 0."""
    replica = request.replica_state if version >= FETCH_REPLICA_STATE else request
    return core.Fetch(
        0,
        NONE if replica is None else replica.replica_id,
        request.max_wait_ms,
        tuple(
            core.FetchPartition(
                TopicPartition(
                    ids.name(topic.topic_id) if version >= FETCH_BY_ID else text(topic.topic), part.partition
                ),
                part.fetch_offset,
                part.current_leader_epoch,
                part.last_fetched_epoch,
                part.partition_max_bytes,
            )
            for topic in request.topics
            for part in topic.partitions
        ),
        request.min_bytes,
        request.max_bytes,
        replica.replica_epoch if version >= FETCH_REPLICA_STATE and replica is not None else NONE,
    )


def encode_fetched(answer: core.FetchResponse, version: int, ids: TopicIds) -> Any:
    """Batches follow each other with the offsets and epochs the leader gave them."""
    topic_class = FetchResponse.FetchableTopicResponse
    topics = [
        topic_class(
            version=version,
            **({"topic_id": ids.identity(topic)} if version >= FETCH_BY_ID else {"topic": topic}),
            partitions=[_fetched_part(part, version) for part in parts],
        )
        for topic, parts in by_topic(answer.partitions, lambda part: part.partition)
    ]
    return FetchResponse(version=version, responses=topics)


def _fetched_part(part: core.FetchedPartition, version: int) -> Any:
    part_class = FetchResponse.FetchableTopicResponse.PartitionData
    diverging = {}
    if part.diverging is not None:
        end = part.diverging
        diverging["diverging_epoch"] = part_class.EpochEndOffset(
            version=version, epoch=end.leader_epoch, end_offset=end.end_offset
        )
    return part_class(
        version=version,
        partition_index=part.partition.partition,
        error_code=int(part.error),
        high_watermark=part.high_watermark,
        last_stable_offset=part.high_watermark,
        log_start_offset=part.log_start_offset,
        aborted_transactions=None,
        records=b"".join([whole(batch) for batch in part.batches]),
        **diverging,
    )


def decode_list_offsets(request: Any, version: int, ids: TopicIds) -> plain.OffsetsWanted:
    """One question for each partition."""
    del version, ids
    return plain.OffsetsWanted(
        tuple(
            core.ListOffsets(
                0,
                TopicPartition(text(topic.name), part.partition_index),
                part.timestamp,
                request.replica_id,
                part.current_leader_epoch,
            )
            for topic in request.topics
            for part in topic.partitions
        )
    )


def encode_offsets_found(answer: plain.OffsetsFound, version: int, ids: TopicIds) -> Any:
    """One answer for each partition."""
    del ids
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    part_class = topic_class.ListOffsetsPartitionResponse
    topics = [
        topic_class(
            version=version,
            name=topic,
            partitions=[
                part_class(
                    version=version,
                    partition_index=part.partition.partition,
                    error_code=int(part.error),
                    timestamp=part.timestamp,
                    offset=part.offset,
                    leader_epoch=part.leader_epoch,
                )
                for part in parts
            ],
        )
        for topic, parts in by_topic(answer.parts, lambda part: part.partition)
    ]
    return ListOffsetsResponse(version=version, topics=topics)


def decode_epochs_wanted(request: Any, version: int, ids: TopicIds) -> plain.EpochsWanted:
    """One question for each partition. The replica id is there from version 3 on."""
    del ids
    replica = request.replica_id if version >= 3 else NONE
    return plain.EpochsWanted(
        tuple(
            core.OffsetForLeaderEpoch(
                0,
                TopicPartition(text(topic.topic), part.partition),
                part.leader_epoch,
                part.current_leader_epoch,
                replica if replica >= 0 else NONE,
            )
            for topic in request.topics
            for part in topic.partitions
        )
    )


def encode_epochs_found(answer: plain.EpochsFound, version: int, ids: TopicIds) -> Any:
    """One answer for each partition."""
    del ids
    topic_class = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    part_class = topic_class.EpochEndOffset
    topics = [
        topic_class(
            version=version,
            topic=topic,
            partitions=[
                part_class(
                    version=version,
                    error_code=int(part.error),
                    partition=part.partition.partition,
                    leader_epoch=part.end.leader_epoch,
                    end_offset=part.end.end_offset,
                )
                for part in parts
            ],
        )
        for topic, parts in by_topic(answer.parts, lambda part: part.partition)
    ]
    return OffsetForLeaderEpochResponse(version=version, topics=topics)


def decode_init_producer(request: Any, version: int, ids: TopicIds) -> plain.InitProducer:
    """A producer that had an id simply gets a new one."""
    del version, ids
    return plain.InitProducer(request.transactional_id is not None)


def encode_producer_id(answer: core.InitProducerIdResponse, version: int, ids: TopicIds) -> Any:
    """The id and its epoch."""
    del ids
    return InitProducerIdResponse(
        version=version,
        error_code=int(answer.error),
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
    )


def end_of(epoch: Any) -> EpochEnd | None:
    """The diverging epoch of a fetch response, None where there is none."""
    return EpochEnd(epoch.epoch, epoch.end_offset) if epoch is not None and epoch.end_offset >= 0 else None


def error_of(code: int) -> ErrorCode:
    """A code that this broker does not use counts as an unknown error."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


REQUESTS: Final = (ProduceRequest, FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, InitProducerIdRequest)

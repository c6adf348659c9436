"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId: the requests that touch partitions."""

from __future__ import annotations

from typing import Any, Final

from harness.reference.core import messages as core
from harness.reference.core.types import NONE, TopicPartition
from harness.reference.server import requests as plain
from harness.reference.server.codec.wire import Context, Fields, by_partition, by_topic, fields_of, text
from harness.reference.server.storage.batches import whole

#: From this version on, Fetch names topics by id only (KIP-516).
FETCH_BY_ID: Final = 13
#: From this version on, the follower's number and broker epoch are in ReplicaState (KIP-903).
FETCH_REPLICA_STATE: Final = 15
#: From this version on, OffsetForLeaderEpoch says which replica asks.
EPOCH_REPLICA: Final = 3


def decode_produce(request: Any, _: Context) -> plain.ProduceRequest:
    """Versions before 3 carry formats 0 and 1 and are refused by the table of versions."""
    parts = by_partition(request.topic_data, partitions="partition_data", index="index")
    return plain.ProduceRequest(
        request.transactional_id is not None,
        request.acks,
        request.timeout_ms,
        tuple((at, part.records) for at, part in parts),
    )


def encode_produce(answer: plain.ProduceResponse, _: Context) -> Fields:
    """Leader hints (KIP-951) are not given; clients ask for metadata."""
    parts = fields_of(answer.parts, error_code="error", base_offset="base_offset", log_start_offset="log_start_offset")
    return {"responses": by_topic(parts, partitions="partition_responses", index="index")}


def decode_fetch(request: Any, context: Context) -> core.Fetch:
    """A consumer's or a follower's fetch; fetch sessions (KIP-227) are declined by answering session 0."""
    version, ids = context.version, context.ids
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


def encode_fetch(answer: core.FetchResponse, context: Context) -> Fields:
    """Batches follow each other with the offsets and epochs the leader gave them."""
    topics = by_topic(((part.partition, _fetched(part)) for part in answer.partitions), name="topic")
    for topic in topics:
        topic["topic_id"] = context.ids.identity(topic["topic"])
    return {"responses": topics}


def _fetched(part: core.FetchedPartition) -> Fields:
    fields: Fields = {
        "error_code": part.error,
        "high_watermark": part.high_watermark,
        "last_stable_offset": part.high_watermark,
        "log_start_offset": part.log_start_offset,
        "aborted_transactions": None,
        "records": b"".join([whole(batch) for batch in part.batches]),
    }
    if part.diverging is not None:
        fields["diverging_epoch"] = {"epoch": part.diverging.leader_epoch, "end_offset": part.diverging.end_offset}
    return fields


def decode_list_offsets(request: Any, _: Context) -> plain.ListOffsetsRequest:
    """A question for each partition; its correlation is set by whoever asks the core."""
    replica = request.replica_id
    return plain.ListOffsetsRequest(
        tuple(
            core.ListOffsets(0, at, part.timestamp, replica, part.current_leader_epoch)
            for at, part in by_partition(request.topics)
        )
    )


def encode_list_offsets(answer: plain.ListOffsetsResponse, _: Context) -> Fields:
    """An answer for each partition."""
    parts = fields_of(
        answer.parts, error_code="error", timestamp="timestamp", offset="offset", leader_epoch="leader_epoch"
    )
    return {"topics": by_topic(parts)}


def decode_offset_for_leader_epoch(request: Any, context: Context) -> plain.OffsetForLeaderEpochRequest:
    """A question for each partition. A debugging consumer's replica id (-2) counts as none."""
    replica = max(request.replica_id, NONE) if context.version >= EPOCH_REPLICA else NONE
    return plain.OffsetForLeaderEpochRequest(
        tuple(
            core.OffsetForLeaderEpoch(0, at, part.leader_epoch, part.current_leader_epoch, replica)
            for at, part in by_partition(request.topics, name="topic", index="partition")
        )
    )


def encode_offset_for_leader_epoch(answer: plain.OffsetForLeaderEpochResponse, _: Context) -> Fields:
    """An answer for each partition."""
    parts = fields_of(answer.parts, error_code="error", leader_epoch="end.leader_epoch", end_offset="end.end_offset")
    return {"topics": by_topic(parts, name="topic", index="partition")}


def decode_init_producer_id(request: Any, _: Context) -> plain.InitProducerIdRequest:
    """A producer that had an id simply gets a new one."""
    return plain.InitProducerIdRequest(request.transactional_id is not None)


def encode_init_producer_id(answer: core.InitProducerIdResponse, _: Context) -> Fields:
    """The id and its epoch."""
    return {"error_code": answer.error, "producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}

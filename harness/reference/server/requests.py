"""Requests and responses of Kafka's protocol as plain data, free of versions and of the library that encodes them.

Where the core has a message for something (Fetch, ListOffsets, ...), that message is used and ``correlation`` is set by
the server. Everything below is what the core does not know: several partitions in one request, groups, administration.
Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.reference.core.messages import (
    Fetch,
    FetchResponse,
    InitProducerIdResponse,
    ListOffsets,
    OffsetForLeaderEpoch,
    OffsetForLeaderEpochResponse,
    ProduceResponse,
)
from harness.reference.core.types import NONE, BrokerState, ErrorCode, NodeId, TopicPartition, TopicState


class Record(msgspec.Struct, frozen=True, gc=False):
    """Anything in this module: immutable."""


class Header(Record, frozen=True):
    """What every request begins with. ``client_id`` is None where the client gave none."""

    api_key: int
    version: int
    correlation: int
    client_id: str | None


# --- data ----------------------------------------------------------------------------------------------------------


class Produce(Record, frozen=True):
    """``parts`` holds the encoded records of each partition, None where the client sent none."""

    transactional: bool
    acks: int
    timeout_ms: int
    parts: tuple[tuple[TopicPartition, bytes | None], ...]


class Produced(Record, frozen=True):
    """The answer to a Produce, partitions in its order."""

    parts: tuple[ProduceResponse, ...]


class OffsetsWanted(Record, frozen=True):
    """ListOffsets for several partitions."""

    parts: tuple[ListOffsets, ...]


class OffsetFound(Record, frozen=True):
    """One partition's answer to ListOffsets; ``timestamp`` only where the question was a timestamp."""

    partition: TopicPartition
    error: ErrorCode
    offset: int = NONE
    leader_epoch: int = NONE
    timestamp: int = NONE


class OffsetsFound(Record, frozen=True):
    """The answer to ListOffsets."""

    parts: tuple[OffsetFound, ...]


class EpochsWanted(Record, frozen=True):
    """OffsetForLeaderEpoch for several partitions."""

    parts: tuple[OffsetForLeaderEpoch, ...]


class EpochsFound(Record, frozen=True):
    """The answer to OffsetForLeaderEpoch."""

    parts: tuple[OffsetForLeaderEpochResponse, ...]


class InitProducer(Record, frozen=True):
    """InitProducerId. Transactions are not offered, so ``transactional`` is refused."""

    transactional: bool


# --- the cluster ---------------------------------------------------------------------------------------------------


class ApiVersions(Record, frozen=True):
    """Which requests are understood? ``supported`` is False where the question's own version is too new."""

    supported: bool = True


class ApiVersionsAnswer(Record, frozen=True):
    """The table of served versions; with ``error`` 35 it is encoded as version 0 whatever was asked (KIP-511)."""

    error: ErrorCode


class MetadataWanted(Record, frozen=True):
    """Metadata of ``topics``, None for all of them."""

    topics: tuple[str, ...] | None
    auto_create: bool


class TopicMetadata(Record, frozen=True):
    """One topic's metadata, ``state`` None with an error."""

    name: str
    error: ErrorCode
    state: TopicState | None = None


class ClusterMetadata(Record, frozen=True):
    """The answer to Metadata: live brokers, one of them named as the controller, and topics."""

    cluster_id: str
    controller: NodeId
    brokers: Mapping[NodeId, BrokerState]
    topics: tuple[TopicMetadata, ...]


class NewTopic(Record, frozen=True):
    """A topic to create. ``configs`` is as the client wrote it."""

    name: str
    partitions: int
    replication_factor: int
    assignment: tuple[tuple[NodeId, ...], ...]
    configs: Mapping[str, str | None]


class CreateTopics(Record, frozen=True):
    """Create topics, or only check whether they could be."""

    topics: tuple[NewTopic, ...]
    validate_only: bool


class DeleteTopics(Record, frozen=True):
    """Delete topics by name."""

    names: tuple[str, ...]


class TopicResult(Record, frozen=True):
    """How creating or deleting one topic went; ``reason`` in words."""

    name: str
    error: ErrorCode
    reason: str = ""


class TopicsChanged(Record, frozen=True):
    """The answer to CreateTopics and DeleteTopics."""

    results: tuple[TopicResult, ...]


class ConfigResource(Record, frozen=True):
    """A topic (kind 2) or broker (kind 4) whose settings are asked for; ``keys`` None means all."""

    kind: int
    name: str
    keys: tuple[str, ...] | None


class DescribeConfigs(Record, frozen=True):
    """Ask for settings."""

    resources: tuple[ConfigResource, ...]


class ConfigResult(Record, frozen=True):
    """The settings of one resource under Kafka's names."""

    resource: ConfigResource
    error: ErrorCode
    reason: str = ""
    configs: Mapping[str, str] = {}


class ConfigsDescribed(Record, frozen=True):
    """The answer to DescribeConfigs."""

    results: tuple[ConfigResult, ...]


# --- groups --------------------------------------------------------------------------------------------------------


class FindCoordinator(Record, frozen=True):
    """Who coordinates these groups? ``kind`` 0 is a group; others are not offered."""

    kind: int
    keys: tuple[str, ...]


class Coordinator(Record, frozen=True):
    """Where one group's coordinator is."""

    key: str
    error: ErrorCode
    node: NodeId = NONE
    host: str = ""
    port: int = NONE


class Coordinators(Record, frozen=True):
    """The answer to FindCoordinator."""

    found: tuple[Coordinator, ...]


class JoinGroup(Record, frozen=True):
    """Join or rejoin. A client that knows MEMBER_ID_REQUIRED (KIP-394) is given its name before it may join."""

    group: str
    member: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    knows_member_id_required: bool
    client_id: str = ""


class Joined(Record, frozen=True):
    """The answer to JoinGroup; ``members`` with their metadata only for the group's leader."""

    error: ErrorCode
    generation: int = NONE
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[tuple[str, bytes], ...] = ()


class SyncGroup(Record, frozen=True):
    """The leader brings the assignments, everyone fetches his own."""

    group: str
    generation: int
    member: str
    assignments: tuple[tuple[str, bytes], ...]


class Synced(Record, frozen=True):
    """The answer to SyncGroup."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class GroupHeartbeat(Record, frozen=True):
    """A member is alive."""

    group: str
    generation: int
    member: str


class GroupHeartbeatAnswer(Record, frozen=True):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    error: ErrorCode


class LeaveGroup(Record, frozen=True):
    """Members leave."""

    group: str
    members: tuple[str, ...]


class Left(Record, frozen=True):
    """The answer to LeaveGroup, member by member."""

    error: ErrorCode
    members: tuple[tuple[str, ErrorCode], ...] = ()


class CommittedOffset(Record, frozen=True):
    """A position a group has committed."""

    offset: int
    leader_epoch: int = NONE
    metadata: str | None = ""


class CommitOffsets(Record, frozen=True):
    """OffsetCommit. A generation of NONE is a consumer that assigns partitions itself."""

    group: str
    generation: int
    member: str
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]


class OffsetsCommitted(Record, frozen=True):
    """The answer to OffsetCommit, in its order."""

    parts: tuple[tuple[TopicPartition, ErrorCode], ...]


class GroupOffsetsWanted(Record, frozen=True):
    """OffsetFetch of one group; ``partitions`` None means all that it has committed."""

    group: str
    partitions: tuple[TopicPartition, ...] | None


class FetchOffsets(Record, frozen=True):
    """OffsetFetch of several groups (one, before version 8)."""

    groups: tuple[GroupOffsetsWanted, ...]


class GroupOffsets(Record, frozen=True):
    """What one group has committed, None where nothing."""

    group: str
    error: ErrorCode
    offsets: tuple[tuple[TopicPartition, CommittedOffset | None], ...] = ()


class OffsetsFetched(Record, frozen=True):
    """The answer to OffsetFetch."""

    groups: tuple[GroupOffsets, ...]


Request = (
    Produce
    | Fetch
    | OffsetsWanted
    | EpochsWanted
    | InitProducer
    | ApiVersions
    | MetadataWanted
    | CreateTopics
    | DeleteTopics
    | DescribeConfigs
    | FindCoordinator
    | JoinGroup
    | SyncGroup
    | GroupHeartbeat
    | LeaveGroup
    | CommitOffsets
    | FetchOffsets
)

Response = (
    Produced
    | FetchResponse
    | OffsetsFound
    | EpochsFound
    | InitProducerIdResponse
    | ApiVersionsAnswer
    | ClusterMetadata
    | TopicsChanged
    | ConfigsDescribed
    | Coordinators
    | Joined
    | Synced
    | GroupHeartbeatAnswer
    | Left
    | OffsetsCommitted
    | OffsetsFetched
)

#: A request of any type, for tables of handlers.
AnyRequest = Any

"""Requests and responses of Kafka's protocol as plain data, free of versions and of the library that encodes them.

They carry Kafka's names and are immutable. Where the core has a message for one partition (ListOffsets, ...), it is
used here and ``correlation`` is set by whoever asks the core; Fetch is the core's own altogether. Times are
milliseconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.reference.core import messages as core
from harness.reference.core.types import NONE, BrokerState, ErrorCode, NodeId, TopicPartition, TopicState


class Part(msgspec.Struct, frozen=True, gc=False):
    """Something inside a request or response."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request of a client or follower."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """The answer to a request."""


class Header(Part, frozen=True):
    """The begin of every request. ``client_id`` is None where the client gave none."""

    api_key: int
    version: int
    correlation: int
    client_id: str | None


# --- data ----------------------------------------------------------------------------------------------------------


class ProduceRequest(Request, frozen=True):
    """``parts`` holds the encoded records of each partition, None where the client sent none."""

    transactional: bool
    acks: int
    timeout_ms: int
    parts: tuple[tuple[TopicPartition, bytes | None], ...]


class ProduceResponse(Response, frozen=True):
    """Every partition's answer, in the order of the request."""

    parts: tuple[core.ProduceResponse, ...]


class ListOffsetsRequest(Request, frozen=True):
    """A question for each partition."""

    parts: tuple[core.ListOffsets, ...]


class FoundOffset(Part, frozen=True):
    """One partition's answer to ListOffsets; ``timestamp`` only where the question was a timestamp."""

    partition: TopicPartition
    error: ErrorCode
    offset: int = NONE
    leader_epoch: int = NONE
    timestamp: int = NONE


class ListOffsetsResponse(Response, frozen=True):
    """Every partition's answer, in the order of the request."""

    parts: tuple[FoundOffset, ...]


class OffsetForLeaderEpochRequest(Request, frozen=True):
    """A question for each partition (KIP-101)."""

    parts: tuple[core.OffsetForLeaderEpoch, ...]


class OffsetForLeaderEpochResponse(Response, frozen=True):
    """Every partition's answer, in the order of the request."""

    parts: tuple[core.OffsetForLeaderEpochResponse, ...]


class InitProducerIdRequest(Request, frozen=True):
    """Asks for a producer id. Transactions are not offered, so ``transactional`` is refused."""

    transactional: bool


# --- the cluster ---------------------------------------------------------------------------------------------------


class ApiVersionsRequest(Request, frozen=True):
    """Asks which requests are served. ``supported`` is False where the question's own version is too new."""

    supported: bool = True


class ApiVersionsResponse(Response, frozen=True):
    """The table of served versions; with ``error`` 35 it is encoded as version 0 whatever was asked (KIP-511)."""

    error: ErrorCode


class MetadataRequest(Request, frozen=True):
    """Asks for brokers and ``topics``, None for all of them."""

    topics: tuple[str, ...] | None
    auto_create: bool


class TopicMetadata(Part, frozen=True):
    """One topic's metadata, ``state`` None with an error."""

    name: str
    error: ErrorCode
    state: TopicState | None = None


class MetadataResponse(Response, frozen=True):
    """Live brokers, one of them named as the controller, and topics."""

    cluster_id: str
    controller: NodeId
    brokers: Mapping[NodeId, BrokerState]
    topics: tuple[TopicMetadata, ...]


class NewTopic(Part, frozen=True):
    """A topic to create. ``configs`` is as the client wrote it; counts of NONE stand for the defaults (KIP-464)."""

    name: str
    partitions: int = NONE
    replication_factor: int = NONE
    assignment: tuple[tuple[NodeId, ...], ...] = ()
    configs: Mapping[str, str | None] = {}


class CreateTopicsRequest(Request, frozen=True):
    """Creates topics, or only checks whether they could be."""

    topics: tuple[NewTopic, ...]
    validate_only: bool


class DeleteTopicsRequest(Request, frozen=True):
    """Deletes topics by name."""

    names: tuple[str, ...]


class TopicResult(Part, frozen=True):
    """The outcome of creating or deleting one topic; ``reason`` in words."""

    name: str
    error: ErrorCode
    reason: str = ""


class TopicsResponse(Response, frozen=True):
    """The answer to CreateTopics and to DeleteTopics, topics in the order of the request."""

    results: tuple[TopicResult, ...]


class ConfigResource(Part, frozen=True):
    """A topic (kind 2) or broker (kind 4) whose settings are asked for; ``keys`` None means all."""

    kind: int
    name: str
    keys: tuple[str, ...] | None


class DescribeConfigsRequest(Request, frozen=True):
    """Asks for settings."""

    resources: tuple[ConfigResource, ...]


class DescribedResource(Part, frozen=True):
    """The settings of one resource under Kafka's names."""

    resource: ConfigResource
    error: ErrorCode
    reason: str = ""
    configs: Mapping[str, str] = {}


class DescribeConfigsResponse(Response, frozen=True):
    """Every resource's settings, in the order of the request."""

    results: tuple[DescribedResource, ...]


# --- groups --------------------------------------------------------------------------------------------------------


class FindCoordinatorRequest(Request, frozen=True):
    """Asks who coordinates these groups. ``kind`` 0 is a group; others are not offered."""

    kind: int
    keys: tuple[str, ...]


class Coordinator(Part, frozen=True):
    """One group's coordinator and its address."""

    key: str
    error: ErrorCode
    node: NodeId = NONE
    host: str = ""
    port: int = NONE


class FindCoordinatorResponse(Response, frozen=True):
    """Every group's coordinator, in the order of the request."""

    found: tuple[Coordinator, ...]


class GroupRequest(Request, frozen=True):
    """Anything that members ask of the coordinator of ``group``."""

    group: str


class JoinGroupRequest(GroupRequest, frozen=True):
    """Joins or rejoins. A client that knows MEMBER_ID_REQUIRED (KIP-394) is given its name before it may join."""

    member: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    knows_member_id_required: bool
    client_id: str = ""


class JoinGroupResponse(Response, frozen=True):
    """The new generation; ``members`` with their metadata only for the group's leader."""

    error: ErrorCode
    generation: int = NONE
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member: str = ""
    members: tuple[tuple[str, bytes], ...] = ()


class SyncGroupRequest(GroupRequest, frozen=True):
    """The leader brings the assignments, every member fetches its own."""

    generation: int
    member: str
    assignments: tuple[tuple[str, bytes], ...]


class SyncGroupResponse(Response, frozen=True):
    """The member's assignment."""

    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(GroupRequest, frozen=True):
    """Says that a member is alive."""

    generation: int
    member: str


class HeartbeatResponse(Response, frozen=True):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    error: ErrorCode


class LeaveGroupRequest(GroupRequest, frozen=True):
    """Says that members leave."""

    members: tuple[str, ...]


class LeaveGroupResponse(Response, frozen=True):
    """An error for the whole request, and one for each member."""

    error: ErrorCode
    members: tuple[tuple[str, ErrorCode], ...] = ()


class CommittedOffset(Part, frozen=True):
    """A position that a group has committed."""

    offset: int
    leader_epoch: int = NONE
    metadata: str | None = ""


class OffsetCommitRequest(GroupRequest, frozen=True):
    """Commits positions. A generation of NONE is a consumer that assigns partitions itself."""

    generation: int
    member: str
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...]


class OffsetCommitResponse(Response, frozen=True):
    """Every partition's error, in the order of the request."""

    parts: tuple[tuple[TopicPartition, ErrorCode], ...]


class WantedOffsets(Part, frozen=True):
    """One group whose offsets are asked for; ``partitions`` None means all that it has committed."""

    group: str
    partitions: tuple[TopicPartition, ...] | None


class OffsetFetchRequest(Request, frozen=True):
    """Asks for the committed offsets of several groups (one, before version 8)."""

    groups: tuple[WantedOffsets, ...]


class FetchedOffsets(Part, frozen=True):
    """The committed offsets of one group, None where there is none."""

    group: str
    error: ErrorCode
    offsets: tuple[tuple[TopicPartition, CommittedOffset | None], ...] = ()


class OffsetFetchResponse(Response, frozen=True):
    """Every group's offsets, in the order of the request."""

    groups: tuple[FetchedOffsets, ...]

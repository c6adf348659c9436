"""Messages between clients, brokers and the controller, as data.

The simulator delivers them as they are. The server translates those of clients and followers to Kafka's wire protocol
and sends those of the controller as MessagePack (every class is a tagged msgspec struct). A request carries a
``correlation`` that its sender chose; the response repeats it. Times are milliseconds, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from harness.broker.core.types import (
    NO_NODE,
    NONE,
    AnyOrder,
    ErrorCode,
    Image,
    NodeId,
    Opaque,
    PartitionState,
    TopicConfig,
    TopicPartition,
)

#: ListOffsets timestamps with a meaning of their own (KIP-79).
LATEST: Final = -1
EARLIEST: Final = -2
#: Member epochs with a meaning of their own (KIP-848).
JOINS: Final = 0
LEAVES: Final = -1


class Message(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Anything that crosses a link."""


class EpochEnd(msgspec.Struct, frozen=True):
    """The largest leader epoch that was found and the offset at which it ends (exclusive)."""

    leader_epoch: int
    end_offset: int


class Deletion(NamedTuple):
    """A tombstone: a record without a value, which deletes its key from a compacted log. ``payload`` is a header's."""

    key: bytes
    payload: bytes


def content_of_record(key: bytes, payload: bytes, *, tombstone: bool) -> Any:
    """A record as its batch holds it: a pair, or a :class:`Deletion`."""
    return Deletion(key, payload) if tombstone else (key, payload)


class Marker(msgspec.Struct, frozen=True, gc=False):
    """The end of a transaction in a log partition: the content of a batch that its coordinator has written (rule 36).

    ``coordinator_epoch`` is the leader epoch of that coordinator; the version decides which producer epochs it fences.
    """

    commit: bool
    coordinator_epoch: int
    transaction_version: int


class RecordBatch(msgspec.Struct, frozen=True, gc=False):
    """One batch, the unit of append, replication and idempotence.

    ``records`` is opaque to the core: a tuple of (key, payload) in the simulator, an encoded v2 batch in the server.
    ``base_offset`` and ``leader_epoch`` are NONE until the leader assigns them (rule 1). ``intact`` is false where the
    checksum shows that the records are not those that were appended (rule 25): followers and consumers look at it,
    leaders do not. A batch is ``transactional`` where its records count with their transaction only; one with a
    ``marker`` ends that, and has no record that a consumer gets.

    Of a compacted topic, ``stamped_us`` is the leader's time at the append, ``kept`` the offsets of the records that a
    cleaner has left (None: all ``count`` of them), and ``delete_horizon_us`` the time from which on tombstones go
    (rules 31, 32). Its ``records`` are (key, payload) or :class:`Deletion` there.
    """

    count: int
    size_bytes: int
    records: Opaque[Any]
    base_offset: int = NONE
    leader_epoch: int = NONE
    producer_id: int = NONE
    producer_epoch: int = NONE
    base_sequence: int = NONE
    intact: bool = True
    stamped_us: int = NONE
    delete_horizon_us: int = NONE
    kept: tuple[int, ...] | None = None
    transactional: bool = False
    marker: Marker | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last record."""
        return self.base_offset + self.count

    @property
    def offsets(self) -> Sequence[int]:
        """The offsets of its ``records``, in their order."""
        return range(self.base_offset, self.base_offset + self.count) if self.kept is None else self.kept

    def placed(self) -> Iterator[tuple[int, Any]]:
        """Each record with its offset; a batch of a leader's own has an offset and none."""
        return zip(self.offsets, self.records, strict=False)


class PartitionAnswer(Message, frozen=True):
    """An answer about one partition. With an ``error``, what else it has is at its default."""

    correlation: int
    partition: TopicPartition
    error: ErrorCode


# --- clients to brokers --------------------------------------------------------------------------------------------


class Produce(Message, frozen=True):
    """Append one batch to one partition.

    With ``acks`` 0 no response ever reaches the client: success is silent, and on a refusal (a ProduceResponse with
    an error) the edge closes the connection, so that the client learns to ask for metadata, as with Kafka.
    """

    correlation: int
    partition: TopicPartition
    acks: int
    timeout_ms: int
    batch: RecordBatch


class WriteTxnMarkers(Produce, frozen=True):
    """A transaction coordinator has the leader of a partition append a marker, as any write with acks=all (rule 36)."""


class ProduceResponse(PartitionAnswer, frozen=True):
    """``base_offset`` is NONE with an error. A duplicate of a known batch answers NONE-error and the old offset."""

    base_offset: int = NONE
    log_start_offset: int = 0


class FetchPartition(msgspec.Struct, frozen=True, gc=False):
    """A fetch of one partition. An epoch of NONE is not checked; ``last_fetched_epoch`` NONE: no truncation."""

    partition: TopicPartition
    fetch_offset: int
    current_leader_epoch: int = NONE
    last_fetched_epoch: int = NONE
    max_bytes: int = 1_048_576


class CleanedFetchPartition(FetchPartition, frozen=True, gc=False):
    """The same by a follower for which tombstones wait: its cleaner has been through all below (rule 32)."""

    cleaned_to: int = NONE


class Fetch(Message, frozen=True):
    """A follower's (``replica_id`` >= 0) or a consumer's (NONE) fetch: up to ``max_wait_ms`` for ``min_bytes``.

    A consumer that would read from a follower says in which ``rack`` it is (KIP-392). ``read_committed``: no record
    from the first open transaction on (rule 35).
    """

    correlation: int
    replica_id: NodeId
    max_wait_ms: int
    partitions: tuple[FetchPartition, ...]
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    broker_epoch: int = NONE
    rack: str = ""
    read_committed: bool = False


class AbortedTransaction(msgspec.Struct, frozen=True, gc=False):
    """An aborted transaction of a log partition: its first record, and its marker."""

    producer_id: int
    first_offset: int
    marker_offset: int


class FetchedPartition(msgspec.Struct, frozen=True, gc=False):
    """The answer for one partition. ``diverging`` excludes batches: truncate there first (KIP-595).

    ``high_watermark`` is the leader's as it was before this fetch was taken into account (rule 6), or a follower's own
    that serves a consumer. ``read_replica`` excludes batches too: a consumer should read there instead (rule 22).
    A reader of committed records gets the ``aborted`` transactions among the batches, and passes over them (rule 35).
    """

    partition: TopicPartition
    error: ErrorCode
    high_watermark: int = NONE
    log_start_offset: int = NONE
    diverging: EpochEnd | None = None
    batches: tuple[RecordBatch, ...] = ()
    read_replica: NodeId = NO_NODE
    aborted: tuple[AbortedTransaction, ...] = ()


class FetchResponse(Message, frozen=True):
    """The answer to a Fetch, partitions in its order."""

    correlation: int
    partitions: tuple[FetchedPartition, ...]


class ListOffsets(Message, frozen=True):
    """Ask a leader for an offset: ``timestamp`` is LATEST (the high watermark for a consumer) or EARLIEST.

    With ``read_committed`` LATEST is the last stable offset (rule 35).
    """

    correlation: int
    partition: TopicPartition
    timestamp: int
    replica_id: NodeId = NO_NODE
    current_leader_epoch: int = NONE
    read_committed: bool = False


class ListOffsetsResponse(PartitionAnswer, frozen=True):
    """``offset`` is NONE with an error; OFFSET_NOT_AVAILABLE until the high watermark reached the epoch (KIP-207)."""

    offset: int = NONE
    leader_epoch: int = NONE


class OffsetForLeaderEpoch(Message, frozen=True):
    """The question where ``leader_epoch`` ends in the leader's log (KIP-101, KIP-279), of followers and consumers."""

    correlation: int
    partition: TopicPartition
    leader_epoch: int
    current_leader_epoch: int = NONE
    replica_id: NodeId = NO_NODE


class OffsetForLeaderEpochResponse(PartitionAnswer, frozen=True):
    """``end.leader_epoch`` is the largest epoch not above the one asked for; NONE, NONE without one."""

    end: EpochEnd = EpochEnd(NONE, NONE)


class Metadata(Message, frozen=True):
    """Ask any broker for its image of the cluster. ``topics`` None means all."""

    correlation: int
    topics: tuple[str, ...] | None = None


class MetadataResponse(Message, frozen=True):
    """The broker's own image; it may be stale."""

    correlation: int
    image: Image


class InitProducerId(Message, frozen=True):
    """Ask any broker for a producer id (KIP-98), or a transaction coordinator for that of a ``transactional_id``.

    That one ends what earlier producers with this transactional id left open, and fences them (rule 38). A producer
    that goes on under a new epoch names the ``producer_id`` and epoch that it has (KIP-360).
    """

    correlation: int
    transactional_id: str | None = None
    timeout_ms: int = 0
    producer_id: int = NONE
    producer_epoch: int = NONE


class CoordinatorAnswer(Message, frozen=True):
    """An answer of a transaction coordinator; the producer id and epoch to go on with are NONE with an error."""

    correlation: int
    error: ErrorCode
    producer_id: int = NONE
    producer_epoch: int = NONE


class InitProducerIdResponse(CoordinatorAnswer, frozen=True):
    """The id and epoch of a producer."""


class AddPartitionsToTxn(Message, frozen=True):
    """A producer is about to write to these log partitions in its transaction, which the first begins (rule 37)."""

    correlation: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


class AddPartitionsToTxnResponse(CoordinatorAnswer, frozen=True):
    """The producer may write."""


class EndTxn(Message, frozen=True):
    """A producer asks for the end of its transaction."""

    correlation: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool


class EndTxnResponse(CoordinatorAnswer, frozen=True):
    """The end is decided, for good. Under transaction version 2 the producer goes on with a new epoch (rule 39)."""


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """A position that a group has committed, with the leader epoch of the record before it, and the client's own note.

    ``offset`` NONE says that the group has committed none; ``leader_epoch`` NONE that its client knew none (KIP-320).
    """

    offset: int
    leader_epoch: int = NONE
    metadata: str | None = ""


#: The answer of a group that has committed nothing.
NOT_COMMITTED: Final = CommittedOffset(NONE)


class GroupRequest(Message, frozen=True):
    """A request to the coordinator of a ``group``, by its ``member``; "" and NONE for no member.

    ``member_epoch`` is the epoch of the member (KIP-848), or the generation that it is in (classic protocol).
    """

    correlation: int
    group: str
    member: str = ""
    member_epoch: int = NONE


class GroupAnswer(Message, frozen=True):
    """An answer of a group coordinator; with an ``error``, what else it has is at its default."""

    correlation: int
    error: ErrorCode


class ConsumerGroupHeartbeat(GroupRequest, frozen=True):
    """A member joins (epoch :data:`JOINS`), is alive, or leaves (:data:`LEAVES`) (rule 43, KIP-848).

    ``owned`` are the log partitions that it has. One that does not give up others within ``rebalance_timeout_ms`` is
    no member any more.
    """

    rebalance_timeout_ms: int = 300_000
    topics: tuple[str, ...] = ()
    owned: tuple[TopicPartition, ...] = ()


class ConsumerGroupHeartbeatResponse(GroupAnswer, frozen=True):
    """The epoch of the member and the log partitions that it may read; it gives up all others."""

    member_epoch: int = NONE
    assigned: tuple[TopicPartition, ...] = ()


class Offer(msgspec.Struct, frozen=True, gc=False):
    """A protocol by which a member of a classic group would share, and what it says to the group's leader.

    ``topics`` are those that it reads; None where only the leader can tell.
    """

    protocol: str
    metadata: Opaque[bytes] = b""
    topics: tuple[str, ...] | None = None


class GroupJoin(GroupRequest, frozen=True):
    """A member joins, or joins again, with its ``offers``, best liked first (rule 51). It has no ``member_epoch``.

    Without a name it is given one: where it is ``named_first`` with MEMBER_ID_REQUIRED, to join again under it
    (KIP-394). It is answered when the next generation begins.
    """

    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    protocol_type: str = "consumer"
    offers: tuple[Offer, ...] = ()
    named_first: bool = True
    client_id: str = ""
    client_host: str = ""


class GroupJoinResponse(GroupAnswer, frozen=True):
    """The new ``generation``: its ``protocol``, and its ``leader``, which alone gets what ``members`` said of it.

    ``member`` is the name of who asked, also with MEMBER_ID_REQUIRED.
    """

    member: str = ""
    generation: int = NONE
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[tuple[str, bytes], ...] = ()


class GroupSync(GroupRequest, frozen=True):
    """A member asks for its assignment in the generation; the leader brings ``assignments`` by name (rule 53)."""

    assignments: tuple[tuple[str, bytes], ...] = ()


class GroupSyncResponse(GroupAnswer, frozen=True):
    """The ``assignment`` of the member, once the generation is committed."""

    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


class GroupHeartbeat(GroupRequest, frozen=True):
    """A member of a generation is alive (rule 54)."""


class GroupHeartbeatResponse(GroupAnswer, frozen=True):
    """It is a member; with REBALANCE_IN_PROGRESS it is to join again."""


class GroupLeave(GroupRequest, frozen=True):
    """A member leaves a classic group. ``member_epoch`` is not looked at."""


class GroupLeaveResponse(GroupAnswer, frozen=True):
    """It has left; who is not a member is UNKNOWN_MEMBER_ID."""


class OffsetCommit(GroupRequest, frozen=True):
    """Let a group remember an offset of each of these log partitions (rule 44)."""

    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...] = ()


class OffsetCommitResponse(GroupAnswer, frozen=True):
    """The group remembers all of them, or none."""


class TxnOffsetCommit(OffsetCommit, frozen=True):
    """The same with the transaction of a producer, which has added the log of groups to it (rule 46, KIP-447)."""

    producer_id: int = NONE
    producer_epoch: int = NONE


class TxnOffsetCommitResponse(GroupAnswer, frozen=True):
    """All of them are pending, or none."""


class DeleteGroup(GroupRequest, frozen=True):
    """Let a group without members be forgotten, with its offsets (rule 57)."""


class DeleteGroupResponse(GroupAnswer, frozen=True):
    """It is gone, or NON_EMPTY_GROUP, or GROUP_ID_NOT_FOUND."""


class DeleteOffsets(GroupRequest, frozen=True):
    """Let a group forget its offsets of these log partitions (rule 56)."""

    partitions: tuple[TopicPartition, ...] = ()


class DeleteOffsetsResponse(GroupAnswer, frozen=True):
    """They are gone, apart from those that are ``read`` by members."""

    read: tuple[TopicPartition, ...] = ()


class OffsetFetch(GroupRequest, frozen=True):
    """Ask which offsets a group remembers of these log partitions, None: of all; ``require_stable``: none that pend."""

    partitions: tuple[TopicPartition, ...] | None = ()
    require_stable: bool = False


class OffsetFetchResponse(GroupAnswer, frozen=True):
    """The offsets, :data:`NOT_COMMITTED` where the group remembers nothing.

    With UNSTABLE_OFFSET_COMMIT, ``unstable`` are those that some transaction may supersede; the others are told.
    """

    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...] = ()
    unstable: tuple[TopicPartition, ...] = ()


class CreateTopic(Message, frozen=True):
    """Create a topic; brokers forward it to the controller. ``assignment``: replicas by partition, else placed."""

    correlation: int
    topic: str
    partitions: int
    replication_factor: int
    config: TopicConfig
    assignment: tuple[tuple[NodeId, ...], ...] = ()


class DeleteTopic(Message, frozen=True):
    """Delete a topic and its logs; brokers forward it to the controller."""

    correlation: int
    topic: str


class MoveLeader(Message, frozen=True):
    """Move leadership to ``leader``, a live ISR member (a planned move, S03); brokers forward it to the controller."""

    correlation: int
    topic: str
    partition: int
    leader: NodeId


class TopicResponse(Message, frozen=True):
    """The answer to CreateTopic, DeleteTopic and MoveLeader; ``reason`` is a sentence about the error."""

    correlation: int
    topic: str
    error: ErrorCode
    reason: str = ""


# --- brokers to the controller -------------------------------------------------------------------------------------


class RegisterBroker(Message, frozen=True):
    """A broker's new incarnation asks for a broker epoch (rule 20). ``incarnation`` is unique per process start.

    ``previous_broker_epoch`` is that of the incarnation before, if it stopped cleanly, NONE otherwise (rule 15).
    """

    broker: NodeId
    incarnation: int
    host: str = ""
    port: int = 0
    rack: str = ""
    previous_broker_epoch: int = NONE


class RegisterBrokerResponse(Message, frozen=True):
    """DUPLICATE_BROKER_REGISTRATION while another incarnation's session is valid."""

    error: ErrorCode
    incarnation: int
    broker_epoch: int = NONE


class Heartbeat(Message, frozen=True):
    """Keeps the session; the broker has applied ``metadata_version``. ``leaving`` asks for controlled shutdown.

    ``offline`` are the log partitions that this broker had in directories that have failed (KIP-858).
    """

    broker: NodeId
    broker_epoch: int
    metadata_version: int
    leaving: bool = False
    offline: tuple[TopicPartition, ...] = ()


class HeartbeatResponse(Message, frozen=True):
    """Carries the image if the broker's is older. STALE_BROKER_EPOCH: register again. ``may_leave``: leads nothing."""

    error: ErrorCode
    broker_epoch: int
    fenced: bool = True
    may_leave: bool = False
    image: Image | None = None


class MetadataUpdate(Message, frozen=True):
    """The controller's push after a change; a lost one is made good by the next heartbeat."""

    image: Image


class IsrMember(msgspec.Struct, frozen=True, gc=False):
    """A member of a proposed ISR with the broker epoch under which it fetched (KIP-903)."""

    broker: NodeId
    broker_epoch: int = NONE


class AlterPartition(Message, frozen=True):
    """A leader proposes a new ISR (KIP-497). It counts only once accepted."""

    correlation: int
    broker: NodeId
    broker_epoch: int
    partition: TopicPartition
    leader_epoch: int
    partition_epoch: int
    isr: AnyOrder[tuple[IsrMember, ...]]


class AlterPartitionResponse(PartitionAnswer, frozen=True):
    """The accepted state, or FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INELIGIBLE_REPLICA, STALE_BROKER_EPOCH."""

    state: PartitionState | None = None


class LogEnd(Message, frozen=True):
    """The controller asks a replica of a leaderless partition how far its log goes (rules 27, 28)."""

    partition: TopicPartition
    leader_epoch: int


class LogEndResponse(Message, frozen=True):
    """The log of ``broker``, which does not follow in ``leader_epoch``: its last record's epoch (NONE: empty), its end.

    ``broker_epoch`` is that of the incarnation that has looked.
    """

    broker: NodeId
    broker_epoch: int
    partition: TopicPartition
    leader_epoch: int
    last_epoch: int
    end_offset: int


class AllocateProducerIds(Message, frozen=True):
    """A broker asks for a block of producer ids."""

    broker: NodeId
    broker_epoch: int


class AllocateProducerIdsResponse(Message, frozen=True):
    """Ids ``first`` to ``first + count - 1`` belong to the broker that asked."""

    error: ErrorCode
    first: int = NONE
    count: int = 0

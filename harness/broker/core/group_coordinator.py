"""The group coordinator: who is a member, what each may read, and the offsets that groups remember (rules 42 to 46).

The leader of the one log partition of :data:`OFFSETS_TOPIC` is the coordinator of all groups. A group with its members
is one record there, and each log partition's offset another. All that changes a group is written first, and counts, and
is answered, once it is committed; what is asked of the group meanwhile waits for its turn. So a commit of a member that
was given up meets the record that says so, and a member that is new reads all that was committed before it came.

A commit in a transaction is such a record, too, written for the producer; a marker on this log decides about it. A
group is deleted by tombstones of all that is its own, and so is one that was idle for offsets.retention.minutes.

A member is known by its name and its epoch. Heartbeats keep it in the group; silence for a session, or a log partition
that it does not give up in time, ends its membership.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.coordinator import Coordinator, refusal_of
from harness.broker.core.effects import Context, Timer
from harness.broker.core.group_membership import GroupRecord, MemberRecord, reconciled, targets_of
from harness.broker.core.group_offsets import GroupOffsets
from harness.broker.core.messages import (
    JOINS,
    LEAVES,
    NOT_COMMITTED,
    CommittedOffset,
    RecordBatch,
    content_of_record,
)
from harness.broker.core.replica import Replica
from harness.broker.core.types import (
    NO_ERROR,
    NO_NODE,
    NONE,
    OFFSETS_TOPIC,
    ErrorCode,
    NodeId,
    Outside,
    TopicPartition,
)

#: The log of the coordinator.
LOG: Final = TopicPartition(OFFSETS_TOPIC, 0)
LOOK: Final = Timer("groups")
#: Requests that wait for their turn at one group. Clients have one under way each; more have given up waiting.
WAITING_MAX: Final = 1_000
_ANSWERS: Final[Mapping[type[messages.GroupRequest], type[messages.GroupAnswer]]] = {
    messages.ConsumerGroupHeartbeat: messages.ConsumerGroupHeartbeatResponse,
    messages.OffsetCommit: messages.OffsetCommitResponse,
    messages.TxnOffsetCommit: messages.TxnOffsetCommitResponse,
    messages.OffsetFetch: messages.OffsetFetchResponse,
    messages.DeleteGroup: messages.DeleteGroupResponse,
}


class RecordKey(msgspec.Struct, frozen=True, array_like=True):
    """The key of a record of the coordinator's log: a group, or the offset of a log partition in it."""

    group: str
    partition: TopicPartition | None = None


class _UnderWay(msgspec.Struct, frozen=True):
    """A change that is being written, and the answer that its client gets when it is committed.

    ``producer`` is the id and epoch of the one with whose transaction the offsets count, None where they count at once.
    """

    record: GroupRecord
    offsets: dict[TopicPartition, CommittedOffset]
    client: NodeId
    answer: messages.GroupAnswer | None
    producer: tuple[int, int] | None = None


class _Deletion(_UnderWay, frozen=True):
    """The group is forgotten, with all its offsets (rule 57)."""


class _Marking(msgspec.Struct, frozen=True):
    """A marker that is being written, and the transaction coordinator that waits for it."""

    client: NodeId
    message: messages.WriteTxnMarkers


class _Waiting(msgspec.Struct, frozen=True):
    """A request that waits for its turn."""

    client: NodeId
    message: messages.GroupRequest


class Group(msgspec.Struct, eq=False):
    """One group: what is committed of it, the change that is under way, and who waits.

    ``heard_us`` is when each member was last heard, ``revoking_us`` since when one has something to give up, and
    ``changed_us`` when the group last changed. None is in the log: for a new coordinator these times begin again.
    """

    record: GroupRecord = GroupRecord()
    offsets: GroupOffsets[CommittedOffset] = msgspec.field(default_factory=GroupOffsets)
    next: _UnderWay | None = None
    waiting: deque[_Waiting] = msgspec.field(default_factory=deque)
    heard_us: dict[str, int] = {}
    revoking_us: dict[str, int] = {}
    #: No search waits for so long.
    changed_us: Outside[int] = 0

    def timed(self, now_us: int) -> None:
        """Forget times of members that have gone, and begin those of members that are new."""
        members = self.record.members
        self.changed_us = now_us
        self.heard_us = {name: self.heard_us.get(name, now_us) for name in members}
        revoking = [name for name, member in members.items() if member.revoking]
        self.revoking_us = {name: self.revoking_us.get(name, now_us) for name in revoking}

    def silent(self, now_us: int, session_us: int) -> list[str]:
        """The members that were not heard for a session, or keep for too long what they are to give up."""
        return [
            name
            for name, member in self.record.members.items()
            if now_us - self.heard_us[name] > session_us
            or now_us - self.revoking_us.get(name, now_us) > member.rebalance_timeout_ms * 1000
        ]

    def idle(self, now_us: int, retention_us: int) -> bool:
        """It has no member, and offsets that are not pending and may be forgotten now."""
        if self.record.members or now_us - self.changed_us <= retention_us:
            return False
        partitions = self.offsets.partitions()
        return bool(partitions) and not self.offsets.unstable(partitions)


class GroupCoordinator(Coordinator):
    """The part of one broker that coordinates groups. It does something only while that leads :data:`LOG`.

    It reads the log when it is first asked: brokers over sockets coordinate groups by themselves, and never ask it.
    """

    _groups: dict[str, Group]
    _asked: dict[int, str]
    _markers: dict[int, _Marking]
    _has_read: bool

    def __init__(self, context: Context, write: Callable[[messages.Produce], None]) -> None:
        self._groups = {}
        super().__init__(context, write, LOG, LOOK)

    @property
    def members(self) -> int | None:
        """The number of members, as far as it is committed; None where it does not coordinate, or has not read."""
        if self._replica is None or not self._has_read:
            return None
        return sum(len(group.record.members) for group in self._groups.values())

    def word_of(self, name: str) -> Group | None:
        """The group of this name as a client would be told of it now; None where this broker does not coordinate.

        What was not read yet is not read by this: it has no effect.
        """
        replica = self._replica
        if replica is None or not replica.leading:
            return None
        if self._has_read:
            return self._groups.get(name, Group()) if self._loaded(replica) else None
        return type(self)(self._context, self._write)._word_of_log(name, replica)  # noqa: SLF001 - of the same class

    def _word_of_log(self, name: str, replica: Replica) -> Group | None:
        self.lead(replica)
        self._load(replica)
        return self.word_of(name)

    # --- elections -----------------------------------------------------------------------------------------------

    @override
    def resign(self) -> None:
        """Forget everything; who waits is told."""
        super().resign()
        for group in self._groups.values():
            if group.next is not None and group.next.answer is not None:
                self._refuse(group.next.client, group.next.answer, ErrorCode.NOT_COORDINATOR)
            for waiting in group.waiting:
                self._refuse(waiting.client, _answer_to(waiting.message), ErrorCode.NOT_COORDINATOR)
        self._groups = {}
        self._asked = {}
        self._markers = {}
        self._has_read = False

    @override
    def _unavailable(self) -> ErrorCode:
        replica = self._replica
        if replica is not None and not self._has_read:
            self._load(replica)
            self._look_again(replica)
        return super()._unavailable()

    @override
    def _resume(self) -> None:
        """Let the sessions of all members begin again (rule 45)."""
        for group in self._groups.values():
            group.timed(self._context.now_us)

    def _load(self, replica: Replica) -> None:
        """Read the log to its end (rule 45)."""
        self._has_read = True
        for batch in self._read(replica):
            if batch.marker is not None:
                self._decide(batch.producer_id, commit=batch.marker.commit)
            for record in batch.records:
                key, value = record
                named = msgspec.msgpack.decode(key, type=RecordKey)
                group = self._groups.setdefault(named.group, Group())
                if type(record) is messages.Deletion:
                    self._load_deletion(group, named.partition)
                elif named.partition is None:
                    self._load_members(group, msgspec.msgpack.decode(value, type=GroupRecord))
                else:
                    offset = msgspec.msgpack.decode(value, type=CommittedOffset)
                    self._load_offset(group, named.partition, offset, batch)

    def _load_deletion(self, group: Group, partition: TopicPartition | None) -> None:
        """A tombstone of the group, or of one offset (rule 57)."""
        if partition is None:
            group.record = GroupRecord()
        else:
            group.offsets.drop((partition,))

    def _load_members(self, group: Group, record: GroupRecord) -> None:
        group.record = record

    def _load_offset(
        self, group: Group, partition: TopicPartition, offset: CommittedOffset, batch: RecordBatch
    ) -> None:
        self._keep(group, {partition: offset}, batch.base_offset, batch.producer_id)

    # --- time ----------------------------------------------------------------------------------------------------

    @override
    def _look(self) -> None:
        """Give up who is silent (rule 43), and groups that are idle (rule 57)."""
        now_us, config = self._context.now_us, self._context.config
        for name, group in self._groups.items():
            if group.next is not None:
                continue
            if silent := group.silent(now_us, config.session_timeout_ms * 1000):
                self._change(name, group, group.record.without(silent), NO_NODE, None)
            elif group.idle(now_us, config.offsets_retention_minutes * 60_000_000):
                self._delete(name, group, NO_NODE, None)

    # --- requests ------------------------------------------------------------------------------------------------

    def ask(self, message: messages.GroupRequest) -> None:
        """Answer, or let the request wait while a change of its group is under way."""
        client, error = self._context.sender, self._unavailable()
        if error:
            self._refuse(client, _answer_to(message), error)
            return
        group = self._groups.setdefault(message.group, Group())
        self._hear(group, message)
        if group.next is None:
            self._serve(client, group, message)
        elif len(group.waiting) < WAITING_MAX:
            group.waiting.append(_Waiting(client, message))
        else:
            self._refuse(client, _answer_to(message), ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _hear(self, group: Group, message: messages.GroupRequest) -> None:
        member = group.record.members.get(message.member)
        alive = isinstance(message, messages.ConsumerGroupHeartbeat) and member is not None
        if alive and not _epoch_error(member, message):
            group.heard_us[message.member] = self._context.now_us

    def _serve(self, client: NodeId, group: Group, message: messages.GroupRequest) -> None:
        if isinstance(message, messages.ConsumerGroupHeartbeat):
            self._heartbeat(client, group, message)
        elif isinstance(message, messages.OffsetCommit):
            self._commit(client, group, message)
        elif isinstance(message, messages.OffsetFetch):
            self._fetch(client, group, message)
        elif isinstance(message, messages.DeleteGroup):
            self._asked_to_delete(client, group, message)

    def _heartbeat(self, client: NodeId, group: Group, message: messages.ConsumerGroupHeartbeat) -> None:
        """Rule 43: let a member come, stay or go, and tell it what it may read."""
        record, name = group.record, message.member
        answer = messages.ConsumerGroupHeartbeatResponse(message.correlation, NO_ERROR)
        joins = message.member_epoch == JOINS
        error = NO_ERROR if joins else _epoch_error(record.members.get(name), message)
        if error:
            self._refuse(client, answer, error)
            return
        if message.member_epoch == LEAVES:
            self._change(message.group, group, record.without((name,)), client, answer)
            return
        if joins:
            record = record.joined(name, message.topics, message.rebalance_timeout_ms)
        target = targets_of(record.members, self._partitions_of)[name]
        taken = self._taken(record, name)
        member = reconciled(record.members[name], record.epoch, target, owned=message.owned, taken=taken)
        answer = messages.ConsumerGroupHeartbeatResponse(message.correlation, NO_ERROR, member.epoch, member.assigned)
        if member == group.record.members.get(name):
            self._context.send(client, answer)
        else:
            self._change(message.group, group, record.having(name, member), client, answer)

    def _taken(self, record: GroupRecord, name: str) -> set[TopicPartition]:
        """The log partitions that this member cannot have now."""
        return record.held_by_others(name)

    def _partitions_of(self, topic: str) -> int:
        state = self._context.image.topics.get(topic)
        return 0 if state is None else len(state.partitions)

    def _commit(self, client: NodeId, group: Group, message: messages.OffsetCommit) -> None:
        """Rule 44: have offsets written, of a member in its present epoch only. Rule 46: in a transaction likewise."""
        answer, error = _answer_to(message), self._commit_error(group.record, message)
        producer: tuple[int, int] | None = None
        if isinstance(message, messages.TxnOffsetCommit):
            error = self._transactional_error(group.record, message)
            producer = (message.producer_id, message.producer_epoch)
        if error:
            self._refuse(client, answer, error)
        else:
            self._put(message.group, group, _UnderWay(group.record, dict(message.offsets), client, answer, producer))

    def _commit_error(self, record: GroupRecord, message: messages.GroupRequest) -> ErrorCode:
        """Only a member may commit while there are members."""
        return NO_ERROR if not record.members and not message.member else _member_error(record, message)

    def _transactional_error(self, record: GroupRecord, message: messages.TxnOffsetCommit) -> ErrorCode:
        """The same as without a transaction; the error has the name that it had before KIP-848."""
        error = self._commit_error(record, message)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def _fetch(self, client: NodeId, group: Group, message: messages.OffsetFetch) -> None:
        """Rule 44: a member asks in its present epoch, so a coordinator that was superseded cannot mislead it."""
        error = _member_error(group.record, message) if message.member else NO_ERROR
        if error:
            self._refuse(client, _answer_to(message), error)
            return
        asked = group.offsets.partitions() if message.partitions is None else message.partitions
        unstable = self._unstable(group, asked) if message.require_stable else ()
        told = [(each, group.offsets.of(each, NOT_COMMITTED)) for each in asked if each not in unstable]
        error = ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else NO_ERROR
        self._context.send(client, messages.OffsetFetchResponse(message.correlation, error, tuple(told), unstable))

    def _unstable(self, group: Group, asked: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Rule 46: those whose offset may be superseded by a transaction that is open."""
        return tuple(each for each in asked if group.offsets.unstable((each,)))

    def _asked_to_delete(self, client: NodeId, group: Group, message: messages.DeleteGroup) -> None:
        """Rule 57: only a group without members is deleted."""
        answer = _answer_to(message)
        if group.record.members:
            self._refuse(client, answer, ErrorCode.NON_EMPTY_GROUP)
        elif not group.record.epoch and not group.offsets.partitions():
            self._refuse(client, answer, ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            self._delete(message.group, group, client, answer)

    # --- changes -------------------------------------------------------------------------------------------------

    def _change(
        self, name: str, group: Group, record: GroupRecord, client: NodeId, answer: messages.GroupAnswer | None
    ) -> None:
        """Have another state of the members written."""
        self._put(name, group, _UnderWay(record, {}, client, answer))

    def _delete(self, name: str, group: Group, client: NodeId, answer: messages.GroupAnswer | None) -> None:
        """Have tombstones written of all that the group has, of what is pending too (rule 57)."""
        self._put(name, group, _Deletion(GroupRecord(), {}, client, answer))

    def _put(self, name: str, group: Group, change: _UnderWay) -> None:
        group.next = change
        correlation = self._context.correlation()
        self._asked[correlation] = name
        encode = msgspec.msgpack.encode
        if type(change) is _Deletion:
            keys = [*map(partial(RecordKey, name), sorted(group.offsets.partitions())), RecordKey(name)]
            records = [content_of_record(encode(key), b"", tombstone=True) for key in keys]
        else:
            records = [(encode(RecordKey(name, each)), encode(offset)) for each, offset in change.offsets.items()]
            records = records or [(encode(RecordKey(name)), encode(change.record))]
        self._append(correlation, *records, producer=change.producer)

    def end(self, message: messages.WriteTxnMarkers) -> None:
        """Rule 46: have a marker written; with it the producer's offsets count, or are gone."""
        client, error = self._context.sender, self._unavailable()
        if error:
            self._context.send(client, messages.ProduceResponse(message.correlation, message.partition, error))
            return
        correlation = self._context.correlation()
        self._markers[correlation] = _Marking(client, message)
        self._write(replace(message, correlation=correlation))

    def on_written(self, message: messages.ProduceResponse) -> None:
        """A change or a marker is committed, or was refused: then nothing of it counts, and it is to be repeated."""
        marking = self._markers.pop(message.correlation, None)
        if marking is not None:
            self._on_marker(marking, message)
        name = self._asked.pop(message.correlation, None)
        if name is None:
            return
        group = self._groups[name]
        done, group.next = group.next, None
        assert done is not None, "one change of a group is under way at a time"
        if not message.error:
            group.record = done.record
            if type(done) is _Deletion:
                group.offsets = GroupOffsets()
            producer_id = NONE if done.producer is None else done.producer[0]
            self._keep(group, done.offsets, message.base_offset, producer_id)
            group.timed(self._context.now_us)
        if done.answer is not None:
            if message.error:
                self._refuse(done.client, done.answer, refusal_of(message.error))
            else:
                self._context.send(done.client, done.answer)
        while group.waiting and group.next is None:
            waiting = group.waiting.popleft()
            self._serve(waiting.client, group, waiting.message)

    def _on_marker(self, marking: _Marking, written: messages.ProduceResponse) -> None:
        batch = marking.message.batch
        if not written.error and batch.marker is not None:
            self._decide(batch.producer_id, commit=batch.marker.commit)
        self._context.send(marking.client, replace(written, correlation=marking.message.correlation))

    def _keep(
        self, group: Group, offsets: dict[TopicPartition, CommittedOffset], log_offset: int, producer_id: int
    ) -> None:
        """Offsets are on the log: remember them, or keep them until the end of their producer's transaction."""
        if producer_id == NONE:
            group.offsets.commit(offsets, log_offset)
        else:
            group.offsets.hold(producer_id, offsets, log_offset)

    def _decide(self, producer_id: int, *, commit: bool) -> None:
        """The transaction of a producer has ended, for all groups."""
        for group in self._groups.values():
            group.offsets.end(producer_id, commit=commit)

    def _refuse(self, client: NodeId, answer: messages.GroupAnswer, error: ErrorCode) -> None:
        self._context.send(client, type(answer)(answer.correlation, error))


def _epoch_error(member: MemberRecord | None, message: messages.GroupRequest) -> ErrorCode:
    """Is this heartbeat one of a member in its present epoch, or in the one before whose end it cannot know?"""
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    epoch = message.member_epoch
    if epoch in (member.epoch, LEAVES):
        return NO_ERROR
    owned = message.owned if isinstance(message, messages.ConsumerGroupHeartbeat) else ()
    missed = epoch == member.previous_epoch and set(member.assigned).issuperset(owned)
    return NO_ERROR if missed else ErrorCode.FENCED_MEMBER_EPOCH


def _member_error(record: GroupRecord, message: messages.GroupRequest) -> ErrorCode:
    member = record.members.get(message.member)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return NO_ERROR if message.member_epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH


def _answer_to(message: messages.GroupRequest) -> messages.GroupAnswer:
    """The empty answer to a request."""
    return _ANSWERS[type(message)](message.correlation, NO_ERROR)

"""The group coordinator: who is a member, what each may read, and the offsets that groups remember (rules 42 to 46).

The leader of a log partition of :data:`OFFSETS_TOPIC` is the coordinator of the groups that it serves. A group with its
members is one record there, and each log partition's offset another. All that changes a group is written first, and
counts, and is answered, once it is committed; what is asked of the group meanwhile waits for its turn. So a commit of a
member that was given up meets the record that says so, and a member that is new reads all that was committed before it
came.

A group has one of two protocols, which its record names, or none yet. By KIP-848 (:mod:`consumer`) each change of a
member is a record. By the classic protocol (:mod:`classic`) each generation is: joining, and being alive, are not
written, and wait for no turn.

A commit in a transaction is a record, too, written for the producer; a marker on this log decides about it. A group is
deleted by tombstones of all that is its own, and so is one that was idle for offsets.retention.minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.coordinator import Coordinator, refusal_of
from harness.broker.core.effects import Context
from harness.broker.core.groups.classic import CONSUMER, ClassicGroup, ClassicRecord
from harness.broker.core.groups.consumer import GroupRecord, MemberRecord, reconciled, targets_of
from harness.broker.core.groups.group import Group, GroupDeletion, RecordKey, UnderWay, WaitingRequest
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
    TopicPartition,
)

#: The log of the coordinator, where there is only one.
LOG: Final = TopicPartition(OFFSETS_TOPIC, 0)
#: Groups of one coordinator.
GROUPS_MAX: Final = 10_000
#: Requests that wait for their turn at one group. Clients have one under way each; more have given up waiting.
WAITING_MAX: Final = 1_000
#: Every request of groups, and its answer.
ANSWERS: Final[Mapping[type[messages.GroupRequest], type[messages.GroupAnswer]]] = {
    messages.ConsumerGroupHeartbeat: messages.ConsumerGroupHeartbeatResponse,
    messages.GroupJoin: messages.GroupJoinResponse,
    messages.GroupSync: messages.GroupSyncResponse,
    messages.GroupHeartbeat: messages.GroupHeartbeatResponse,
    messages.GroupLeave: messages.GroupLeaveResponse,
    messages.OffsetCommit: messages.OffsetCommitResponse,
    messages.TxnOffsetCommit: messages.TxnOffsetCommitResponse,
    messages.OffsetFetch: messages.OffsetFetchResponse,
    messages.DeleteGroup: messages.DeleteGroupResponse,
    messages.DeleteOffsets: messages.DeleteOffsetsResponse,
}
_Record: TypeAlias = GroupRecord | ClassicRecord


class _Generation(msgspec.Struct, frozen=True):
    """A generation of a classic group that is being written."""

    name: str
    record: ClassicRecord


class _Marking(msgspec.Struct, frozen=True):
    """A marker that is being written, and the transaction coordinator that waits for it."""

    client: NodeId
    message: messages.WriteTxnMarkers


class GroupCoordinator(Coordinator):
    """The part of one broker that coordinates the groups of one log partition, while it leads that."""

    _groups: dict[str, Group]
    _asked: dict[int, str]
    _generations: dict[int, _Generation]
    _markers: dict[int, _Marking]
    _named: int

    def __init__(self, context: Context, write: Callable[[messages.Produce], None], log: TopicPartition) -> None:
        self._groups = {}
        super().__init__(context, write, log)

    def described(self) -> tuple[ErrorCode, dict[str, Group]]:
        """Every group as a client would be told of it now, or the error of a broker that does not know.

        This has no effect.
        """
        error = self._unable()
        return error, {} if error else {name: group for name, group in self._groups.items() if group.exists}

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
            if group.classic is not None:
                group.classic.abandon()
                self._tell(group.classic)
        self._groups = {}
        self._asked = {}
        self._generations = {}
        self._markers = {}
        self._named = 0

    @override
    def lead(self, replica: Replica) -> None:
        """Read the log to its end (rule 45)."""
        super().lead(replica)
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
                    self._load_members(group, msgspec.msgpack.decode(value, type=_Record))
                else:
                    offset = msgspec.msgpack.decode(value, type=CommittedOffset)
                    self._load_offset(group, named.partition, offset, batch)
        self._look_again(replica)

    @override
    def _resume(self) -> None:
        """Let the sessions of all members begin again (rule 45)."""
        for group in self._groups.values():
            group.timed(self._context.now_us)
            if group.classic is not None:
                group.classic.resume(self._context.now_us)

    def _load_deletion(self, group: Group, partition: TopicPartition | None) -> None:
        """A tombstone of the group, or of one offset (rule 57)."""
        if partition is None:
            group.record, group.classic = GroupRecord(), None
        else:
            group.offsets.drop((partition,))

    def _load_members(self, group: Group, record: _Record) -> None:
        if isinstance(record, ClassicRecord):
            group.record, group.classic = GroupRecord(), self._classic_group().loaded(record)
        else:
            group.record, group.classic = record, None

    def _load_offset(
        self, group: Group, partition: TopicPartition, offset: CommittedOffset, batch: RecordBatch
    ) -> None:
        self._keep(group, {partition: offset}, batch.base_offset, batch.producer_id)

    # --- time ----------------------------------------------------------------------------------------------------

    @override
    def _look(self) -> None:
        """Give up who is silent (rules 43 and 54), and groups that are idle (rule 57)."""
        now_us, config = self._context.now_us, self._context.config
        for name, group in list(self._groups.items()):
            if group.classic is not None:
                group.classic.expire(now_us)
                self._pursue(name, group.classic)
            if group.next is not None:
                continue
            if silent := group.silent(now_us, config.session_timeout_ms * 1000):
                self._change(name, group, group.record.without(silent), NO_NODE, None)
            elif group.idle(now_us, config.offsets_retention_minutes * 60_000_000):
                self._delete(name, group, NO_NODE, None)
            self._forget_unknown(name, group)

    # --- requests ------------------------------------------------------------------------------------------------

    def ask(self, message: messages.GroupRequest) -> None:
        """Answer, or let the request wait while a change of its group is under way."""
        client, error = self._context.sender, self._unavailable()
        if not message.group and not isinstance(message, messages.DeleteGroup):
            error = ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(message.group)
        if group is None and len(self._groups) >= GROUPS_MAX:
            error = error or ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error:
            self._refuse(client, _answer_to(message), error)
            return
        group = group or self._groups.setdefault(message.group, Group())
        self._hear(group, message)
        if not group.holds_up(message):
            self._serve(client, group, message)
            self._forget_unknown(message.group, group)
        elif len(group.waiting) < WAITING_MAX:
            group.waiting.append(WaitingRequest(client, message))
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
        elif isinstance(message, messages.DeleteOffsets):
            self._asked_to_drop(client, group, message)
        else:
            self._classic_call(client, group, message)

    def _forget_unknown(self, name: str, group: Group) -> None:
        """A question about a group does not make it one."""
        if group.next is None and not group.waiting and not group.exists:
            self._groups.pop(name, None)

    # --- members by the classic protocol -------------------------------------------------------------------------

    def _classic_call(self, client: NodeId, group: Group, message: messages.GroupRequest) -> None:
        """Rules 51 to 54: a group without members may take this protocol; one with others has none of it."""
        if group.classic is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
            if isinstance(message, messages.GroupJoin):
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if group.record.members else NO_ERROR
            if error:
                self._refuse(client, _answer_to(message), error)
                return
            # A group that had the other protocol goes on counting: no epoch of it is a generation.
            group.classic, group.record = self._classic_group()(generation=group.record.epoch), GroupRecord()
        group.classic.handle(self._context.now_us, client, message, self._new_name(message))
        self._pursue(message.group, group.classic)

    def _classic_group(self) -> type[ClassicGroup]:
        return ClassicGroup

    def _new_name(self, message: messages.GroupRequest) -> str:
        """A name that no coordinator has given: none before leads in this leader epoch."""
        if not isinstance(message, messages.GroupJoin) or message.member:
            return ""
        self._named += 1
        epoch = NONE if self._replica is None else self._replica.leader_epoch
        return f"{message.client_id or 'member'}-{epoch}-{self._named}"

    def _pursue(self, name: str, group: ClassicGroup) -> None:
        """Send the answers of a classic group that fell due, and write its generation."""
        self._tell(group)
        record, group.due = group.due, None
        if record is not None:
            correlation = self._context.correlation()
            self._generations[correlation] = _Generation(name, record)
            self._append(correlation, (msgspec.msgpack.encode(RecordKey(name)), msgspec.msgpack.encode(record)))

    def _tell(self, group: ClassicGroup) -> None:
        for client, answer in group.take():
            self._context.send(client, answer)

    def _on_generation(self, generation: _Generation, error: ErrorCode) -> None:
        group = self._groups.get(generation.name)
        if group is not None and group.classic is not None:
            group.changed_us = now_us = self._context.now_us
            group.classic.written(now_us, generation.record, refusal_of(error) if error else NO_ERROR)
            self._pursue(generation.name, group.classic)

    # --- members by KIP-848 --------------------------------------------------------------------------------------

    def _heartbeat(self, client: NodeId, group: Group, message: messages.ConsumerGroupHeartbeat) -> None:
        """Rule 43: let a member come, stay or go, and tell it what it may read."""
        record, name = group.record, message.member
        answer = messages.ConsumerGroupHeartbeatResponse(message.correlation, NO_ERROR)
        joins = message.member_epoch == JOINS
        if group.classic is not None:
            error = NO_ERROR if joins and group.empty else ErrorCode.GROUP_ID_NOT_FOUND
            record = GroupRecord(group.classic.generation)
        else:
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

    # --- offsets -------------------------------------------------------------------------------------------------

    def _commit(self, client: NodeId, group: Group, message: messages.OffsetCommit) -> None:
        """Rule 44: have offsets written, of a member in its present epoch only. Rule 46: in a transaction likewise."""
        producer: tuple[int, int] | None = None
        if isinstance(message, messages.TxnOffsetCommit):
            error = self._transactional_error(group, message)
            producer = (message.producer_id, message.producer_epoch)
        else:
            error = self._commit_error(group, message)
        answer = _answer_to(message)
        if error:
            self._refuse(client, answer, error)
        elif not message.offsets:
            self._context.send(client, answer)
        else:
            by, offsets = (message.member, message.member_epoch), dict(message.offsets)
            self._put(message.group, group, UnderWay(group.record, client, answer, offsets, producer, by=by))

    def _commit_error(self, group: Group, message: messages.GroupRequest) -> ErrorCode:
        """Only a member may commit while there are members (rules 44 and 55)."""
        if group.empty:
            return NO_ERROR if message.member_epoch == NONE else ErrorCode.UNKNOWN_MEMBER_ID
        if group.classic is None:
            return _member_error(group.record, message)
        return group.classic.commit_error(self._context.now_us, message.member, message.member_epoch)

    def _transactional_error(self, group: Group, message: messages.TxnOffsetCommit) -> ErrorCode:
        """The same as without a transaction; the error of another epoch has the name that it had before KIP-848.

        A classic group believes a producer that names no member, and lets none wait for an assignment.
        """
        if group.classic is not None and not message.member and message.member_epoch == NONE:
            return NO_ERROR
        error = self._commit_error(group, message)
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            return NO_ERROR
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def _fetch(self, client: NodeId, group: Group, message: messages.OffsetFetch) -> None:
        """Rule 44: a member asks in its present epoch, so a coordinator that was superseded cannot mislead it."""
        if message.member and group.classic is None and (error := _member_error(group.record, message)):
            self._refuse(client, _answer_to(message), error)
            return
        asked = sorted(group.offsets.partitions()) if message.partitions is None else message.partitions
        unstable = self._unstable(group, asked) if message.require_stable else ()
        told = [(each, group.offsets.of(each, NOT_COMMITTED)) for each in asked if each not in unstable]
        error = ErrorCode.UNSTABLE_OFFSET_COMMIT if unstable else NO_ERROR
        self._context.send(client, messages.OffsetFetchResponse(message.correlation, error, tuple(told), unstable))

    def _unstable(self, group: Group, asked: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
        """Rule 46: those whose offset may be superseded by a transaction that is open."""
        return tuple(each for each in asked if group.offsets.unstable((each,)))

    # --- deletions -----------------------------------------------------------------------------------------------

    def _asked_to_delete(self, client: NodeId, group: Group, message: messages.DeleteGroup) -> None:
        """Rule 57: only a group without members is deleted."""
        answer = _answer_to(message)
        if not group.empty:
            self._refuse(client, answer, ErrorCode.NON_EMPTY_GROUP)
        elif not group.exists:
            self._refuse(client, answer, ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            self._delete(message.group, group, client, answer)

    def _asked_to_drop(self, client: NodeId, group: Group, message: messages.DeleteOffsets) -> None:
        """Rule 56: offsets stay of what members read, and all of them while members are not consumers."""
        read = tuple(each for each in message.partitions if group.reads(each.topic))
        answer = messages.DeleteOffsetsResponse(message.correlation, NO_ERROR, read)
        doomed = group.offsets.partitions().intersection(message.partitions).difference(read)
        classic = group.classic
        if not group.exists:
            self._refuse(client, answer, ErrorCode.GROUP_ID_NOT_FOUND)
        elif classic is not None and classic.protocol_type != CONSUMER and not group.empty:
            self._refuse(client, answer, ErrorCode.NON_EMPTY_GROUP)
        elif doomed:
            change = UnderWay(group.record, client, answer, dropped=tuple(sorted(doomed)))
            self._put(message.group, group, change)
        else:
            self._context.send(client, answer)

    # --- changes -------------------------------------------------------------------------------------------------

    def _change(
        self, name: str, group: Group, record: GroupRecord, client: NodeId, answer: messages.GroupAnswer | None
    ) -> None:
        """Have another state of the members written."""
        self._put(name, group, UnderWay(record, client, answer))

    def _delete(self, name: str, group: Group, client: NodeId, answer: messages.GroupAnswer | None) -> None:
        """Have tombstones written of all that the group has, of what is pending too (rule 57)."""
        partitions = tuple(sorted(group.offsets.partitions()))
        self._put(name, group, GroupDeletion(GroupRecord(), client, answer, dropped=partitions))

    def _put(self, name: str, group: Group, change: UnderWay) -> None:
        group.next = change
        correlation = self._context.correlation()
        self._asked[correlation] = name
        encode = msgspec.msgpack.encode
        dropped = [*map(partial(RecordKey, name), change.dropped)]
        if type(change) is GroupDeletion:
            dropped.append(RecordKey(name))
        records = [content_of_record(encode(key), b"", tombstone=True) for key in dropped]
        records += [(encode(RecordKey(name, each)), encode(offset)) for each, offset in change.offsets.items()]
        self._append(
            correlation, *(records or [(encode(RecordKey(name)), encode(change.record))]), producer=change.producer
        )

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
        generation = self._generations.pop(message.correlation, None)
        if generation is not None:
            self._on_generation(generation, message.error)
        name = self._asked.pop(message.correlation, None)
        if name is None:
            return
        group = self._groups[name]
        done, group.next = group.next, None
        assert done is not None, "one change of a group is under way at a time"
        if not message.error:
            self._apply(group, done, message.base_offset)
        if done.answer is not None:
            if message.error:
                self._refuse(done.client, done.answer, refusal_of(message.error))
            else:
                self._context.send(done.client, done.answer)
        while group.waiting and not group.holds_up(group.waiting[0].message):
            waiting = group.waiting.popleft()
            self._serve(waiting.client, group, waiting.message)
        self._forget_unknown(name, group)

    def _apply(self, group: Group, done: UnderWay, log_offset: int) -> None:
        """A change is committed."""
        if done.turns(group.record):
            group.record, group.classic = done.record, None
        group.offsets.drop(done.dropped)
        self._keep(group, done.offsets, log_offset, NONE if done.producer is None else done.producer[0])
        group.timed(self._context.now_us)

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
    return ANSWERS[type(message)](message.correlation, NO_ERROR)

"""A model of the Kafka consumer that is a member of a group. Sans-IO: calls and messages in, effects out.

Beside what every consumer does, it asks the group coordinator what it may read, where the group is, and to remember
offsets. How it is a member is its protocol's matter (:mod:`harness.worlds.simulated.group_member`). A request is
repeated after ``retry.backoff.ms`` until it is answered for good, or the call's time is over: 10 s, and for a commit
as long as for a record where that is more (``delivery.timeout.ms``; librdkafka has 60 s). As Kafka's Java client, it
always asks for stable offsets, and so waits for transactions that are open (KIP-447).

What it commits carries the leader epoch of the record before it, as what Kafka's Java client commits by itself, or is
asked to without offsets. Who begins there believes no leader of an older epoch, and validates the position first
(KIP-320): a deposed leader whose log is shorter makes no member start over.

A member asks while a poll or a commit is open: one that does neither is a process that stands still, and the
coordinator gives it up. What it was assigned it takes over in a poll.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.messages import NOT_COMMITTED, CommittedOffset
from harness.broker.core.types import NO_ERROR, NONE, OFFSETS_TOPIC, ErrorCode, TopicPartition
from harness.worlds.simulated.classic_member import ClassicMemberModel
from harness.worlds.simulated.consumer import END_OFFSETS_LIMIT_US, NO_ANSWER, Assigned, ConsumerModel
from harness.worlds.simulated.coordinator_requests import CoordinatorRequests, Repeated
from harness.worlds.simulated.group_member import Identity, MemberModel
from harness.worlds.simulated.network_client import (
    MICROSECONDS,
    NOT_COORDINATING,
    ClientEffect,
    Completed,
    Request,
    commits,
)
from harness.worlds.simulated.reconciled_member import ReconciledMemberModel
from workloads import (
    Assignment,
    Fetched,
    GroupProtocol,
    IsolationLevel,
    Membership,
    MemberToken,
    Offsets,
    OwnCommit,
    Settings,
)

#: The model of a membership, by ``group.protocol``.
_MEMBERS: Final[Mapping[GroupProtocol, type[MemberModel]]] = {
    "classic": ClassicMemberModel,
    "consumer": ReconciledMemberModel,
}
#: The identity of a client that is no member.
_NO_MEMBER: Final = ("", NONE)
#: The error of a commit that a client refuses by itself, since it is no member now.
NO_MEMBER: Final = "CommitFailedError"


class _Places(Repeated):
    """The question where the group is in the log partitions ``assigned``."""

    __slots__ = ("assigned",)

    def __init__(self) -> None:
        super().__init__()
        self.assigned: tuple[Assigned, ...] = ()


class _Call(Repeated):
    """A call that waits for the coordinator: a commit of ``offsets``, or a question about ``partitions``."""

    __slots__ = ("deadline_us", "done", "offsets", "partitions")

    def __init__(
        self,
        deadline_us: int,
        done: Any,
        offsets: Mapping[TopicPartition, int] | None = None,
        partitions: Sequence[TopicPartition] = (),
    ) -> None:
        super().__init__()
        self.deadline_us = deadline_us
        self.done = done
        self.offsets = offsets
        self.partitions = tuple(partitions)


class GroupConsumerModel(ConsumerModel):
    """One consumer instance of a group. It is a member from its subscription on; without one it can ask and commit."""

    def __init__(
        self,
        brokers: Sequence[int],
        first: int,
        topics: Sequence[str],
        settings: Settings,
        isolation: IsolationLevel,
        *,
        membership: Membership,
    ) -> None:
        super().__init__(brokers, first, [*topics, OFFSETS_TOPIC], settings, isolation)
        self._requests = CoordinatorRequests(self._net, membership.group, self._backoff_us)
        self._new_member = partial(_MEMBERS[membership.protocol], self._requests, f"member-{first}")
        self._session_ms = membership.session_timeout_ms
        self._reset = messages.LATEST if membership.reset == "latest" else messages.EARLIEST
        self._auto_us = None if membership.auto_commit_ms is None else membership.auto_commit_ms * MICROSECONDS
        self._auto_due_us = 0
        self._commit_us = max(END_OFFSETS_LIMIT_US, settings.delivery_timeout_ms * MICROSECONDS)
        self._member: MemberModel | None = None
        self._changed: Callable[[Assignment], None] | None = None
        self._unplaced: dict[TopicPartition, Assigned] = {}
        self._places = _Places()
        self._handed: dict[TopicPartition, int] = {}
        self._calls: list[_Call] = []
        self._told: Callable[[OwnCommit], None] | None = None
        self._own: dict[int, OwnCommit] = {}

    # --- calls -------------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Be a member, from the next poll on; ``Completed(changed, Assignment)`` follows each change."""
        self._member, self._changed = self._new_member(tuple(topics), self._session_ms), changed

    def watch_own_commits(self, told: Callable[[OwnCommit], None]) -> None:
        """``Completed(told, OwnCommit)`` follows at the begin and at the end of each commit by itself."""
        self._told = told

    @override
    def poll(self, now_us: int, max_wait_ms: int, done: Any) -> list[ClientEffect]:
        if self._auto_us is not None and now_us >= self._auto_due_us:
            self._commit_by_itself(now_us)
        return super().poll(now_us, max_wait_ms, done)

    def commit(self, now_us: int, offsets: Mapping[TopicPartition, int], done: Any) -> list[ClientEffect]:
        """``Completed(done, Offsets)`` follows, with what the group took."""
        self._calls.append(_Call(now_us + self._commit_us, done, dict(offsets)))
        return self._advance(now_us)

    def ask_committed(self, now_us: int, partitions: Sequence[TopicPartition], done: Any) -> list[ClientEffect]:
        """``Completed(done, Offsets)`` follows, with what the group remembers."""
        self._calls.append(_Call(now_us + END_OFFSETS_LIMIT_US, done, None, partitions))
        return self._advance(now_us)

    def token(self) -> MemberToken:
        """The member and its generation, as it has it now; of a client that never was one there is only the group."""
        identity = _NO_MEMBER if self._member is None else self._member.told
        if identity is None:
            return MemberToken(None, "the client is no member now")
        return MemberToken((self._requests.group, *identity))

    @override
    def close(self, why: str) -> list[ClientEffect]:
        coordinator = self._requests.coordinator()
        if self._member is not None and coordinator is not None:
            self._leave(self._member, coordinator)
        for commit in [*self._own.values()]:
            self._end_own(commit, Offsets({}, why))
        effects = self._net.take_effects()
        effects += [Completed(call.done, Offsets({}, why)) for call in self._calls]
        self._calls.clear()
        self._member = None
        return effects + super().close(why)

    def _leave(self, member: MemberModel, coordinator: int) -> None:
        if self._auto_us is not None and self._handed and member.identity is not None:
            request = self._commit_of(member.identity, self._handed)
            self._net.send_only(coordinator, request)
            self._begin_own(request)
        leaves = member.leaving()
        if leaves is not None:
            self._net.send_only(coordinator, leaves)

    # --- what to do next ---------------------------------------------------------------------------------------------

    @override
    def _advance(self, now_us: int) -> list[ClientEffect]:
        if self._member is not None:
            if self._poll is not None:
                self._take_over(now_us, self._member)
            if self._poll is not None or self._calls:
                self._member.pursue(now_us, self._assigned)
            self._ask_places(now_us, self._member)
        self._pursue_calls(now_us)
        return super()._advance(now_us)

    def _take_over(self, now_us: int, member: MemberModel) -> None:
        """Read what was assigned, and nothing else, from now on."""
        assigned = member.take_over(now_us, self._assigned)
        if assigned is None:
            return
        self._commit_by_itself(now_us)
        before = self._assigned
        self.assign(assigned, from_start=False)
        now = self._assigned
        fresh = {partition: each for partition, each in now.items() if partition not in before}
        asked = {partition: each for partition, each in self._unplaced.items() if partition in now}
        self._unplaced = asked | fresh
        goes_on = now.keys() - fresh.keys()
        self._handed = {partition: offset for partition, offset in self._handed.items() if partition in goes_on}
        assert self._changed is not None  # noqa: S101 - it has subscribed
        generation = None if member.identity is None else member.identity[1]
        self._net.effects.append(Completed(self._changed, Assignment(tuple(map(str, assigned)), generation)))

    @property
    def _identity(self) -> Identity | None:
        """The one with which it commits; None where it has joined a group, and is no member of it now."""
        return _NO_MEMBER if self._member is None else self._member.identity

    def _commit_of(self, identity: Identity, offsets: Mapping[TopicPartition, int]) -> messages.OffsetCommit:
        correlation, group = self._net.next_correlation(), self._requests.group
        reached = tuple(
            (each, CommittedOffset(offset, self._epoch_at(each, offset))) for each, offset in offsets.items()
        )
        return messages.OffsetCommit(correlation, group, *identity, reached)

    def _epoch_at(self, partition: TopicPartition, offset: int) -> int:
        """The leader epoch of the record before ``offset``, where the member has read it."""
        assigned = self._assigned.get(partition)
        return NONE if assigned is None else assigned.epoch_before(offset)

    def _commit_by_itself(self, now_us: int) -> None:
        """Let the group remember what was handed over before this poll, whatever becomes of it."""
        coordinator, identity = self._requests.reachable(now_us), self._identity
        if self._auto_us is not None and self._handed and coordinator is not None and identity is not None:
            self._auto_due_us = now_us + self._auto_us
            request = self._commit_of(identity, self._handed)
            self._net.send(now_us, coordinator, request, self._begin_own(request))

    def _begin_own(self, request: messages.OffsetCommit) -> OwnCommit:
        commit = OwnCommit(request.correlation, _named(request.offsets).offsets)
        self._own[commit.number] = commit
        self._tell(commit)
        return commit

    def _end_own(self, commit: OwnCommit, answer: Offsets) -> None:
        if self._own.pop(commit.number, None) is not None:
            self._tell(OwnCommit(commit.number, commit.offsets, answer))

    def _tell(self, commit: OwnCommit) -> None:
        if self._told is not None:
            self._net.effects.append(Completed(self._told, commit))

    def _ask_places(self, now_us: int, member: MemberModel) -> None:
        """Ask where the group is in what is new."""
        coordinator = self._requests.due(now_us, self._places) if self._unplaced else None
        if coordinator is not None:
            self._places.assigned = tuple(self._unplaced.values())
            self._ask_committed(now_us, coordinator, member.asks_as, tuple(self._unplaced), self._places)

    def _ask_committed(
        self,
        now_us: int,
        coordinator: int,
        identity: Identity,
        partitions: tuple[TopicPartition, ...],
        purpose: Repeated,
    ) -> None:
        correlation, group = self._net.next_correlation(), self._requests.group
        ask = messages.OffsetFetch(correlation, group, *identity, partitions, require_stable=True)
        self._requests.ask(now_us, coordinator, ask, purpose)

    @override
    def _ask_position(self, now_us: int, assigned: Assigned, leader: tuple[int, int]) -> None:
        if assigned.partition not in self._unplaced:
            super()._ask_position(now_us, assigned, leader)

    def _pursue_calls(self, now_us: int) -> None:
        for call in [*self._calls]:
            if now_us >= call.deadline_us:
                self._end(call, Offsets({}, NO_ANSWER))
            elif not call.asked:
                self._net.wake_at(call.deadline_us)
                self._pursue_call(now_us, call)

    def _pursue_call(self, now_us: int, call: _Call) -> None:
        identity = self._identity
        if call.offsets is not None and identity is None:
            self._end(call, Offsets({}, NO_ANSWER if call.ambiguous else NO_MEMBER))
            return
        coordinator = self._requests.due(now_us, call)
        if coordinator is None:
            return
        if call.offsets is None:
            self._ask_committed(now_us, coordinator, _NO_MEMBER, call.partitions, call)
        elif identity is not None:
            self._requests.ask(now_us, coordinator, self._commit_of(identity, call.offsets), call)

    # --- answers -----------------------------------------------------------------------------------------------------

    @override
    def on_message(self, now_us: int, sender: int, message: messages.Message) -> list[ClientEffect]:
        if isinstance(message, messages.GroupAnswer):
            request = self._net.answered(message.correlation)
            if request is not None:
                self._on_answer(now_us, request.purpose, message)
            return self._advance(now_us)
        return super().on_message(now_us, sender, message)

    def _on_answer(self, now_us: int, purpose: Any, answer: messages.GroupAnswer) -> None:
        if answer.error in NOT_COORDINATING:
            self._net.want_metadata()
        if isinstance(purpose, Repeated):
            purpose.asked = False
        if isinstance(purpose, _Places) and isinstance(answer, messages.OffsetFetchResponse):
            self._on_places(now_us, purpose, answer)
        elif isinstance(purpose, _Call):
            self._on_call(now_us, purpose, answer)
        elif isinstance(purpose, OwnCommit):
            error = answer.error.name if answer.error else None
            self._end_own(purpose, Offsets({} if error else purpose.offsets, error))
        elif self._member is not None:
            self._member.on_answer(now_us, answer)

    def _on_places(self, now_us: int, asked: _Places, answer: messages.OffsetFetchResponse) -> None:
        """Begin where the group is; where it remembers nothing, auto.offset.reset decides."""
        if answer.error != NO_ERROR:
            self._requests.repeat(now_us, asked)
            return
        for each, (partition, remembered) in zip(asked.assigned, answer.offsets, strict=True):
            if self._unplaced.get(partition) is each:
                del self._unplaced[partition]
                self._start(each, remembered)

    def _start(self, assigned: Assigned, remembered: CommittedOffset) -> None:
        if remembered == NOT_COMMITTED:
            assigned.start_at(None)
            return
        assigned.start_at(remembered.offset, remembered.leader_epoch, unproved=True)
        self._net.learn_epoch(assigned.partition, remembered.leader_epoch)

    def _on_call(self, now_us: int, call: _Call, answer: messages.GroupAnswer) -> None:
        again = {*NOT_COORDINATING, ErrorCode.UNSTABLE_OFFSET_COMMIT}
        if answer.error in again or (self._member is not None and self._member.commits_again(answer.error)):
            self._requests.repeat(now_us, call)
        elif answer.error:
            self._end(call, Offsets({}, NO_ANSWER if call.ambiguous else answer.error.name))
        elif isinstance(answer, messages.OffsetFetchResponse):
            self._end(call, _named([each for each in answer.offsets if each[1] != NOT_COMMITTED]))
        else:
            self._end(call, _named(commits(call.offsets or {})))

    def _end(self, call: _Call, outcome: Offsets) -> None:
        if call in self._calls:
            self._calls.remove(call)
            self._net.effects.append(Completed(call.done, outcome))

    @override
    def _hand_over(self, done: Any, records: tuple[Fetched, ...]) -> None:
        super()._hand_over(done, records)
        ends = {record.partition: record.offset + 1 for record in records}
        read = self._assigned.items()
        self._handed |= {partition: ends[each.name] for partition, each in read if each.name in ends}

    @override
    def _lost(self, now_us: int, requests: list[Request]) -> None:
        others = []
        for request in requests:
            purpose = request.purpose
            if isinstance(purpose, Repeated):
                purpose.asked, purpose.ambiguous = False, True
                self._requests.repeat(now_us, purpose)
            elif isinstance(purpose, OwnCommit):
                self._end_own(purpose, Offsets({}, NO_ANSWER))
            else:
                others.append(request)
        super()._lost(now_us, others)


def _named(offsets: Iterable[tuple[TopicPartition, CommittedOffset]]) -> Offsets:
    """An outcome with these offsets."""
    return Offsets({str(partition): committed.offset for partition, committed in offsets})

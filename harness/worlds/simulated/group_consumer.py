"""A model of the Kafka consumer that is a member of a group (KIP-848). Sans-IO: calls and messages in, effects out.

Beside what every consumer does, it asks the group coordinator: by heartbeats what it may read, where the group is, and
to remember offsets. The coordinator is the leader of the log of groups, so it is found in the metadata. A request is
repeated after ``retry.backoff.ms`` until it is answered for good, or the call's time is over: 10 s, and for a commit
as long as for a record where that is more (``delivery.timeout.ms``; librdkafka has 60 s). As Kafka's Java client, it
always asks for stable offsets, and so waits for transactions that are open (KIP-447).

Heartbeats are sent while a poll or a commit is open: a member that does neither is a process that stands still, and the
coordinator gives it up. What it was assigned it takes over in a poll, as Kafka's Java client does: what is gone is
dropped from its buffer, and given up with the next heartbeat. A member that was given up learns of it from a heartbeat;
it joins again in its next poll, so whatever it commits before that has its old epoch, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.group_coordinator import LOG
from harness.broker.core.messages import JOINS, LEAVES, NOT_COMMITTED, CommittedOffset
from harness.broker.core.types import NO_ERROR, NONE, OFFSETS_TOPIC, ErrorCode, TopicPartition
from harness.worlds.simulated.consumer import END_OFFSETS_LIMIT_US, NO_ANSWER, Assigned, ConsumerModel
from harness.worlds.simulated.network_client import (
    MICROSECONDS,
    NOT_COORDINATING,
    ClientEffect,
    Completed,
    Request,
    commits,
)
from workloads import Assignment, Fetched, IsolationLevel, Membership, MemberToken, Offsets, OwnCommit, Settings

#: Heartbeats in a session: Kafka's defaults are 5 s and 45 s.
BEATS_A_SESSION: Final = 9


class _Repeated:
    """Purpose of requests to the coordinator, one at a time: one is ``asked`` now, or may be at ``ready_us``.

    ``ambiguous``: one of them had no answer, so a commit may have been taken.
    """

    __slots__ = ("ambiguous", "asked", "ready_us")

    def __init__(self) -> None:
        self.asked = self.ambiguous = False
        self.ready_us = 0


class _Places(_Repeated):
    """The question where the group is in the log partitions ``assigned``."""

    __slots__ = ("assigned",)

    def __init__(self) -> None:
        super().__init__()
        self.assigned: tuple[Assigned, ...] = ()


class _Call(_Repeated):
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
        self._group = membership.group
        self._member = f"member-{first}"
        self._session_ms = membership.session_timeout_ms
        self._reset = messages.LATEST if membership.reset == "latest" else messages.EARLIEST
        self._auto_us = None if membership.auto_commit_ms is None else membership.auto_commit_ms * MICROSECONDS
        self._auto_due_us = 0
        self._commit_us = max(END_OFFSETS_LIMIT_US, settings.delivery_timeout_ms * MICROSECONDS)
        self._topics: tuple[str, ...] = ()
        self._changed: Callable[[Assignment], None] | None = None
        self._epoch = JOINS
        self._given_up = False
        self._next: tuple[TopicPartition, ...] | None = None
        self._beats = _Repeated()
        self._unplaced: dict[TopicPartition, Assigned] = {}
        self._places = _Places()
        self._handed: dict[TopicPartition, int] = {}
        self._calls: list[_Call] = []
        self._told: Callable[[OwnCommit], None] | None = None
        self._own: dict[int, OwnCommit] = {}

    # --- calls -------------------------------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Be a member, from the next poll on; ``Completed(changed, Assignment)`` follows each change."""
        self._topics, self._changed = tuple(topics), changed

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
        """The member and its epoch, as it has it now; of a client that never was one there is only the group."""
        if not self._topics:
            return MemberToken((self._group, "", NONE))
        if self._epoch == JOINS:
            return MemberToken(None, "the client is no member now")
        return MemberToken((self._group, self._member, self._epoch))

    @override
    def close(self, why: str) -> list[ClientEffect]:
        leader = self._net.leader(LOG)
        if self._topics and self._epoch != JOINS and leader is not None:
            if self._auto_us is not None and self._handed:
                request = self._offsets_of(self._handed)
                self._net.send_only(leader[0], request)
                self._begin_own(request)
            self._net.send_only(leader[0], self._heartbeat(LEAVES))
        for commit in [*self._own.values()]:
            self._end_own(commit, Offsets({}, why))
        effects = self._net.take_effects()
        effects += [Completed(call.done, Offsets({}, why)) for call in self._calls]
        self._calls.clear()
        self._topics = ()
        return effects + super().close(why)

    # --- what to do next ---------------------------------------------------------------------------------------------

    @override
    def _advance(self, now_us: int) -> list[ClientEffect]:
        if self._topics:
            if self._poll is not None:
                self._take_over(now_us)
            if self._poll is not None or self._calls:
                self._beat(now_us)
            self._ask_places(now_us)
        self._pursue_calls(now_us)
        return super()._advance(now_us)

    def _coordinator_for(self, now_us: int, purpose: _Repeated) -> int | None:
        """The coordinator, where it may be asked now."""
        if purpose.asked:
            return None
        if now_us < purpose.ready_us:
            self._net.wake_at(purpose.ready_us)
            return None
        return self._net.reachable_leader(now_us, LOG)

    def _ask(self, now_us: int, coordinator: int, request: messages.GroupRequest, purpose: _Repeated) -> None:
        purpose.asked = True
        self._net.send(now_us, coordinator, request, purpose)

    def _take_over(self, now_us: int) -> None:
        """Read what was assigned, and nothing else, from now on."""
        assigned: tuple[TopicPartition, ...] | None = () if self._given_up else self._next
        self._next = None
        if self._given_up:
            self._given_up, self._epoch = False, JOINS
        if assigned is None or set(assigned) == self._assigned.keys():
            return
        if self._auto_us is not None and self._epoch != JOINS:
            self._commit_by_itself(now_us)
        before = self._assigned
        self.assign(assigned, from_start=False)
        now = self._assigned
        fresh = {partition: each for partition, each in now.items() if partition not in before}
        asked = {partition: each for partition, each in self._unplaced.items() if partition in now}
        self._unplaced = asked | fresh
        goes_on = now.keys() - fresh.keys()
        self._handed = {partition: offset for partition, offset in self._handed.items() if partition in goes_on}
        self._beats.ready_us = now_us
        assert self._changed is not None  # noqa: S101 - it has subscribed
        epoch = None if self._epoch == JOINS else self._epoch
        self._net.effects.append(Completed(self._changed, Assignment(tuple(map(str, assigned)), epoch)))

    def _beat(self, now_us: int) -> None:
        coordinator = None if self._given_up else self._coordinator_for(now_us, self._beats)
        if coordinator is not None:
            self._ask(now_us, coordinator, self._heartbeat(self._epoch), self._beats)

    def _heartbeat(self, epoch: int) -> messages.ConsumerGroupHeartbeat:
        correlation, owned = self._net.next_correlation(), tuple(self._assigned)
        return messages.ConsumerGroupHeartbeat(
            correlation, self._group, self._member, epoch, self._session_ms, self._topics, owned
        )

    def _offsets_of(self, offsets: Mapping[TopicPartition, int]) -> messages.OffsetCommit:
        name, epoch = (self._member, self._epoch) if self._topics else ("", NONE)
        return messages.OffsetCommit(self._net.next_correlation(), self._group, name, epoch, commits(offsets))

    def _commit_by_itself(self, now_us: int) -> None:
        """Let the group remember what was handed over before this poll, whatever becomes of it."""
        coordinator = self._net.reachable_leader(now_us, LOG)
        if self._auto_us is not None and self._handed and coordinator is not None:
            self._auto_due_us = now_us + self._auto_us
            request = self._offsets_of(self._handed)
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

    def _ask_places(self, now_us: int) -> None:
        """Ask where the group is in what is new."""
        coordinator = self._coordinator_for(now_us, self._places) if self._unplaced else None
        if coordinator is not None:
            self._places.assigned = tuple(self._unplaced.values())
            correlation, partitions = self._net.next_correlation(), tuple(self._unplaced)
            member = (self._member, self._epoch)
            ask = messages.OffsetFetch(correlation, self._group, *member, partitions, require_stable=True)
            self._ask(now_us, coordinator, ask, self._places)

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
        coordinator = self._coordinator_for(now_us, call)
        if coordinator is None:
            return
        if call.offsets is None:
            correlation = self._net.next_correlation()
            request: messages.GroupRequest = messages.OffsetFetch(
                correlation, self._group, partitions=call.partitions, require_stable=True
            )
        else:
            request = self._offsets_of(call.offsets)
        self._ask(now_us, coordinator, request, call)

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
        if isinstance(purpose, _Repeated):
            purpose.asked = False
        if isinstance(answer, messages.ConsumerGroupHeartbeatResponse):
            self._on_beat(now_us, answer)
        elif isinstance(purpose, _Places) and isinstance(answer, messages.OffsetFetchResponse):
            self._on_places(now_us, purpose, answer)
        elif isinstance(purpose, _Call):
            self._on_call(now_us, purpose, answer)
        elif isinstance(purpose, OwnCommit):
            error = answer.error.name if answer.error else None
            self._end_own(purpose, Offsets({} if error else purpose.offsets, error))

    def _on_beat(self, now_us: int, answer: messages.ConsumerGroupHeartbeatResponse) -> None:
        if answer.error in NOT_COORDINATING:
            self._beats.ready_us = now_us + self._backoff_us
        elif answer.error:
            self._given_up = True
        else:
            self._epoch, self._next = answer.member_epoch, answer.assigned
            self._beats.ready_us = now_us + self._session_ms * MICROSECONDS // BEATS_A_SESSION

    def _on_places(self, now_us: int, asked: _Places, answer: messages.OffsetFetchResponse) -> None:
        """Begin where the group is; where it remembers nothing, or less than that, auto.offset.reset decides."""
        if answer.error != NO_ERROR:
            asked.ready_us = now_us + self._backoff_us
            return
        for each, (partition, remembered) in zip(asked.assigned, answer.offsets, strict=True):
            if self._unplaced.get(partition) is each:
                del self._unplaced[partition]
                each.position = None if remembered == NOT_COMMITTED else remembered.offset

    def _on_call(self, now_us: int, call: _Call, answer: messages.GroupAnswer) -> None:
        stale = answer.error is ErrorCode.STALE_MEMBER_EPOCH and not self._given_up
        if stale or answer.error in NOT_COORDINATING or answer.error is ErrorCode.UNSTABLE_OFFSET_COMMIT:
            call.ready_us = now_us + self._backoff_us
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
            if isinstance(purpose, _Repeated):
                purpose.asked, purpose.ambiguous = False, True
                purpose.ready_us = now_us + self._backoff_us
            elif isinstance(purpose, OwnCommit):
                self._end_own(purpose, Offsets({}, NO_ANSWER))
            else:
                others.append(request)
        super()._lost(now_us, others)


def _named(offsets: Iterable[tuple[TopicPartition, CommittedOffset]]) -> Offsets:
    """An outcome with these offsets."""
    return Offsets({str(partition): committed.offset for partition, committed in offsets})

"""Members of a consumer group, what the group is asked, and what is committed from outside.

Between its steps a member sends heartbeats, and does nothing else. The reference broker has groups in virtual time
only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Final

import msgspec

from harness.runs.stories.stage.names import BrokerRole, Record
from harness.runs.stories.stage.stage import StoryStage
from harness.runs.stories.stage.trace import StepError, record_name
from harness.runs.stories.steps.step import ScriptState, Step, WorldLimits
from harness.runs.stories.steps.waits import all_hold
from workloads import NOTHING, EventType, Reached, SendOutcome
from workloads.driver import SteppedMember

#: A poll waits for records, and a commit is written to several brokers: that takes longer than one answer.
_MOMENTS: Final = 6


class GroupStep(Step, frozen=True, kw_only=True):
    """A step of a consumer group."""

    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES


class MemberStep(GroupStep, frozen=True, kw_only=True):
    """A step of one member of the group."""

    member: str

    def awake(self, stage: StoryStage) -> SteppedMember:
        """The member, which can do something now.

        Raises:
            StepError: it cannot; the text says why.
        """
        member = stage.members[self.member]
        if member.gone:
            raise StepError(f"the member {self.member} is gone")
        if member.frozen:
            raise StepError(f"the member {self.member} stands still; write: thaw {self.member}")
        return member

    def at_rest(self, stage: StoryStage) -> SteppedMember:
        """The member, which can begin something now; errors as :meth:`awake`."""
        member = self.awake(stage)
        if member.busy:
            raise StepError(f"the member {self.member} has not done its work; write: finish {self.member}")
        return member

    def between_calls(self, stage: StoryStage) -> SteppedMember:
        """The member, whose library has nothing to do: a call that is open would go on without it.

        Errors as :meth:`awake`.
        """
        member = self.awake(stage)
        if member.busy and not member.halfway:
            raise StepError(f"the member {self.member} waits for an answer; write: wait until {self.member} is done")
        return member


class JoinGroup(MemberStep, frozen=True, kw_only=True):
    """Make a member of the group. It polls once; what it reads it processes and commits as commit.mode says."""

    form: ClassVar[str] = "join NEWMEMBER:member"

    def act(self, stage: StoryStage) -> str:
        made = stage.members[self.member] = stage.workload.begin_member(len(stage.members))
        made.start()
        return _after_turn(made, stage, stage.patience.polls_max)


class PollOnce(MemberStep, frozen=True, kw_only=True):
    """Let it poll once more. Between its steps it sends heartbeats, and no more."""

    form: ClassVar[str] = "poll MEMBER:member"
    halfway: ClassVar[bool] = False

    def act(self, stage: StoryStage) -> str:
        member = self.at_rest(stage)
        member.take_turn(halfway=self.halfway)
        return _after_turn(member, stage, stage.patience.polls_max, halfway=self.halfway)


class PollHalfway(PollOnce, frozen=True, kw_only=True):
    """The same; what it reads it processes or commits, and stops between the two.

    Its library may commit later.
    """

    form: ClassVar[str] = "poll MEMBER:member halfway"
    halfway: ClassVar[bool] = True


class PollUntil(MemberStep, frozen=True, kw_only=True):
    """Let it poll again and again until all hold; at most as long as wait."""

    form: ClassVar[str] = "poll MEMBER:member until STATES:states"
    states: tuple[ScriptState, ...]

    def act(self, stage: StoryStage) -> str:
        member = self.at_rest(stage)

        def reached() -> bool:
            if all_hold(self.states, stage):
                return True
            if not (member.busy or member.gone):
                member.take_turn(halfway=False)
            return False

        limit_ms = stage.patience.limit_ms
        if not stage.until(reached, limit_ms):
            wrong = [state.why_not(stage) for state in self.states if not state.is_so(stage)]
            raise StepError(f"polled for {limit_ms} ms without effect: {'; '.join(wrong)}")
        return _after_turn(member, stage)


class FinishWork(MemberStep, frozen=True, kw_only=True):
    """Let it do the other half, and wait a moment for answers."""

    form: ClassVar[str] = "finish MEMBER:member"

    def act(self, stage: StoryStage) -> str:
        member = self.awake(stage)
        if not member.busy:
            raise StepError(f"the member {self.member} has nothing left to do")
        member.go_on()
        return _after_turn(member, stage)


class FreezeMember(MemberStep, frozen=True, kw_only=True):
    """Let it stand still: it sends no heartbeats."""

    form: ClassVar[str] = "freeze MEMBER:member"

    def act(self, stage: StoryStage) -> None:
        self.between_calls(stage).frozen = True


class ThawMember(MemberStep, frozen=True, kw_only=True):
    """Let it go on. It does not know that it stood still."""

    form: ClassVar[str] = "thaw MEMBER:member"

    def act(self, stage: StoryStage) -> None:
        member = stage.members[self.member]
        if not member.frozen:
            raise StepError(f"the member {self.member} does not stand still")
        member.frozen = False


class LeaveGroup(MemberStep, frozen=True, kw_only=True):
    """Let it leave the group."""

    form: ClassVar[str] = "leave MEMBER:member"

    def act(self, stage: StoryStage) -> None:
        self.at_rest(stage).stop()
        stage.let_pass(stage.patience.answer_ms)


class CrashMember(MemberStep, frozen=True, kw_only=True):
    """Let it die without a word."""

    form: ClassVar[str] = "crash MEMBER:member"

    def act(self, stage: StoryStage) -> None:
        self.between_calls(stage).crash()


class HandOver(MemberStep, frozen=True, kw_only=True):
    """Let the group commit the offset behind this record with the transaction, in the name of the member.

    The name and the epoch are those that the member's library has (KIP-447).
    """

    form: ClassVar[str] = "hand over RECORD:record of MEMBER:member in TRANSACTION:transaction"
    record: Record
    transaction: str

    def act(self, stage: StoryStage) -> str:
        member = self.awake(stage)
        part = Reached(stage.partition, _behind((self.record,), stage))
        transaction = stage.transaction(self.transaction)
        answer = stage.answer(partial(member.hand_over, part, transaction.producer.calls), _MOMENTS)
        if answer is None:
            return "no answer yet"
        if answer.type is not EventType.OK:
            return f"refused ({answer.error})"
        transaction.hand_over(part, member.group, stage.now_us)
        return "taken"


class AskGroup(GroupStep, frozen=True, kw_only=True):
    """Ask what the group has committed; it must be the offset right behind this record, or nothing."""

    form: ClassVar[str] = "ask group [finds LAST:last_record]"
    last_record: tuple[Record, ...] | None = None

    def act(self, stage: StoryStage) -> str:
        answer = stage.answer(stage.workload.ask_committed, _MOMENTS)
        if answer is None:
            raise StepError("no coordinator answered")
        offset = answer.offsets.get(stage.partition, NOTHING)
        words = "nothing" if offset == NOTHING else f"offset {offset}"
        if self.last_record is not None and offset != _behind(self.last_record, stage):
            raise StepError(f"the group has committed {words}")
        return words


class SetGroup(GroupStep, frozen=True, kw_only=True):
    """Commit for the group, which has no member, that it is behind this record: at once, or with the transaction."""

    form: ClassVar[str] = "set group behind RECORD:record [in TRANSACTION:transaction]"
    suffix: ClassVar[str] = ""
    record: Record
    transaction: str | None = None

    def act(self, stage: StoryStage) -> None:
        offsets = {stage.partition: _behind((self.record,), stage)}
        transaction = None if self.transaction is None else stage.transaction(self.transaction)
        group = stage.workload.membership.group
        membership = msgspec.structs.replace(stage.workload.membership, group=f"{group}{self.suffix}")
        consumer = stage.clients.consumer(stage.workload.new_process(), membership)
        assert consumer.commits is not None, "it was made with a membership"  # noqa: S101
        commit, ask_member = consumer.commits.commit, consumer.commits.ask_member

        def ask(done: Callable[[str], None]) -> None:
            if transaction is None:
                commit(offsets, lambda answer: done(answer.error or ""))
            else:
                send = transaction.producer.calls.send_offsets
                ask_member(lambda token: send(offsets, token, lambda outcome: done(_refusal(outcome))))

        try:
            _from_outside(ask, stage)
        finally:
            consumer.close()


class SetOthers(SetGroup, frozen=True, kw_only=True):
    """The same for another group: its commits let segments of the log of groups end, which then are cleaned."""

    form: ClassVar[str] = "set others behind RECORD:record [in TRANSACTION:transaction]"
    suffix: ClassVar[str] = "-others"


class ForgetGroup(GroupStep, frozen=True, kw_only=True):
    """Let the coordinator forget the group, which has no member, and its offsets."""

    form: ClassVar[str] = "delete group"

    def act(self, stage: StoryStage) -> None:
        delete = partial(stage.direct.delete_group, stage.node(BrokerRole.COORDINATOR), stage.workload.membership.group)
        _from_outside(lambda done: delete(lambda outcome: done(_refusal(outcome))), stage)


def _refusal(outcome: SendOutcome) -> str:
    """The reason for which a request was refused, or nothing."""
    return "" if outcome.type is EventType.OK else outcome.error or "no reason was given"


def _from_outside(ask: Callable[[Callable[[str], None]], None], stage: StoryStage) -> None:
    """Ask the group as who is no member of it; the answer is a refusal, or nothing."""
    answer = stage.answer(ask, _MOMENTS)
    if answer is None or answer:
        raise StepError(answer or "no answer yet")


def _behind(record: tuple[Record, ...], stage: StoryStage) -> int:
    """The offset right behind a record; without one, that of a group that has committed nothing."""
    if not record:
        return NOTHING
    offset = stage.next_offset(record[0])
    if offset is None:
        raise StepError(f"the offset of {record[0]} is not known, because no answer told it")
    return offset


def _after_turn(member: SteppedMember, stage: StoryStage, polls_max: int = 1, *, halfway: bool = False) -> str:
    """Wait a moment for the turn to end, with more polls where one brings nothing; what became of it, in words."""
    polls = iter(range(1, polls_max))

    def ended() -> bool:
        if member.busy or member.read or member.gone or next(polls, None) is None:
            return not member.busy or member.halfway
        member.take_turn(halfway=halfway)
        return False

    stage.moment(ended, _MOMENTS)
    names = stage.names
    read = " ".join(record_name(names, value) for value in member.read) or "nothing"
    became = (
        "it is gone" if member.gone else "stops halfway" if member.halfway else "no answer yet" if member.busy else ""
    )
    return ", ".join(filter(None, [f"it reads {read}", became, f"its commit: {member.error}" if member.error else ""]))


# --- states ----------------------------------------------------------------------------------------------------------


class MemberState(ScriptState, frozen=True):
    """A state of a member of the group."""

    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES
    member: str


class IsAssigned(MemberState, frozen=True):
    """It has the log partition, as it was told in a poll."""

    form: ClassVar[str] = "MEMBER:member is [NOT:expected] assigned"
    expected: bool = True

    def holds(self, stage: StoryStage) -> bool:
        return stage.members[self.member].assigned is self.expected

    def instead(self, stage: StoryStage) -> str:
        assigned = stage.members[self.member].assigned
        return "it is assigned the log partition" if assigned else "it is assigned nothing"


class IsDone(MemberState, frozen=True):
    """It waits for nothing."""

    form: ClassVar[str] = "MEMBER:member is done"

    def holds(self, stage: StoryStage) -> bool:
        return not stage.members[self.member].busy

    def instead(self, stage: StoryStage) -> str:
        return "it stops halfway" if stage.members[self.member].halfway else "it waits for an answer"


class HasCommitted(MemberState, frozen=True):
    """It was told that the group took this."""

    form: ClassVar[str] = "MEMBER:member has committed RECORD:record"
    record: Record

    def holds(self, stage: StoryStage) -> bool:
        behind = stage.next_offset(self.record)
        committed = stage.members[self.member].committed.get(stage.partition, NOTHING)
        return behind is not None and committed >= behind

    def instead(self, stage: StoryStage) -> str:
        committed = stage.members[self.member].committed.get(stage.partition, "nothing")
        return f"its commits were taken up to {committed}"


class GroupIsEmpty(ScriptState, frozen=True):
    """The coordinator knows of no member. It knows nothing until it is asked."""

    form: ClassVar[str] = "group is empty"
    limits: ClassVar[WorldLimits] = WorldLimits.NOT_ON_PROCESSES

    def holds(self, stage: StoryStage) -> bool:
        return stage.group_is_empty is True

    def instead(self, stage: StoryStage) -> str:
        return "no coordinator knows the group" if stage.group_is_empty is None else "it has members"

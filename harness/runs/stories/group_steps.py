"""Performs the steps of members of a group, and what the group is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from harness.runs.stories import group_script as g
from harness.runs.stories.holding import all_hold, holds, instead
from harness.runs.stories.members import ScriptMembers
from harness.runs.stories.outside_commits import OutsideCommits
from harness.runs.stories.patience import Patience
from harness.runs.stories.steps import BrokerRole, Record, Step
from harness.runs.stories.story_world import StoryWorld
from harness.runs.stories.trace import StepError, record_name
from workloads import NOTHING, EventType, Offsets, Reached, SendOutcome
from workloads.driver import SteppedMember

#: A poll waits for records, and a commit is written to several brokers: that takes longer than one answer.
_MOMENTS: Final = 6


class GroupSteps:
    """Performs them. Each method answers with the result of a step, in words."""

    def __init__(
        self, story_world: StoryWorld, members: ScriptMembers, outside: OutsideCommits, patience: Patience
    ) -> None:
        self._story_world = story_world
        self._members = members
        self._outside = outside
        self._patience = patience

    def perform(self, step: Step) -> str:
        """Perform one of :data:`harness.runs.stories.group_script.OF_GROUPS`.

        Raises:
            StepError: it could not be performed.
        """
        return _ACTIONS[type(step)](self, step)

    def join(self, step: g.JoinGroup) -> str:
        """Make a member."""
        return self._after_turn(self._members.join(step.member), self._patience.polls_max)

    def poll(self, step: g.PollOnce) -> str:
        """Let it take a turn."""
        member = self._members.at_rest(step.member)
        member.take_turn(halfway=step.halfway)
        return self._after_turn(member, self._patience.polls_max, halfway=step.halfway)

    def poll_until(self, step: g.PollUntil) -> str:
        """Let it take turns until the states hold."""
        member = self._members.at_rest(step.member)

        def reached() -> bool:
            if all_hold(step.states, self._story_world):
                return True
            if not (member.busy or member.gone):
                member.take_turn(halfway=False)
            return False

        limit_ms = self._patience.limit_ms
        if not self._story_world.until(reached, limit_ms):
            wrong = [instead(state, self._story_world) for state in step.states if not holds(state, self._story_world)]
            raise StepError(f"polled for {limit_ms} ms without effect: {'; '.join(wrong)}")
        return self._after_turn(member)

    def finish(self, step: g.FinishWork) -> str:
        """Let it go on."""
        member = self._members.awake(step.member)
        if not member.busy:
            raise StepError(f"the member {step.member} has nothing left to do")
        member.go_on()
        return self._after_turn(member)

    def freeze(self, step: g.FreezeMember) -> str:
        """Let it stand still."""
        self._between_calls(step.member).frozen = True
        return ""

    def thaw(self, step: g.ThawMember) -> str:
        """Let it go on."""
        member = self._members.member(step.member)
        if not member.frozen:
            raise StepError(f"the member {step.member} does not stand still")
        member.frozen = False
        return ""

    def leave(self, step: g.LeaveGroup) -> str:
        """Let it leave."""
        self._members.at_rest(step.member).stop()
        self._story_world.let_pass(self._patience.answer_ms)
        return ""

    def crash(self, step: g.CrashMember) -> str:
        """Let it die."""
        self._between_calls(step.member).crash()
        return ""

    def hand_over(self, step: g.HandOver) -> str:
        """Ask the member for its name and epoch, and have its offset taken with the transaction."""
        member = self._members.awake(step.member)
        offset = self._behind((step.record,))
        transaction = self._story_world.transactions.transaction(step.transaction)
        part = Reached(self._story_world.partition, offset)
        answers: list[SendOutcome] = []
        member.hand_over(part, transaction.instance.calls, answers.append)
        self._moment(lambda: bool(answers))
        if not answers:
            return "no answer yet"
        if answers[0].type is not EventType.OK:
            return f"refused ({answers[0].error})"
        transaction.hand_over(part, member.group, self._story_world.now_us)
        return "taken"

    def ask(self, step: g.AskGroup) -> str:
        """Ask, and compare with what must be found."""
        answers: list[Offsets | None] = []
        self._members.ask(answers.append)
        self._moment(lambda: bool(answers))
        if not answers or answers[0] is None:
            raise StepError("no coordinator answered")
        offset = answers[0].offsets.get(self._story_world.partition, NOTHING)
        words = "nothing" if offset == NOTHING else f"offset {offset}"
        if step.last_record is not None and offset != self._behind(step.last_record):
            raise StepError(f"the group has committed {words}")
        return words

    def set(self, step: g.SetGroup) -> str:
        """Commit an offset from outside."""
        offsets = {self._story_world.partition: self._behind((step.record,))}
        return self._from_outside(
            partial(self._outside.commit, offsets, others=step.others, transaction=step.transaction)
        )

    def delete(self, _step: g.ForgetGroup) -> str:
        """Let the group be forgotten."""
        coordinator = self._story_world.node(BrokerRole.COORDINATOR)
        return self._from_outside(partial(self._outside.delete, coordinator))

    def _from_outside(self, act: Callable[[Callable[[str], None]], None]) -> str:
        answers: list[str] = []
        act(answers.append)
        self._moment(lambda: bool(answers))
        if not answers or answers[0]:
            raise StepError(answers[0] if answers else "no answer yet")
        return ""

    def _between_calls(self, name: str) -> SteppedMember:
        """A member whose library has nothing to do: a call that is open would go on without it."""
        member = self._members.awake(name)
        if member.busy and not member.halfway:
            raise StepError(f"the member {name} waits for an answer; write: wait until {name} is done")
        return member

    def _behind(self, record: tuple[Record, ...]) -> int:
        if not record:
            return NOTHING
        offset = self._story_world.next_offset(record[0])
        if offset is None:
            raise StepError(f"the offset of {record[0]} is not known, because no answer told it")
        return offset

    def _after_turn(self, member: SteppedMember, polls_max: int = 1, *, halfway: bool = False) -> str:
        """Wait a moment for the turn to end, with more polls where one brings nothing; what became of it, in words."""
        polls = iter(range(1, polls_max))

        def ended() -> bool:
            if member.busy or member.read or member.gone or next(polls, None) is None:
                return not member.busy or member.halfway
            member.take_turn(halfway=halfway)
            return False

        self._moment(ended)
        names = self._story_world.names
        read = " ".join(record_name(names, value) for value in member.read) or "nothing"
        parts = [
            f"it reads {read}",
            "it is gone"
            if member.gone
            else "stops halfway"
            if member.halfway
            else "no answer yet"
            if member.busy
            else "",
            f"its commit: {member.error}" if member.error else "",
        ]
        return ", ".join(filter(None, parts))

    def _moment(self, finished: Callable[[], bool]) -> None:
        self._story_world.until(finished, _MOMENTS * self._patience.answer_ms)


_ACTIONS: Final[Mapping[type, Callable[[GroupSteps, Any], str]]] = {
    g.JoinGroup: GroupSteps.join,
    g.PollOnce: GroupSteps.poll,
    g.PollUntil: GroupSteps.poll_until,
    g.FinishWork: GroupSteps.finish,
    g.FreezeMember: GroupSteps.freeze,
    g.ThawMember: GroupSteps.thaw,
    g.LeaveGroup: GroupSteps.leave,
    g.CrashMember: GroupSteps.crash,
    g.HandOver: GroupSteps.hand_over,
    g.AskGroup: GroupSteps.ask,
    g.SetGroup: GroupSteps.set,
    g.ForgetGroup: GroupSteps.delete,
}

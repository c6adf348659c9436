"""Classic groups whose members, coordinators and log do what they like: what must hold whatever they do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from harness.broker.core import messages
from harness.broker.core.groups.classic import ClassicRecord, State
from harness.broker.core.groups.group import RecordKey
from harness.broker.core.messages import CommittedOffset
from harness.broker.core.types import BrokerConfig, ErrorCode
from tests.harness.broker.core import classic_lab
from tests.harness.broker.core.classic_lab import REBALANCE_MS, ClassicLab

MEMBERS = st.integers(0, 2)
#: The generation that a member names, counted from the one that it was told last.
BEHIND = st.integers(0, 1)


class Member:
    """A member as its client has it: its name, and the generation and the leader that it was told."""

    def __init__(self) -> None:
        self.name = ""
        self.generation = 0
        self.leads = False


class ClassicGroups(RuleBasedStateMachine):
    """Three clients of one group, and its coordinators, one after the other, which have one log."""

    def __init__(self) -> None:
        super().__init__()
        self.lab = ClassicLab()
        self.members = [Member() for _ in range(3)]
        self.calls = 0
        self.joining: dict[str, Member] = {}
        #: The calls for assignments, each with its generation.
        self.syncing: dict[str, int] = {}
        #: Calls to coordinators that are gone.
        self.lost: set[str] = set()
        #: The assignments of each generation that were handed out, by the call of the leader that brought them.
        self.handed: dict[int, set[bytes]] = {}
        self.assigned_in = 0

    def ticket(self) -> str:
        self.calls += 1
        return f"{self.calls}"

    # --- what may happen ---------------------------------------------------------------------------------------------

    @rule(number=MEMBERS, named=st.booleans())
    def join(self, number: int, named: bool) -> None:
        member, ticket = self.members[number], self.ticket()
        self.joining[ticket] = member
        self.lab.join(ticket, member.name, named=named)

    @rule(number=MEMBERS, behind=BEHIND)
    def sync(self, number: int, behind: int) -> None:
        member, ticket = self.members[number], self.ticket()
        generation = member.generation - behind
        brought = {each.name: f"{ticket}".encode() for each in self.members} if member.leads else {}
        self.syncing[ticket] = generation
        self.lab.sync(ticket, member.name, generation, brought)

    @rule()
    def all_join(self) -> None:
        for number in range(len(self.members)):
            self.join(number, named=False)
            self.answers_are_true()

    @rule()
    def the_leader_brings_assignments(self) -> None:
        for number, member in enumerate(self.members):
            if member.leads:
                self.sync(number, 0)

    @rule(number=MEMBERS)
    def beat(self, number: int) -> None:
        self.lab.beat(self.members[number].name, self.members[number].generation)

    @rule(number=MEMBERS)
    def leave(self, number: int) -> None:
        self.lab.leave(self.members[number].name)

    @rule(number=MEMBERS, behind=BEHIND)
    def commit(self, number: int, behind: int) -> None:
        member = self.members[number]
        generation = member.generation - behind
        if self.lab.log_waits or not member.name or generation < 0:  # That is a commit of nobody.
            return
        error = self.lab.commit(member.name, generation, self.calls)
        if not error:
            assert generation >= self.assigned_in, "a commit of an earlier generation was taken"
            classic = self.lab.group().classic
            assert classic is not None
            assert generation == classic.generation, "a commit of no present generation was taken"

    @rule(time_ms=st.sampled_from([400, 1_100, REBALANCE_MS + 1]))
    def wait(self, time_ms: int) -> None:
        self.lab.pass_ms(time_ms)

    @rule()
    def let_the_log_wait(self) -> None:
        self.lab.log_waits = True

    @precondition(lambda self: self.lab.log_waits)
    @rule(refuse=st.booleans())
    def let_the_log_go_on(self, refuse: bool) -> None:
        self.lab.commit_log(refuse=refuse)

    @rule()
    def move(self) -> None:
        """The next coordinator knows what is on the log, and nothing else."""
        self.lost |= self.lab.open
        self.lab.log_waits = False
        self.lab.move()
        record, offset = self.on_the_log()
        classic = self.lab.group().classic
        loaded = None
        if classic is not None:
            members = {name: member.told for name, member in classic.members.items()}
            told = (classic.generation, classic.protocol_type, classic.protocol, classic.leader, members)
            loaded = ClassicRecord(*told)
            assert classic.state is (State.STABLE if members else State.EMPTY)
        assert loaded == record
        assert self.lab.offset() == offset

    def on_the_log(self) -> tuple[ClassicRecord | None, CommittedOffset]:
        """The last generation, and the last commit."""
        record, offset = None, messages.NOT_COMMITTED
        for batch in self.lab.log.read(0, 2**62, 2**62):
            for key, value in batch.records:
                if msgspec.msgpack.decode(key, type=RecordKey).partition is None:
                    record = msgspec.msgpack.decode(value, type=ClassicRecord)
                else:
                    offset = msgspec.msgpack.decode(value, type=CommittedOffset)
        return record, offset

    # --- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def answers_are_true(self) -> None:
        for ticket in [each for each in self.joining if each in self.lab.answers]:
            self.joined(self.joining.pop(ticket), self.lab.answers[ticket])
        for ticket in [each for each in self.syncing if each in self.lab.answers]:
            generation, answer = self.syncing.pop(ticket), self.lab.answers[ticket]
            if not answer.error:
                self.assigned_in = max(self.assigned_in, generation)
                assert generation == self.assigned_in, "an assignment of an earlier generation was handed out"
                self.handed.setdefault(generation, set()).add(answer.assignment)
        for generation, brought in self.handed.items():
            assert len(brought - {b""}) <= 1, f"two assignments of generation {generation} were handed out"

    def joined(self, member: Member, answer: Any) -> None:
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            member.name = answer.member
        elif answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
            member.name = ""
        elif not answer.error:
            assert answer.generation >= self.assigned_in, "a generation before the one with assignments began again"
            member.name, member.generation = answer.member, answer.generation
            member.leads = answer.leader == answer.member

    def teardown(self) -> None:
        """Every call is answered, once: the lab has looked at that, and time ends all waiting."""
        self.lab.commit_log()
        for _ in range(3):
            self.lab.pass_ms(REBALANCE_MS + 1)
        waiting = self.lab.open - self.lost
        self.lab.depose()
        assert not self.lab.open - self.lost
        syncs = set(self.syncing)
        assert waiting <= syncs, "a joining did not end with its time"


def play(examples: int) -> None:
    run_state_machine_as_test(
        ClassicGroups,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
        ),
    )


def test_whatever_members_coordinators_and_logs_do_one_assignment_counts() -> None:
    play(100)


@pytest.mark.parametrize("bug", ["keep-generation", "assignment-of-before", "commit-of-before", "load-no-members"])
def test_a_wrong_form_is_found_at_random(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_lab, "CONFIG", BrokerConfig(planted_bug=bug))
    with pytest.raises(AssertionError):
        play(400)

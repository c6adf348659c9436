"""Groups (rules 42 to 45): who is a member, what each may read, and the offsets that groups remember."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.core import messages
from harness.broker.core.groups.consumer import GroupRecord, MemberRecord, reconciled, targets_of
from harness.broker.core.groups.coordinator import LOG, WAITING_MAX
from harness.broker.core.messages import JOINS, Fetch
from harness.broker.core.types import CONTROLLER, NONE, BrokerConfig, ErrorCode, TopicPartition
from nemesis.cluster import Link
from tests.harness.broker.core.group_lab import GROUP, T0, T1, GroupLab, LabMember, commits

T2 = TopicPartition("read", 2)
BOTH = (T0, T1)


def member(epoch: int = 1, assigned: Any = (), revoking: Any = ()) -> MemberRecord:
    return MemberRecord(epoch, epoch - 1, ("read",), 1_000, assigned, revoking)


# --- who may read what (rule 43) -------------------------------------------------------------------------------------


def test_log_partitions_are_dealt_out_in_turn_to_those_who_read_the_topic() -> None:
    other = MemberRecord(1, 0, ("else",), 1_000)
    dealt = targets_of({"b": member(), "a": member(), "c": other}, {"read": 3, "else": 1}.__getitem__)
    assert dealt == {"a": (T0, T2), "b": (T1,), "c": (TopicPartition("else", 0),)}


def test_a_member_stays_in_its_epoch_until_it_has_given_up_what_others_are_to_get() -> None:
    """The example of the module's text."""
    asked = reconciled(member(assigned=BOTH), 2, (T0,), owned=BOTH, taken=set())
    assert (asked.epoch, asked.assigned, asked.revoking) == (1, (T0,), (T1,))
    assert reconciled(asked, 2, (T0,), owned=BOTH, taken=set()) == asked
    given_up = reconciled(asked, 2, (T0,), owned=(T0,), taken=set())
    assert (given_up.epoch, given_up.previous_epoch, given_up.assigned, given_up.revoking) == (2, 1, (T0,), ())
    exchanging = reconciled(member(assigned=BOTH), 2, (T1, T2), owned=BOTH, taken=set())
    assert (exchanging.epoch, exchanging.assigned, exchanging.revoking) == (1, (T1,), (T0,))


def test_a_member_gets_nothing_that_another_one_may_still_read() -> None:
    group = GroupRecord(2, {"a": member(assigned=(T0,), revoking=(T1,)), "b": member(2)})
    taken = group.held_by_others("b")
    assert taken == {T0, T1}
    assert reconciled(group.members["b"], 2, (T1,), owned=(), taken=taken).assigned == ()
    assert reconciled(group.members["b"], 2, (T1,), owned=(), taken={T0}).assigned == (T1,)


def test_what_a_member_is_to_get_back_it_keeps() -> None:
    kept = reconciled(member(assigned=(T0,), revoking=(T1,)), 3, BOTH, owned=BOTH, taken=set())
    assert (kept.epoch, kept.assigned, kept.revoking) == (3, BOTH, ())


def test_a_member_that_is_where_it_shall_be_does_not_change() -> None:
    settled = member(assigned=(T0,))
    assert reconciled(settled, 1, (T0,), owned=(T0,), taken={T1}) == settled


# --- members (rules 42, 43) ------------------------------------------------------------------------------------------


def test_a_newcomer_waits_for_what_the_member_before_it_gives_up() -> None:
    lab = GroupLab()
    a = lab.member("a")
    assert a.owned == BOTH
    b = lab.member("b")
    assert b.owned == ()
    both = LabMember("a")
    both.epoch, both.owned = a.epoch, a.owned
    lab.beat(a)
    assert a.owned == (T0,)
    assert a.epoch < b.epoch
    lab.beat(both)  # What "a" still has, by its own word.
    lab.beat(b)
    assert b.owned == ()
    lab.beat(a)
    assert a.epoch == b.epoch
    lab.beat(b)
    assert b.owned == (T1,)
    log = lab.brokers[lab.coordinator].replicas[LOG].log
    end = log.end_offset
    lab.beat(b)
    assert log.end_offset == end


def test_what_a_member_leaves_is_free_at_once() -> None:
    lab = GroupLab()
    a, b = lab.member("a"), lab.member("b")
    before = b.epoch
    assert lab.leave(a) == ErrorCode.NONE
    lab.beat(b)
    assert b.owned == BOTH
    assert b.epoch > before
    assert lab.leave(a) == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.beat(a).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_is_silent_for_a_session_is_given_up_and_may_come_back() -> None:
    lab = GroupLab()
    a, b = lab.member("a"), lab.member("b")
    for offset in range(4):
        lab.run(1_000)
        lab.beat(b)
        assert lab.commit(b, offset, T1) == ErrorCode.NONE
    assert b.owned == BOTH
    assert lab.commit(a, 5) == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.beat(a).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.beat(a, epoch=JOINS).member_epoch > b.epoch


def test_only_heartbeats_of_its_epoch_keep_a_member() -> None:
    lab = GroupLab()
    a, b = lab.member("a"), lab.member("b")
    for _ in range(3):
        lab.run(1_000)
        assert lab.beat(a, epoch=a.epoch + 1).error == ErrorCode.FENCED_MEMBER_EPOCH
        assert lab.commit(b, 1, T1) == ErrorCode.NONE
    lab.run(500)
    assert lab.beat(a).error == lab.beat(b).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_keeps_what_it_shall_give_up_is_given_up() -> None:
    lab = GroupLab()
    a = LabMember("a")
    lab.beat(a, rebalance_ms=500)
    b = lab.member("b")
    stubborn = LabMember("a")
    for _ in range(4):
        stubborn.epoch, stubborn.owned = a.epoch, BOTH
        lab.beat(stubborn)
        assert lab.commit(b, 1, T1) == ErrorCode.NONE
        lab.run(300)
    lab.beat(b)
    assert b.owned == BOTH


def test_a_heartbeat_of_another_epoch_is_fenced_unless_only_its_answer_was_lost() -> None:
    lab = GroupLab()
    a, b = lab.member("a"), lab.member("b")
    lab.beat(a)
    before = a.epoch
    lab.beat(a)
    assert a.epoch == before + 1
    assert lab.beat(a, epoch=before).member_epoch == a.epoch
    assert lab.beat(a, epoch=a.epoch + 1).error == ErrorCode.FENCED_MEMBER_EPOCH
    a.owned = BOTH  # It knows of more than the epoch before had for it.
    assert lab.beat(a, epoch=before).error == ErrorCode.FENCED_MEMBER_EPOCH
    a.owned = (T0,)
    assert lab.leave(b) == ErrorCode.NONE
    lab.beat(a)
    a.owned = ()
    assert lab.beat(a, epoch=before).error == ErrorCode.FENCED_MEMBER_EPOCH


def test_only_the_leader_of_the_log_is_a_coordinator() -> None:
    lab = GroupLab()
    a = lab.member("a")
    assert lab.commit(a, 1, node=0) == ErrorCode.NOT_COORDINATOR
    lab.move(0)
    lab.run(1_000)
    assert lab.commit(a, 1, node=1) == ErrorCode.NOT_COORDINATOR
    assert lab.commit(a, 1) == ErrorCode.NONE


# --- offsets (rule 44) -----------------------------------------------------------------------------------------------


def test_a_group_remembers_the_last_offset_of_each_log_partition() -> None:
    lab = GroupLab()
    a = lab.member("a")
    assert [lab.committed(), lab.committed(T1)] == [NONE, NONE]
    assert lab.commit(a, 7) == lab.commit(a, 5) == lab.commit(a, 3, T1) == ErrorCode.NONE
    assert [lab.committed(), lab.committed(T1), lab.committed(member=a)] == [5, 3, 5]


def test_a_member_commits_and_asks_in_its_present_epoch_only() -> None:
    lab = GroupLab()
    a = lab.member("a")
    lab.member("b")
    old = LabMember("a")
    old.epoch = a.epoch
    lab.beat(a)
    lab.beat(a)
    assert lab.commit(old, 5) == lab.committed(member=old) == ErrorCode.STALE_MEMBER_EPOCH
    assert lab.commit(a, 5) == ErrorCode.NONE
    assert lab.committed(member=a) == 5


def test_who_is_no_member_may_ask_at_any_time_and_commit_while_there_is_none() -> None:
    lab = GroupLab()
    nobody = LabMember("")
    nobody.epoch = NONE
    assert lab.commit(nobody, 4) == ErrorCode.NONE
    a = lab.member("a")
    assert lab.commit(nobody, 9) == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.committed(member=LabMember("x")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert [lab.committed(), lab.committed(member=a)] == [4, 4]


def test_a_commit_counts_once_it_is_committed_and_who_asks_meanwhile_waits() -> None:
    """The coordinator dies with a commit that nobody else has."""
    lab = GroupLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    lab.network.cut([Link(*pair) for pair in ((1, 0), (1, 2), (0, 1), (2, 1))])
    commit, question = lab.commit_of(a, 8), messages.OffsetFetch(lab.correlation(), GROUP, partitions=(T0,))
    lab.send(1, commit)
    lab.send(1, question)
    lab.run(300)
    assert lab.answer(commit.correlation) is lab.answer(question.correlation) is None
    lab.kill(1)
    lab.network.heal(lab.links)
    lab.wait(lambda: lab.coordinator in {0, 2})
    lab.run(1_000)
    assert lab.committed() == 3


def test_requests_are_answered_in_their_turn_and_told_when_another_broker_coordinates() -> None:
    lab = GroupLab()
    a = lab.member("a")
    lab.lose = lambda source, target, message: target == 1 and isinstance(message, Fetch)
    commits = [lab.commit_of(a, offset) for offset in range(WAITING_MAX + 2)]
    for commit in commits:
        lab.send(1, commit)
    lab.run(10)
    last = commits.pop()
    assert lab.answer(last.correlation).error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    lab.heal()
    lab.run(50)
    lab.move(2)
    lab.run(1_000)
    answered = {answer.correlation: answer.error for answer in lab.answers}
    errors = [answered[commit.correlation] for commit in commits]
    taken = errors.index(ErrorCode.NOT_COORDINATOR)
    assert errors == [ErrorCode.NONE] * taken + [ErrorCode.NOT_COORDINATOR] * (len(commits) - taken)
    assert lab.committed() in {taken - 1, taken}  # The one that was under way may have reached the others.


def test_while_a_change_is_under_way_nobody_is_given_up_and_then_all_who_wait_are_answered() -> None:
    lab = GroupLab(BrokerConfig(session_timeout_ms=3_000, replica_lag_time_max_ms=60_000))
    a = lab.member("a")
    lab.lose = lambda source, target, message: target == 1 and isinstance(message, Fetch)
    commit = lab.commit_of(a, 8)
    questions = [messages.OffsetFetch(lab.correlation(), GROUP, partitions=(T0,)) for _ in range(5)]
    for request in (commit, *questions):
        lab.send(1, request)
    lab.run(5_000)
    assert lab.answer(commit.correlation) is None
    lab.heal()
    lab.wait(lambda: lab.answer(commit.correlation) is not None)
    lab.run(1_000)
    assert lab.answer(commit.correlation).error == ErrorCode.NONE
    assert [lab.answer(question.correlation).offsets for question in questions] == [commits((T0, 8))] * 5
    assert lab.commit(a, 9) == ErrorCode.UNKNOWN_MEMBER_ID


# --- elections (rule 45) ---------------------------------------------------------------------------------------------


def test_a_new_coordinator_knows_members_and_offsets() -> None:
    lab = GroupLab()
    a, b = lab.member("a"), lab.member("b")
    assert lab.commit(a, 5) == lab.commit(a, 6) == ErrorCode.NONE
    lab.kill(1)
    lab.wait(lambda: lab.coordinator in {0, 2})
    lab.run(500)
    assert lab.committed(member=a) == 6
    lab.beat(a)
    lab.beat(a)
    lab.beat(b)
    assert (a.owned, b.owned) == ((T0,), (T1,))
    assert lab.commit(b, 2, T1) == ErrorCode.NONE


def test_a_coordinator_that_missed_its_election_tells_who_is_no_member_what_it_knew() -> None:
    """A member cannot be sent back so, once its epoch has changed."""
    lab = GroupLab()
    a = lab.member("a")
    assert lab.commit(a, 3) == ErrorCode.NONE
    lab.network.cut([Link(*pair) for other in (0, 2, CONTROLLER) for pair in ((1, other), (other, 1))])
    lab.wait(lambda: lab.coordinator in {0, 2})
    lab.run(1_000)
    assert lab.commit(a, 8) == ErrorCode.NONE
    assert [lab.committed(), lab.committed(node=1)] == [8, 3]
    lab.member("b")
    lab.beat(a)
    lab.beat(a)
    assert lab.committed(member=a, node=1) == ErrorCode.STALE_MEMBER_EPOCH
    assert lab.committed(member=a) == 8


def test_a_coordinator_that_has_not_read_its_log_says_so_and_gives_nobody_up_meanwhile() -> None:
    """The log that it read is not committed yet: followers do not fetch from it."""
    lab = GroupLab()
    a = lab.member("a")
    lab.commit(a, 5)
    lab.lose = lambda source, target, message: target == 2 and isinstance(message, Fetch)
    lab.move(2)
    replica = lab.brokers[2].replicas[LOG]
    assert lab.committed() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.run(1_000)
    assert replica.high_watermark < replica.log.end_offset
    assert lab.beat(a).error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    lab.heal()
    lab.run(3_000)
    assert lab.commit(a, 6) == ErrorCode.NONE


def test_a_commit_that_the_log_refuses_has_no_effect() -> None:
    lab = GroupLab()
    a = lab.member("a")
    lab.kill(0, 2)
    lab.fence(0, 2)
    lab.run(3_000)
    assert lab.commit(a, 5, node=1) in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
    lab.start(0)
    lab.start(2)
    lab.run(3_000)
    assert lab.committed() == NONE


@pytest.mark.parametrize(
    "kind",
    [messages.ConsumerGroupHeartbeat, messages.OffsetCommit, messages.TxnOffsetCommit, messages.OffsetFetch],
)
def test_a_broker_that_never_leads_the_log_answers_every_request_in_its_kind(kind: Any) -> None:
    lab = GroupLab(BrokerConfig())
    answer = lab.ask(0, lambda c: kind(c, GROUP))
    assert type(answer).__name__ == f"{kind.__name__}Response"
    assert answer.error == ErrorCode.NOT_COORDINATOR

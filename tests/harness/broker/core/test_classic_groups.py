"""Groups by the classic protocol (rules 51 to 56): who joins, who leads, what is handed out, and what survives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.core import messages
from harness.broker.core.groups import coordinator
from harness.broker.core.messages import CommittedOffset, Offer
from harness.broker.core.types import NONE, BrokerConfig, ErrorCode
from tests.harness.broker.core import classic_lab
from tests.harness.broker.core.classic_lab import GROUP, RANGE, REBALANCE_MS, SESSION_MS, T0, ClassicLab, PairLab


def names(joined: Any) -> list[str]:
    return [name for name, _ in joined.members]


def offers(*each: tuple[str, bytes]) -> tuple[Offer, ...]:
    return tuple(Offer(name, metadata, ("t",)) for name, metadata in each)


# --- joining ---------------------------------------------------------------------------------------------------------


def test_a_single_member_leads_at_once_and_gets_what_it_assigns() -> None:
    lab = ClassicLab()
    joined = lab.join("j")
    assert (joined.error, joined.generation, joined.leader) == (ErrorCode.NONE, 1, joined.member)
    assert joined.members == ((joined.member, b"r"),)
    synced = lab.sync("s", joined.member, 1, {joined.member: b"mine"})
    assert (synced.error, synced.assignment, synced.protocol) == (ErrorCode.NONE, b"mine", "range")


def test_a_client_that_knows_names_gets_one_before_it_joins() -> None:
    lab = ClassicLab()
    refused = lab.join("j1", named=True)
    assert refused.error == ErrorCode.MEMBER_ID_REQUIRED
    assert lab.join("j2", refused.member, named=True).generation == 1
    assert lab.join("j3", "nobody", named=True).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_name_is_given_once_also_by_the_next_coordinator() -> None:
    lab = ClassicLab()
    given = {lab.join(f"j{number}", named=True).member for number in range(3)}
    lab.move()
    given |= {lab.join(f"k{number}", named=True).member for number in range(3)}
    assert len(given) == 6


def test_a_second_member_makes_the_first_join_again_and_both_are_told() -> None:
    pair = PairLab()
    joined_a, joined_b = pair.answers["a2"], pair.answers["b1"]
    assert (joined_a.generation, joined_b.generation) == (2, 2)
    assert joined_a.leader == joined_b.leader == pair.a
    assert (names(joined_a), joined_b.members) == ([pair.a, pair.b], ())
    assert (pair.answers["as2"].assignment, pair.answers["bs2"].assignment) == (b"half", b"other half")


def test_a_member_that_does_not_join_again_in_time_is_out() -> None:
    pair = PairLab()
    pair.join("c1")
    pair.join("a3", pair.a)
    for _ in range(REBALANCE_MS // 500):
        assert "c1" not in pair.answers
        pair.pass_ms(500)
        if pair.b in pair.members:
            pair.beat(pair.b, 2)
    assert pair.answers["c1"].generation == 3
    assert names(pair.answers["a3"]) == [pair.a, pair.answers["c1"].member]
    assert pair.beat(pair.b, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_was_named_and_does_not_come_holds_a_joining_up_for_its_session_only() -> None:
    pair = PairLab()
    pair.join("c1", named=True)
    pair.join("a3", pair.a)
    pair.join("b3", pair.b, offers(("range", b"new")))
    assert pair.open == {"a3", "b3"}
    pair.pass_ms(SESSION_MS + 1)
    assert pair.answers["a3"].generation == pair.answers["b3"].generation == 3


def test_a_leader_that_joins_again_makes_all_join_again() -> None:
    pair = PairLab()
    assert pair.join("a3", pair.a) is None
    assert pair.beat(pair.b, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.join("b2", pair.b).generation == pair.answers["a3"].generation == 3


def test_a_repeated_join_of_an_unchanged_follower_is_told_the_present_generation() -> None:
    pair = PairLab()
    assert pair.join("b2", pair.b).generation == 2
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    assert pair.join("b3", pair.b, offers(("range", b"changed"))) is None
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_is_the_one_that_all_know_and_most_prefer() -> None:
    lab = ClassicLab()
    of_a = offers(("x", b""), ("y", b"a"))
    a = lab.join("a1", offers=of_a).member
    lab.join("b1", offers=offers(("y", b"b"), ("z", b"")))
    lab.join("a2", a, of_a)
    assert lab.answers["b1"].protocol == "y"
    assert lab.answers["a2"].members[0][1] == b"a"
    assert lab.join("c", offers=offers(("z", b""))).error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other_kind = lab.join("d", kind="connect", offers=offers(("y", b"")))
    assert other_kind.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("session_ms", [0, 99, 2_000_000_000])
def test_an_impossible_session_timeout_is_refused(session_ms: int) -> None:
    assert ClassicLab().join("j", session_ms=session_ms).error == ErrorCode.INVALID_SESSION_TIMEOUT


def test_there_are_only_so_many_groups_and_those_that_nobody_knows_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinator, "GROUPS_MAX", 2)
    lab = ClassicLab()
    for number in range(5):
        assert lab.leave("nobody", group=f"unknown {number}") == ErrorCode.UNKNOWN_MEMBER_ID
    lab.join("j1", group="g1")
    lab.join("j2", group="g2", named=True)
    assert lab.join("j3", group="g3").error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    lab.pass_ms(SESSION_MS + 1)
    assert lab.join("j4", group="g3").error == ErrorCode.NONE


# --- sessions --------------------------------------------------------------------------------------------------------


def test_heartbeats_say_when_to_join_again() -> None:
    pair = PairLab()
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    assert pair.beat(pair.a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert pair.beat("nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    pair.join("c1")
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_silent_member_is_dropped_after_its_session_and_the_rest_rebalances() -> None:
    pair = PairLab()
    pair.pass_ms(SESSION_MS - 1)
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    pair.pass_ms(2)
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = pair.join("a3", pair.a)
    assert (joined.generation, joined.members) == (3, ((pair.a, b"r"),))


def test_a_silent_member_does_not_hold_up_a_joining_longer_than_its_session() -> None:
    pair = PairLab()
    pair.join("c1")
    pair.join("a3", pair.a)
    pair.pass_ms(SESSION_MS + 1)
    assert pair.answers["c1"].generation == 3


def test_a_member_that_waits_for_an_answer_is_not_silent() -> None:
    lab = ClassicLab()
    first = lab.join("a1").member
    lab.sync("s", first, 1)
    lab.join("b1")
    for _ in range(3):
        lab.pass_ms(SESSION_MS - 100)
        lab.beat(first, 1)
    assert lab.open == {"b1"}
    lab.join("a2", first)
    assert lab.answers["b1"].generation == 2


def test_a_heartbeat_keeps_a_member_while_others_join() -> None:
    pair = PairLab()
    pair.join("c1")
    for _ in range(3):
        pair.pass_ms(SESSION_MS - 100)
        assert pair.beat(pair.b, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.b in pair.members
    assert pair.beat(pair.a, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_hands_leadership_on() -> None:
    pair = PairLab()
    assert pair.leave(pair.a) == ErrorCode.NONE
    assert pair.join("b2", pair.b).leader == pair.b
    assert pair.leave("nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert pair.leave(pair.b) == ErrorCode.NONE
    assert pair.commit() == ErrorCode.NONE


def test_who_waits_is_told_that_another_broker_coordinates() -> None:
    pair = PairLab()
    pair.join("c1")
    pair.depose()
    assert pair.answers["c1"].error == ErrorCode.NOT_COORDINATOR
    assert pair.beat(pair.a, 2) == ErrorCode.NOT_COORDINATOR


# --- assignments -----------------------------------------------------------------------------------------------------


def third_generation(pair: PairLab) -> str:
    """A third member comes; its name. Nobody has an assignment yet."""
    pair.join("c1")
    pair.join("a3", pair.a)
    pair.join("b3", pair.b)
    name: str = pair.answers["c1"].member
    return name


def test_a_follower_that_syncs_before_the_leader_waits_for_it() -> None:
    pair = PairLab()
    c = third_generation(pair)
    assert pair.sync("bs3", pair.b, 3) is pair.sync("cs", c, 3) is None
    pair.sync("as3", pair.a, 3, {c: b"third"})
    assert pair.answers["cs"].assignment == b"third"
    assert pair.sync("late", pair.b, 3).assignment == b""


def test_an_assignment_is_for_members_of_its_generation() -> None:
    pair = PairLab()
    assert pair.sync("old", pair.b, 1).error == ErrorCode.ILLEGAL_GENERATION
    assert pair.sync("stranger", "nobody", 2).error == ErrorCode.UNKNOWN_MEMBER_ID
    assert pair.sync("again", pair.b, 2).assignment == b"other half"
    pair.join("c1")
    assert pair.sync("joining", pair.b, 2).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_rebalance_ends_the_waiting_for_an_assignment() -> None:
    pair = PairLab()
    third_generation(pair)
    pair.sync("bs3", pair.b, 3)
    pair.join("d1")
    assert pair.answers["bs3"].error == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.sync("as3", pair.a, 3).error == ErrorCode.REBALANCE_IN_PROGRESS


def test_assignments_are_handed_out_once_they_are_committed_and_only_the_first_ones() -> None:
    pair = PairLab()
    c = third_generation(pair)
    pair.log_waits = True
    assert pair.sync("as3", pair.a, 3, {c: b"first"}) is None
    pair.sync("cs", c, 3)
    assert pair.sync("as3 again", pair.a, 3, {c: b"second"}) is None
    assert pair.answers["as3"].error == ErrorCode.REBALANCE_IN_PROGRESS  # A repeated call ends the one before.
    assert pair.beat(pair.b, 3) == ErrorCode.NONE
    pair.commit_log()
    assert (pair.answers["cs"].assignment, pair.answers["as3 again"].error) == (b"first", ErrorCode.NONE)


def test_assignments_that_the_log_refuses_are_nobodys_and_all_join_again() -> None:
    pair = PairLab()
    third_generation(pair)
    pair.log_waits = True
    pair.sync("as3", pair.a, 3, {pair.a: b"all"})
    pair.commit_log(refuse=True)
    assert pair.answers["as3"].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert pair.beat(pair.b, 3) == ErrorCode.REBALANCE_IN_PROGRESS


def test_assignments_of_a_generation_that_is_over_when_they_are_committed_are_nobodys() -> None:
    pair = PairLab()
    c = third_generation(pair)
    pair.log_waits = True
    pair.sync("as3", pair.a, 3, {pair.a: b"all"})
    pair.leave(c)
    pair.commit_log()
    assert pair.answers["as3"].error == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.sync("bs3", pair.b, 3).error == ErrorCode.REBALANCE_IN_PROGRESS


# --- commits ---------------------------------------------------------------------------------------------------------


def test_only_members_of_the_present_generation_commit_and_only_outside_of_syncing() -> None:
    pair = PairLab()
    assert pair.commit(pair.a, 2) == ErrorCode.NONE
    assert pair.offset() == CommittedOffset(5, 3, "note")
    assert pair.commit(pair.a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert pair.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    pair.join("c1")
    assert pair.commit(pair.a, 2) == ErrorCode.NONE
    pair.join("a3", pair.a)
    pair.join("b3", pair.b)
    assert pair.commit(pair.a, 3) == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_names_a_member_commits_nothing_where_there_is_none() -> None:
    lab = ClassicLab()
    assert lab.commit("m", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert lab.commit() == ErrorCode.NONE


def test_a_commit_of_nothing_is_answered_and_not_written() -> None:
    pair = PairLab()
    end = pair.log.end_offset
    assert pair.ask("", messages.OffsetCommit, GROUP, pair.a, 2).error == ErrorCode.NONE
    assert pair.log.end_offset == end


def test_membership_goes_on_while_a_commit_is_under_way_and_offsets_wait_for_it() -> None:
    pair = PairLab()
    pair.log_waits = True
    offsets = ((T0, CommittedOffset(7)),)
    assert pair.ask("commit", messages.OffsetCommit, GROUP, pair.a, 2, offsets) is None
    assert pair.ask("fetch", messages.OffsetFetch, GROUP, partitions=(T0,)) is None
    assert pair.beat(pair.b, 2) == ErrorCode.NONE
    assert pair.join("b2", pair.b).generation == 2
    pair.commit_log()
    assert pair.answers["fetch"].offsets == offsets


def dropped(lab: ClassicLab) -> tuple[ErrorCode, bool]:
    """The error of deleting an offset of topic t, and whether its topic is read."""
    answer = lab.ask("", messages.DeleteOffsets, GROUP, partitions=(T0,))
    return answer.error, answer.read == (T0,)


def reading(*topics: str) -> tuple[Offer, ...]:
    return (Offer("range", b"r", topics),)


@pytest.mark.parametrize(
    ("offers", "stays"), [(reading("t"), True), (reading("u"), False), ((Offer("range", b"odd"),), True)]
)
def test_an_offset_of_a_topic_that_a_member_reads_or_may_stays(offers: tuple[Offer, ...], stays: bool) -> None:
    lab = ClassicLab()
    lab.commit()
    member = lab.join("a", offers=offers).member
    for _ in range(2):
        assert dropped(lab) == (ErrorCode.NONE, stays)
        assert lab.offset().offset == (5 if stays else NONE)
        lab.sync(f"s{lab.leader_epoch}", member, 1, {member: b"all"})
        lab.move()


def test_what_members_read_is_known_from_generation_to_generation() -> None:
    """A newcomer's topics count when all have joined."""
    lab = ClassicLab()
    lab.commit()
    first = lab.join("a1", offers=reading("u")).member
    lab.join("b1", offers=reading("t"))
    assert dropped(lab) == (ErrorCode.NONE, False)
    lab.join("a2", first, reading("u"))
    assert dropped(lab) == (ErrorCode.NONE, True)


def test_offsets_of_a_group_that_is_not_of_consumers_stay_while_it_has_members() -> None:
    lab = ClassicLab()
    assert dropped(lab)[0] == ErrorCode.GROUP_ID_NOT_FOUND
    lab.commit()
    lab.join("a", kind="connect", offers=reading("u"))
    assert dropped(lab)[0] == ErrorCode.NON_EMPTY_GROUP
    assert lab.offset().offset == 5


def test_where_no_offset_is_there_nothing_is_written() -> None:
    lab = ClassicLab()
    lab.join("a", offers=reading("u"))
    end = lab.log.end_offset
    assert dropped(lab) == (ErrorCode.NONE, False)
    assert lab.log.end_offset == end


# --- a new coordinator -----------------------------------------------------------------------------------------------


def test_members_go_on_at_a_new_coordinator_without_a_rebalance() -> None:
    pair = PairLab()
    pair.commit(pair.a, 2)
    pair.move()
    assert [pair.beat(pair.a, 2), pair.beat(pair.b, 2)] == [ErrorCode.NONE] * 2
    assert pair.commit(pair.b, 2, 6) == ErrorCode.NONE
    assert pair.sync("again", pair.b, 2).assignment == b"other half"
    assert pair.join("b2", pair.b).leader == pair.a
    pair.pass_ms(SESSION_MS + 1)
    assert pair.members == []


def test_a_new_coordinator_knows_the_last_commit() -> None:
    pair = PairLab()
    pair.commit(pair.a, 2, 5)
    pair.commit(pair.a, 2, 8)
    pair.move()
    assert pair.offset() == CommittedOffset(8, 3, "note")


def test_a_generation_that_was_not_committed_is_over_with_its_coordinator() -> None:
    pair = PairLab()
    c = third_generation(pair)
    pair.move()
    assert pair.beat(c, 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert [pair.beat(pair.a, 3), pair.commit(pair.a, 3)] == [ErrorCode.ILLEGAL_GENERATION] * 2
    pair.join("a4", pair.a)
    assert pair.join("b4", pair.b).generation == pair.answers["a4"].generation == 3


def test_a_group_that_all_have_left_goes_on_counting_at_a_new_coordinator() -> None:
    pair = PairLab()
    pair.leave(pair.a)
    pair.leave(pair.b)
    assert pair.group().classic.generation == 3  # type: ignore[union-attr]
    pair.move()
    assert pair.members == []
    assert pair.join("c").generation == 4


def test_a_deleted_group_begins_from_the_start_also_at_a_new_coordinator() -> None:
    pair = PairLab()
    pair.commit(pair.a, 2)
    assert pair.ask("", messages.DeleteGroup, GROUP).error == ErrorCode.NON_EMPTY_GROUP
    pair.leave(pair.a)
    pair.leave(pair.b)
    assert pair.ask("", messages.DeleteGroup, GROUP).error == ErrorCode.NONE
    for _ in range(2):
        assert not pair.group().exists
        pair.move()
    assert pair.join("c").generation == 1


def test_a_deletion_that_the_log_refuses_deletes_nothing() -> None:
    lab = ClassicLab()
    lab.commit()
    lab.log_waits = True
    lab.ask("deletion", messages.DeleteGroup, GROUP)
    lab.commit_log(refuse=True)
    assert lab.answers["deletion"].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert lab.offset().offset == 5


def test_who_joins_while_the_group_is_deleted_waits_and_makes_it_anew() -> None:
    pair = PairLab()
    pair.leave(pair.a)
    pair.leave(pair.b)
    pair.log_waits = True
    assert pair.ask("deletion", messages.DeleteGroup, GROUP) is None
    assert pair.join("c") is None
    pair.commit_log()
    assert (pair.answers["deletion"].error, pair.answers["c"].generation) == (ErrorCode.NONE, 1)


# --- two protocols ---------------------------------------------------------------------------------------------------


def test_a_group_with_members_by_one_protocol_refuses_those_of_the_other() -> None:
    pair = PairLab()
    assert pair.joins_by_consumer_protocol().error == ErrorCode.GROUP_ID_NOT_FOUND
    assert pair.joins_by_consumer_protocol(pair.a, 2).error == ErrorCode.GROUP_ID_NOT_FOUND
    lab = ClassicLab()
    assert lab.joins_by_consumer_protocol().member_epoch == 1
    assert lab.join("c").error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert [lab.beat("m", 1), lab.leave("m")] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert lab.sync("s", "m", 1).error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_without_members_takes_the_other_protocol_with_its_offsets_and_goes_on_counting() -> None:
    lab = PairLab()
    lab.commit(lab.a, 2)
    lab.leave(lab.a)
    lab.leave(lab.b)
    assert lab.joins_by_consumer_protocol().member_epoch == 4
    lab.move()
    assert (lab.group().classic, [*lab.group().record.members]) == (None, ["m"])
    assert lab.joins_by_consumer_protocol("m", -1).error == ErrorCode.NONE
    joined = lab.join("c")
    assert joined.generation == 6
    lab.sync("s", joined.member, 6, {joined.member: b"all"})
    lab.move()
    assert (lab.members, lab.group().record.members) == ([joined.member], {})
    assert lab.offset().offset == 5


def test_who_joins_while_the_group_takes_the_other_protocol_waits_and_is_refused() -> None:
    lab = PairLab()
    lab.leave(lab.a)
    lab.leave(lab.b)
    lab.log_waits = True
    assert lab.joins_by_consumer_protocol() is None
    assert lab.join("c", offers=RANGE) is None
    lab.commit_log()
    assert lab.answers["c"].error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# --- planted bugs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bug", "breaks"),
    [
        ("keep-generation", test_a_second_member_makes_the_first_join_again_and_both_are_told),
        ("assignment-of-before", test_a_follower_that_syncs_before_the_leader_waits_for_it),
        ("commit-of-before", test_only_members_of_the_present_generation_commit_and_only_outside_of_syncing),
        ("commit-of-any-member", test_only_members_of_the_present_generation_commit_and_only_outside_of_syncing),
        ("load-no-members", test_members_go_on_at_a_new_coordinator_without_a_rebalance),
        ("load-first-commits", test_a_new_coordinator_knows_the_last_commit),
    ],
)
def test_a_wrong_form_breaks_its_claim(bug: str, breaks: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    breaks()
    monkeypatch.setattr(classic_lab, "CONFIG", BrokerConfig(planted_bug=bug))
    with pytest.raises(AssertionError):
        breaks()

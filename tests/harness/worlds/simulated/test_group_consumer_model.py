"""The model of a consumer in a group by KIP-848, against answers of its coordinator given by hand."""

import pytest

from harness.broker.core import messages
from harness.broker.core.messages import JOINS, LEAVES
from harness.broker.core.types import NONE, ErrorCode
from harness.worlds.simulated.consumer import END_OFFSETS_LIMIT_US, NO_ANSWER
from harness.worlds.simulated.network_client import commits
from harness.worlds.simulated.reconciled_member import BEATS_A_SESSION
from tests.harness.worlds.simulated.client_session import MS
from tests.harness.worlds.simulated.consumer_session import AT, OTHER, batch
from tests.harness.worlds.simulated.group_session import SESSION_MS, GroupSession, reached
from workloads.client import Offsets, OwnCommit
from workloads.settings import Settings

BEAT_MS = SESSION_MS // BEATS_A_SESSION
Beat = messages.ConsumerGroupHeartbeat


def test_a_member_joins_begins_where_the_group_is_and_says_what_it_has() -> None:
    session = GroupSession()
    session.poll()
    joined = session.answer(member_epoch=3, assigned=(AT, OTHER))
    assert (joined.member_epoch, joined.owned, joined.topics) == (JOINS, (), ("t",))
    assert session.assignments == [("t-0", "t-1")]
    beat, places = session.asked
    assert (beat.member_epoch, set(beat.owned)) == (3, {AT, OTHER})
    assert (places.member, places.member_epoch, places.partitions) == ("member-7", 3, (AT, OTHER))
    session.asked.reverse()
    session.earliest = 2
    session.answer(offsets=commits({AT: 5, OTHER: NONE}))
    assert sorted(session.wanted()) == [(0, [(0, 5)]), (1, [(1, 2)])]


def test_what_is_given_up_is_dropped_in_the_next_poll_and_only_then_no_longer_owned() -> None:
    session = GroupSession()
    session.assigned(AT, OTHER, places=(0, 0))
    session.answer_fetch(batch(0, "a"))
    assert session.polls == [[(0, "a")]]
    session.answer(member_epoch=1, assigned=(OTHER,))
    assert session.assignments == [("t-0", "t-1")]
    session.commit(1)
    commit = next(each for each in session.asked if isinstance(each, messages.OffsetCommit))
    session.asked.remove(commit)
    session.poll()
    assert session.assignments == [("t-0", "t-1"), ("t-1",)]
    (beat,) = session.asked
    assert beat.owned == (OTHER,)
    assert all(number != 0 for broker, parts in session.wanted() for number, _ in parts)


def answer_places_first(session: GroupSession) -> None:
    """Let the question about places be the next one that is answered."""
    session.asked.sort(key=lambda each: isinstance(each, Beat))


def test_where_the_group_is_counts_for_the_assignment_that_was_asked_about() -> None:
    session = GroupSession()
    session.poll(max_wait_ms=10_000)
    session.answer(member_epoch=1, assigned=(AT,))
    session.answer(member_epoch=2, assigned=())
    places, beat = session.asked
    session.asked = [beat]
    session.answer(member_epoch=3, assigned=(AT,))
    session.asked = [places]
    session.answer(offsets=commits({AT: 5}))
    assert session.wanted() == []
    session.answer(offsets=commits({AT: 9}))
    assert session.wanted() == [(0, [(0, 9)])]


def test_a_member_that_is_to_begin_at_the_end_does_so_only_where_the_group_has_no_offset() -> None:
    session = GroupSession(reset="latest")
    session.poll(max_wait_ms=10_000)
    session.answer(member_epoch=1, assigned=(AT, OTHER))
    answer_places_first(session)
    session.answer(offsets=commits({AT: NONE, OTHER: 4}))
    assert session.wanted() == [(1, [(1, 4)])]
    session.answer_end(7)
    assert sorted(session.wanted()) == [(0, [(0, 7)]), (1, [(1, 4)])]


def test_a_question_under_way_still_counts_when_more_is_assigned() -> None:
    session = GroupSession()
    session.poll(max_wait_ms=10_000)
    session.answer(member_epoch=1, assigned=(AT,))
    session.answer(member_epoch=2, assigned=(AT, OTHER))
    answer_places_first(session)
    session.answer(offsets=commits({AT: 5}))
    assert session.wanted() == [(0, [(0, 5)])]


def test_a_member_is_silent_between_its_calls() -> None:
    session = GroupSession()
    session.assigned(AT, places=(0,))
    session.answer(member_epoch=1, assigned=(AT,))
    session.answer_fetch(batch(0, "a"))
    session.wait(5 * SESSION_MS)
    assert session.asked == []
    session.poll(max_wait_ms=BEAT_MS * 2)
    assert [type(each) for each in session.asked] == [Beat]


def test_a_member_that_was_given_up_joins_again_in_its_next_poll_and_commits_in_its_old_epoch_before() -> None:
    session = GroupSession()
    session.assigned(AT, epoch=4, places=(0,))
    session.answer_fetch(batch(0, "a"))
    session.answer(ErrorCode.UNKNOWN_MEMBER_ID)
    session.commit(1)
    commit = session.answer(ErrorCode.UNKNOWN_MEMBER_ID)
    assert (type(commit), commit.member_epoch) == (messages.OffsetCommit, 4)
    assert session.ends == [Offsets({}, "UNKNOWN_MEMBER_ID")]
    assert session.assignments == [("t-0",)]
    session.poll()
    assert session.assignments == [("t-0",), ()]
    assert session.generations == [4, None]
    (beat,) = session.asked
    assert (beat.member_epoch, beat.owned) == (JOINS, ())


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.STALE_MEMBER_EPOCH])
def test_a_commit_is_sent_again_until_it_is_answered_for_good(error: ErrorCode) -> None:
    session = GroupSession()
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a"))
    session.answer(member_epoch=2, assigned=(AT,))
    session.commit(1)
    assert session.answer(error).member_epoch == 2
    session.wait(Settings().retry_backoff_ms)
    session.asked = [each for each in session.asked if isinstance(each, messages.OffsetCommit)]
    again = session.answer()
    assert (again.offsets, again.member_epoch) == (reached(1), 2)
    assert session.ends == [Offsets({"t-0": 1})]


def test_a_commit_whose_answer_was_lost_is_not_known_to_be_refused() -> None:
    session = GroupSession()
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a"))
    session.answer(member_epoch=1, assigned=(AT,))
    session.commit(1)
    session.lose()
    session.wait(1_000)
    commit = next(each for each in session.asked if isinstance(each, messages.OffsetCommit))
    session.asked = [commit]
    session.answer(ErrorCode.UNKNOWN_MEMBER_ID)
    assert session.ends == [Offsets({}, NO_ANSWER)]


@pytest.mark.parametrize(("delivery_ms", "limit_ms"), [(5_000, END_OFFSETS_LIMIT_US // MS), (30_000, 30_000)])
def test_a_commit_that_nobody_answers_ends_after_its_time(delivery_ms: int, limit_ms: int) -> None:
    session = GroupSession(delivery_timeout_ms=delivery_ms)
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a"))
    session.commit(1)
    session.wait(limit_ms - 1)
    assert session.ends == []
    session.wait(1)
    assert session.ends == [Offsets({}, NO_ANSWER)]


def test_a_library_that_commits_by_itself_commits_what_it_handed_over_before_the_poll_and_what_it_gives_up() -> None:
    session = GroupSession(auto_commit_ms=50)
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a", "b"))
    session.answer(member_epoch=1, assigned=())
    session.wait(60)
    session.poll()
    kinds = [type(each) for each in session.asked]
    assert kinds == [messages.OffsetCommit, messages.OffsetCommit, Beat]
    assert {each.offsets for each in session.asked[:2]} == {reached(2)}
    assert session.asked[2].owned == ()
    first, second = (each.correlation for each in session.asked[:2])
    assert session.told == [OwnCommit(first, {"t-0": 2}), OwnCommit(second, {"t-0": 2})]
    session.answer()
    session.answer(ErrorCode.STALE_MEMBER_EPOCH)
    assert session.told[2:] == [
        OwnCommit(first, {"t-0": 2}, Offsets({"t-0": 2})),
        OwnCommit(second, {"t-0": 2}, Offsets({}, "STALE_MEMBER_EPOCH")),
    ]
    session.asked.clear()
    session.wait(200)
    session.poll()
    assert [each for each in session.asked if isinstance(each, messages.OffsetCommit)] == []


def test_who_is_no_member_asks_without_an_epoch_and_a_member_leaves_when_it_is_closed() -> None:
    session = GroupSession()
    session._do(session.model.ask_committed(session.now_us, [AT, OTHER], "asked"))
    beat = next(each for each in session.asked if isinstance(each, Beat))
    session.asked.remove(beat)
    question = session.answer(offsets=commits({AT: 4, OTHER: NONE}))
    assert (question.member, question.member_epoch) == ("", NONE)
    assert session.ends == [Offsets({"t-0": 4})]
    session.asked.append(beat)
    session.answer(member_epoch=1, assigned=())
    assert session.model.token().token == ("g", "member-7", 1)
    session.close()
    assert [each.member_epoch for each in session.asked] == [LEAVES]


def test_a_commit_of_the_library_is_not_repeated_when_its_connection_breaks() -> None:
    session = GroupSession(auto_commit_ms=50)
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a"))
    session.wait(60)
    session.poll(max_wait_ms=2_000)
    assert [type(each) for each in session.asked if not isinstance(each, Beat)] == [messages.OffsetCommit]
    session.lose()
    session.wait(1_000)
    assert {type(each) for each in session.asked} == {Beat}
    assert [commit.answer for commit in session.told] == [None, Offsets({}, NO_ANSWER)]


def test_a_member_that_is_closed_commits_what_it_handed_over_and_ends_its_calls() -> None:
    session = GroupSession(auto_commit_ms=50)
    session.assigned(AT, places=(0,))
    session.answer_fetch(batch(0, "a", "b"))
    session.commit(1)
    session.close()
    *_, commit, left = session.asked
    assert (commit.offsets, left.member_epoch) == (reached(2), LEAVES)
    assert session.ends == [Offsets({}, "ClientClosed")]
    assert [commit.answer for commit in session.told] == [None, Offsets({}, "ClientClosed")]


def test_a_client_waits_for_stable_offsets_whether_it_is_a_member_or_not() -> None:
    session = GroupSession()
    session._do(session.model.ask_committed(session.now_us, [AT], "asked"))
    session.poll(max_wait_ms=10_000)
    session.asked.sort(key=lambda each: isinstance(each, Beat))
    asked = session.answer(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    session.answer(member_epoch=1, assigned=(AT,))
    answer_places_first(session)
    places = session.answer(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert asked.require_stable
    assert places.require_stable
    assert session.ends == session.wanted() == []
    session.wait(Settings().retry_backoff_ms)
    answer_places_first(session)
    for _ in range(2):
        session.answer(offsets=commits({AT: 4}))
    assert session.ends == [Offsets({"t-0": 4})]
    assert session.wanted() == [(0, [(0, 4)])]

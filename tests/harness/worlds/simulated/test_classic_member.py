"""The model of a consumer in a group by Kafka's classic protocol, against answers of its coordinator given by hand."""

from typing import Any

import msgspec
import pytest

from harness.broker.core import messages
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.worlds.simulated.classic_member import BEATS_A_SESSION, RANGE, ranges_of
from harness.worlds.simulated.consumer import NO_ANSWER
from harness.worlds.simulated.group_consumer import NO_MEMBER
from harness.worlds.simulated.network_client import commits
from tests.harness.worlds.simulated.consumer_session import AT, batch
from tests.harness.worlds.simulated.group_session import SESSION_MS, GroupSession, reached
from workloads.client import Offsets, OwnCommit
from workloads.settings import Settings

BEAT_MS = SESSION_MS // BEATS_A_SESSION
encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode


class ClassicSession(GroupSession):
    """A member by the classic protocol."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(protocol="classic", **settings)

    def joined(self, generation: int = 1, leader: str = "m") -> messages.GroupJoin:
        """Let the member ``m`` join, as leader or led by another one; its SyncGroup is asked then."""
        members = (("m", encode(("t",))), ("n", encode(("t",)))) if leader == "m" else ()
        joined: messages.GroupJoin = self.answer(
            member="m", generation=generation, protocol=RANGE, leader=leader, members=members
        )
        return joined

    def synced(self, *partitions: TopicPartition) -> messages.GroupSync:
        """Let the member have its assignment."""
        synced: messages.GroupSync = self.answer(assignment=encode(partitions))
        return synced

    def reads(self, *records: str, generation: int = 1) -> None:
        """Join, be assigned the first log partition, and be handed these records of it."""
        self.poll(max_wait_ms=SESSION_MS)
        self.joined(generation, leader="other")
        self.synced(AT)
        self.answer(offsets=commits({AT: 0}))
        self.answer_fetch(batch(0, *records))

    def beat(self, error: ErrorCode) -> None:
        """Be handed ``b`` in a poll, and have the answer to a heartbeat of it then."""
        self.poll(max_wait_ms=SESSION_MS)
        self.wait(BEAT_MS)
        self.answer_fetch(batch(1, "b"))
        assert isinstance(self.answer(error), messages.GroupHeartbeat)

    def kinds(self) -> list[type[messages.Message]]:
        return [type(each) for each in self.asked]


def test_a_newcomer_is_named_joins_deals_out_as_leader_and_begins_where_the_group_is() -> None:
    session = ClassicSession()
    session.poll(max_wait_ms=SESSION_MS)
    first = session.answer(ErrorCode.MEMBER_ID_REQUIRED, member="m")
    assert (first.member, first.named_first, first.session_timeout_ms) == ("", True, SESSION_MS)
    again = session.joined(generation=3)
    assert (again.member, [offer.protocol for offer in again.offers]) == ("m", [RANGE])
    sync = session.synced(AT)
    assert (sync.member, sync.member_epoch) == ("m", 3)
    assert {name: decode(dealt) for name, dealt in sync.assignments} == {"m": [["t", 0]], "n": [["t", 1]]}
    assert (session.assignments, session.generations) == ([("t-0",)], [3])
    session.answer(offsets=commits({AT: 5}))
    assert session.wanted() == [(0, [(0, 5)])]


def test_who_does_not_lead_deals_nothing_out_and_commits_in_its_generation() -> None:
    session = ClassicSession()
    session.reads("a", generation=4)
    session.commit(1)
    commit = session.answer()
    assert (commit.member, commit.member_epoch, commit.offsets) == ("m", 4, reached(1))
    assert session.ends == [Offsets({"t-0": 1})]
    assert session.asked == []


def test_a_member_gives_everything_up_in_the_poll_before_it_joins_again_and_may_commit_until_then() -> None:
    session = ClassicSession()
    session.reads("a")
    session.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    session.commit(2)
    assert session.answer().member_epoch == 1
    assert session.assignments == [("t-0",)]
    session.poll()
    assert session.assignments == [("t-0",), ()]
    (join,) = session.asked
    assert (type(join), join.member) == (messages.GroupJoin, "m")
    assert session.wanted() == []


def test_a_library_that_commits_by_itself_does_so_before_it_joins_again() -> None:
    session = ClassicSession(auto_commit_ms=10_000)
    session.reads("a")
    session.poll()
    session.answer()
    session.wait(BEAT_MS)
    session.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    session.poll()
    assert session.kinds() == [messages.OffsetCommit, messages.GroupJoin]
    assert (session.asked[0].member_epoch, session.asked[0].offsets) == (1, reached(2))
    assert session.told[2:] == [OwnCommit(session.asked[0].correlation, {"t-0": 2})]


@pytest.mark.parametrize(("error", "name"), [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, "m")])
def test_a_member_that_lost_its_generation_refuses_to_commit_and_joins_again_in_its_next_poll(
    error: ErrorCode, name: str
) -> None:
    session = ClassicSession()
    session.reads("a")
    session.beat(error)
    session.commit(2)
    assert (session.asked, session.ends) == ([], [Offsets({}, NO_MEMBER)])
    session.poll()
    assert session.assignments == [("t-0",), ()]
    (join,) = session.asked
    assert (type(join), join.member) == (messages.GroupJoin, name)


def test_a_commit_that_is_refused_tells_the_member_that_it_is_none() -> None:
    session = ClassicSession()
    session.reads("a")
    session.commit(1)
    session.answer(ErrorCode.UNKNOWN_MEMBER_ID)
    session.commit(1)
    assert session.ends == [Offsets({}, "UNKNOWN_MEMBER_ID"), Offsets({}, NO_MEMBER)]
    session.poll()
    assert [(type(each), each.member) for each in session.asked] == [(messages.GroupJoin, "")]


def test_a_commit_whose_answer_was_lost_is_not_known_to_be_refused_by_a_member_that_is_none() -> None:
    session = ClassicSession()
    session.reads("a")
    session.poll(max_wait_ms=10_000)
    session.commit(1)
    session.lose()
    session.wait(BEAT_MS)
    beat = next(each for each in session.asked if isinstance(each, messages.GroupHeartbeat))
    session.asked = [beat]
    session.answer(ErrorCode.UNKNOWN_MEMBER_ID)
    session.lose()
    assert session.ends == [Offsets({}, NO_ANSWER)]


def test_a_join_waits_for_the_other_members_longer_than_any_request_for_its_answer() -> None:
    session = ClassicSession()
    session.poll(max_wait_ms=60_000)
    session.wait(Settings().request_timeout_ms + SESSION_MS)
    assert session.kinds() == [messages.GroupJoin]
    session.joined(leader="other")
    assert session.kinds() == [messages.GroupSync]
    session.wait(Settings().request_timeout_ms + 2 * Settings().retry_backoff_ms)
    assert session.kinds() == [messages.GroupSync] * 2


@pytest.mark.parametrize(
    ("error", "next_kind"),
    [
        (ErrorCode.NOT_COORDINATOR, messages.GroupSync),
        (ErrorCode.REBALANCE_IN_PROGRESS, messages.GroupJoin),
        (ErrorCode.UNKNOWN_MEMBER_ID, messages.GroupJoin),
    ],
)
def test_a_member_without_its_assignment_asks_again_or_joins_again(
    error: ErrorCode, next_kind: type[messages.GroupRequest]
) -> None:
    session = ClassicSession()
    session.poll(max_wait_ms=60_000)
    session.joined()
    session.answer(error)
    session.wait(Settings().retry_backoff_ms)
    (asked,) = session.asked
    assert isinstance(asked, next_kind)
    assert asked.member == ("" if error is ErrorCode.UNKNOWN_MEMBER_ID else "m")
    assert session.assignments == []


def test_a_heartbeat_of_the_generation_before_says_nothing_about_this_one() -> None:
    session = ClassicSession()
    session.reads("a")
    session.poll(max_wait_ms=60_000)
    session.commit(1)
    session.wait(BEAT_MS)
    commit, beat = session.asked
    assert isinstance(beat, messages.GroupHeartbeat)
    session.asked = [commit]
    session.answer(ErrorCode.ILLEGAL_GENERATION)
    session.joined(2, leader="other")
    session.synced(AT)
    session.asked = [beat]
    session.answer(ErrorCode.ILLEGAL_GENERATION)
    session.wait(BEAT_MS)
    assert session.assignments == [("t-0",), (), ("t-0",)]
    assert session.asked[-1].member_epoch == 2


def test_a_member_is_silent_between_its_calls_and_beats_three_times_a_session_in_them() -> None:
    session = ClassicSession()
    session.reads("a")
    session.wait(5 * SESSION_MS)
    assert session.asked == []
    session.poll(max_wait_ms=60_000)
    assert session.kinds() == [messages.GroupHeartbeat]
    session.answer()
    session.wait(BEAT_MS - 1)
    assert session.asked == []
    session.wait(1)
    assert session.kinds() == [messages.GroupHeartbeat]


def test_a_member_leaves_by_its_name_and_a_library_tells_its_last_generation_also_where_it_is_over() -> None:
    session = ClassicSession()
    assert session.model.token().token is None
    session.reads("a", generation=6)
    session.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert session.model.token().token == ("g", "m", 6)
    other = ClassicSession()
    other.reads("a")
    other.close()
    assert [(type(each), each.member) for each in other.asked] == [(messages.GroupLeave, "m")]
    nobody = ClassicSession()
    nobody.poll()
    nobody.asked.clear()
    nobody.close()
    assert nobody.asked == []


@pytest.mark.parametrize(
    ("topics", "dealt"),
    [
        ({"b": "t", "a": "t"}, {"a": ["t-0", "t-1"], "b": ["t-2"]}),
        ({"a": "tu", "b": "u"}, {"a": ["t-0", "t-1", "t-2", "u-0"], "b": []}),
        ({"a": "t", "b": "t", "c": "t", "d": "t"}, {"a": ["t-0"], "b": ["t-1"], "c": ["t-2"], "d": []}),
        ({}, {}),
        ({"a": "?"}, {"a": []}),
    ],
)
def test_each_topic_is_dealt_out_in_ranges(topics: dict[str, str], dealt: dict[str, list[str]]) -> None:
    ranges = ranges_of(topics, {"t": 3, "u": 1, "?": 0}.__getitem__)
    assert {name: [str(each) for each in partitions] for name, partitions in ranges.items()} == dealt


def test_a_member_of_which_the_leader_did_not_know_reads_nothing() -> None:
    session = ClassicSession()
    session.poll(max_wait_ms=SESSION_MS)
    session.joined(leader="other")
    session.answer(assignment=b"")
    assert (session.assignments, session.wanted()) == ([], [])
    assert session.model.token().token == ("g", "m", NONE + 2)

from types import SimpleNamespace

import pytest

from harness.broker.core.types import ErrorCode
from harness.broker.server.codec.wire import ApiKey, Header
from harness.broker.server.handlers import group_table
from harness.broker.server.handlers.gateway import Call
from harness.broker.server.handlers.group_table import Groups

SESSION_MS = 1_000
REBALANCE_MS = 5_000
MS = 1_000


class Table:
    """A coordinator whose calls are known by tickets, and the answers that came."""

    def __init__(self):
        self.groups = Groups(0xABC)
        self.answers = {}
        self.now_us = 0

    def take(self, answers):
        for call, fields in answers:
            assert call.reply not in self.answers, "a call was answered twice"
            self.answers[call.reply] = SimpleNamespace(**fields)

    def ask(self, ticket, key, group="g", *, version, **request):
        header = Header(key, version, 0, "client")
        call = Call(1001, header, "/10.0.0.9", SimpleNamespace(group_id=group, **request), ticket)
        self.take(self.groups.handle(self.now_us, call))
        return self.answers.get(ticket)

    def join(
        self, ticket, member="", *, protocols=(("range", b"r"),), kind="consumer", named=False, group="g", ms=SESSION_MS
    ):
        return self.ask(
            ticket,
            ApiKey.JOIN_GROUP,
            group,
            version=5 if named else 3,
            member_id=member,
            session_timeout_ms=ms,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type=kind,
            protocols=[SimpleNamespace(name=name, metadata=metadata) for name, metadata in protocols],
        )

    def sync(self, ticket, member, generation, assignments=()):
        rows = [SimpleNamespace(member_id=name, assignment=assigned) for name, assigned in assignments]
        request = {"member_id": member, "generation_id": generation, "assignments": rows}
        return self.ask(ticket, ApiKey.SYNC_GROUP, version=5, **request)

    def beat(self, member, generation=1):
        return self.ask(object(), ApiKey.HEARTBEAT, version=4, member_id=member, generation_id=generation).error_code

    def leave(self, *members):
        rows = [SimpleNamespace(member_id=name) for name in members]
        return [row["error_code"] for row in self.ask(object(), ApiKey.LEAVE_GROUP, version=5, members=rows).members]

    def pass_ms(self, time_ms):
        self.now_us += time_ms * MS
        self.take(self.groups.expire(self.now_us))

    def commit_error(self, member="", generation=-1):
        return self.groups.commit_error(self.now_us, "g", member, generation)


def members_of(joined):
    return [(row["member_id"], row["metadata"]) for row in joined.members]


@pytest.fixture
def table():
    return Table()


@pytest.fixture
def pair(table):
    """A stable group of two in generation 2; ``a`` leads."""
    a = table.join("a1").member_id
    table.sync("as1", a, 1, [(a, b"all")])
    table.join("b1")
    table.join("a2", a)
    b = table.answers["b1"].member_id
    table.sync("bs", b, 2)
    table.sync("as2", a, 2, [(a, b"half"), (b, b"other half")])
    table.a, table.b = a, b
    return table


def test_a_single_member_leads_at_once_and_gets_what_it_assigns(table):
    joined = table.join("j")
    assert (joined.error_code, joined.generation_id, joined.leader) == (ErrorCode.NONE, 1, joined.member_id)
    assert members_of(joined) == [(joined.member_id, b"r")]
    synced = table.sync("s", joined.member_id, 1, [(joined.member_id, b"mine")])
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (ErrorCode.NONE, b"mine", "range")


def test_a_client_that_knows_names_gets_one_before_it_joins(table):
    refused = table.join("j1", named=True)
    assert refused.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert table.join("j2", refused.member_id, named=True).generation_id == 1
    assert table.join("j3", "nobody", named=True).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_makes_the_first_join_again_and_both_are_told(pair):
    joined_a, joined_b = pair.answers["a2"], pair.answers["b1"]
    assert (joined_a.generation_id, joined_b.generation_id) == (2, 2)
    assert joined_a.leader == joined_b.leader == pair.a
    assert [name for name, _ in members_of(joined_a)] == [pair.a, pair.b]
    assert joined_b.members == []
    assert (pair.answers["as2"].assignment, pair.answers["bs"].assignment) == (b"half", b"other half")


def test_heartbeats_say_when_to_join_again(pair):
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    assert pair.beat(pair.a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert pair.beat("nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    pair.join("c1")
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_does_not_join_again_in_time_is_out(pair):
    pair.join("c1")
    pair.join("a3", pair.a)
    for _ in range(REBALANCE_MS // 500):
        assert "c1" not in pair.answers
        pair.pass_ms(500)
        if pair.b in pair.groups.groups["g"].members:
            pair.beat(pair.b, 2)
    assert pair.answers["c1"].generation_id == 3
    assert [name for name, _ in members_of(pair.answers["a3"])] == [pair.a, pair.answers["c1"].member_id]
    assert pair.beat(pair.b, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_dropped_after_its_session_and_the_rest_rebalances(pair):
    pair.pass_ms(SESSION_MS - 1)
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    pair.pass_ms(2)
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.join("a3", pair.a).generation_id == 3
    assert members_of(pair.answers["a3"]) == [(pair.a, b"r")]


def test_a_silent_member_does_not_hold_up_a_joining_longer_than_its_session(pair):
    pair.join("c1")
    pair.join("a3", pair.a)
    pair.pass_ms(SESSION_MS + 1)
    assert pair.answers["c1"].generation_id == 3


def test_a_member_that_waits_for_an_answer_is_not_silent(table):
    first = table.join("a1").member_id
    table.sync("s", first, 1, [])
    table.join("b1")
    for _ in range(3):
        table.pass_ms(SESSION_MS - 100)
        table.beat(first, 1)
    assert "b1" not in table.answers
    table.join("a2", first)
    assert table.answers["b1"].generation_id == 2


def test_leaving_hands_leadership_on(pair):
    assert pair.leave(pair.a) == [ErrorCode.NONE]
    assert pair.join("b2", pair.b).leader == pair.b
    assert pair.leave("nobody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert pair.leave(pair.b) == [ErrorCode.NONE]
    assert pair.commit_error() == ErrorCode.NONE


def test_a_follower_that_syncs_before_the_leader_waits_for_it(pair):
    pair.join("c1")
    pair.join("a3", pair.a)
    pair.join("b3", pair.b)
    c = pair.answers["c1"].member_id
    assert pair.sync("cs", c, 3) is None
    pair.sync("as3", pair.a, 3, [(c, b"third")])
    assert pair.answers["cs"].assignment == b"third"
    assert pair.sync("late", pair.b, 3).assignment == b""


def test_an_assignment_is_for_members_of_its_generation(pair):
    assert pair.sync("old", pair.b, 1).error_code == ErrorCode.ILLEGAL_GENERATION
    assert pair.sync("stranger", "nobody", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert pair.sync("again", pair.b, 2).assignment == b"other half"
    pair.join("c1")
    assert pair.sync("joining", pair.b, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_leader_that_joins_again_makes_all_join_again(pair):
    assert pair.join("a3", pair.a) is None
    assert pair.beat(pair.b, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.join("b2", pair.b).generation_id == pair.answers["a3"].generation_id == 3


def test_a_heartbeat_keeps_a_member_while_others_join(pair):
    pair.join("c1")
    for _ in range(3):
        pair.pass_ms(SESSION_MS - 100)
        assert pair.beat(pair.b, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(pair.groups.groups["g"].members) >= {pair.b}
    assert pair.beat(pair.a, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_ends_the_waiting_for_an_assignment(pair):
    pair.join("c1")
    pair.join("a3", pair.a)
    pair.join("b3", pair.b)
    pair.sync("bs3", pair.b, 3)
    pair.join("d1")
    assert pair.answers["bs3"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert pair.sync("as3", pair.a, 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_repeated_join_of_an_unchanged_follower_is_told_the_present_generation(pair):
    assert pair.join("b2", pair.b).generation_id == 2
    assert pair.beat(pair.a, 2) == ErrorCode.NONE
    assert pair.join("b3", pair.b, protocols=[("range", b"changed")]) is None
    assert pair.beat(pair.a, 2) == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_is_the_one_that_all_know_and_most_prefer(table):
    a = table.join("a1", protocols=[("x", b""), ("y", b"a")]).member_id
    table.join("b1", protocols=[("y", b"b"), ("z", b"")])
    table.join("a2", a, protocols=[("x", b""), ("y", b"a")])
    assert table.answers["b1"].protocol_name == "y"
    assert members_of(table.answers["a2"])[0][1] == b"a"
    assert table.join("c", protocols=[("z", b"")]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert table.join("d", kind="connect", protocols=[("y", b"")]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_only_members_of_the_present_generation_commit_and_only_outside_of_syncing(pair):
    assert pair.commit_error(pair.a, 2) == ErrorCode.NONE
    assert pair.commit_error(pair.a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert pair.commit_error("", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    pair.join("c1")
    assert pair.commit_error(pair.a, 2) == ErrorCode.NONE
    pair.join("a3", pair.a)
    pair.join("b3", pair.b)
    assert pair.commit_error(pair.a, 3) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_given_up_answers_everybody_who_waits(pair):
    pair.join("c1")
    pair.take(pair.groups.abandon(lambda group: group != "g"))
    assert pair.answers["c1"].error_code == ErrorCode.NOT_COORDINATOR
    assert pair.beat(pair.a, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_there_are_only_so_many_groups_and_empty_ones_make_room(table, monkeypatch):
    monkeypatch.setattr(group_table, "GROUPS_MAX", 3)
    member = table.join(0, group="g").member_id
    assert [table.join(n, group=f"g{n}").error_code for n in (1, 2)] == [ErrorCode.NONE] * 2
    assert table.join(3, group="g3").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    table.leave(member)
    assert table.join(4, group="g3").error_code == ErrorCode.NONE


@pytest.mark.parametrize("session_ms", [0, 99, 2_000_000_000])
def test_an_impossible_session_timeout_is_refused(table, session_ms):
    assert table.join(1, ms=session_ms).error_code == ErrorCode.INVALID_SESSION_TIMEOUT

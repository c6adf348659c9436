"""Scopes of consumer groups hold, and planted bugs of the coordinator are found in them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from checkers import ANOMALIES
from harness.broker.core.groups.consumer import GroupRecord, MemberRecord
from harness.broker.core.types import TopicPartition
from harness.lab.explore import GROUP_RULES, GroupScope, Limits, exhaust, scope_named, steps_of
from harness.lab.explore.groups.classic_members import ClassicMemberNode
from harness.lab.explore.groups.coordinators import GroupCopy
from harness.lab.explore.groups.members import MemberNode
from harness.lab.explore.groups.rules import broken_group_promises
from harness.lab.explore.groups.space import GroupSpace
from tests.harness.lab.explore.groups.twin import PlainGroups, both, observations, plain_coordinator
from tests.harness.lab.explore.twin import INVARIANTS


def scope(name: str, **constants: object) -> GroupScope:
    named = scope_named(name)
    assert isinstance(named, GroupScope)
    return named.varied({key.replace("_", "-"): value for key, value in constants.items()}, {})


@pytest.mark.parametrize("name", [pytest.param("group", marks=pytest.mark.system), "classic"])
def test_a_group_with_a_fence_holds(name: str) -> None:
    result = exhaust(scope(name, records=1))
    assert result.exhausted
    assert result.acknowledged == 1


@pytest.mark.parametrize(
    ("bug", "chosen", "rule"),
    [
        pytest.param("commit-of-any-member", scope("group"), "group-went-back", marks=pytest.mark.system),
        ("assign-unrevoked", scope("group"), "two-owners"),
        ("load-first-commits", scope("group-moved", members=1, records=2), "group-went-back"),
        ("commit-of-any-member", scope("classic"), "group-went-back"),
        ("load-first-commits", scope("classic-moved", members=1, records=2), "group-went-back"),
        ("assign-unrevoked", scope("group"), "one-member-a-partition"),
        ("load-first-commits", scope("group-moved", members=1, records=2), "loaded-as-logged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_bug_is_found_and_nothing_without_it_in_as_many_steps(
    bug: str, chosen: GroupScope, rule: str
) -> None:
    wrong = replace(chosen.varied({}, {"planted.bug": bug}), rules=(rule,))
    result = exhaust(wrong)
    assert result.broken is not None
    assert result.broken[0] == rule
    assert len(steps_of(wrong, result)) == len(result.trace)
    right = exhaust(chosen, limits=Limits(states=result.states + 1))
    assert right.broken is None
    assert right.depth >= len(result.trace)


def test_the_count_does_not_depend_on_the_number_of_workers() -> None:
    small = scope("group-moved", members=1)
    alone, shared = (exhaust(small, workers=workers) for workers in (1, 2))
    assert alone.exhausted
    assert (alone.states, alone.transitions, alone.depth) == (shared.states, shared.transitions, shared.depth)


@pytest.mark.parametrize(
    ("chosen", "bug"),
    [
        (scope("group-late", members=1), "none"),
        (scope("group-late", members=1, delayed="any"), "none"),
        (scope("group-moved", members=1, delays=1, delayed="OffsetCommit"), "none"),
        pytest.param(scope("group", members=1, delays=1), "commit-of-any-member", marks=pytest.mark.system),
        (scope("group-moved", members=1, records=2), "load-first-commits"),
        (scope("classic-late", members=1, delayed="any"), "none"),
        (scope("classic-moved", members=1), "none"),
        (scope("classic-moved", members=1, records=2), "load-first-commits"),
    ],
    ids=[
        "late commit",
        "any late request",
        "a move",
        "a commit of any member",
        "a move that forgets commits",
        "any late request of a classic group",
        "a move of a classic group",
        "a move of a classic group that forgets commits",
    ],
)
def test_a_search_without_reductions_sees_the_same_and_breaks_the_same_rules(chosen: GroupScope, bug: str) -> None:
    reduced, plain = both(chosen.varied({}, {"planted.bug": bug}))
    assert reduced[:2] == plain[:2]
    seen = {"load-first-commits": "loaded-as-logged", "commit-of-any-member": "commit-of-a-member"}
    assert reduced[1] == (set() if bug == "none" else {"group-went-back", seen[bug]})
    assert reduced[2] <= plain[2]


@pytest.mark.system
def test_the_twin_sees_what_a_reduction_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = scope("group", members=1, delays=1).varied({}, {"planted.bug": "commit-of-any-member"})
    with plain_coordinator():
        seen = observations(PlainGroups(chosen))
    monkeypatch.setattr(GroupSpace, "_matters", lambda *_: False)
    assert observations(GroupSpace(chosen))[1] < seen[1]


@pytest.mark.parametrize("name", ["group", "classic"])
def test_a_step_that_is_remembered_is_what_the_core_does_again(name: str) -> None:
    space = GroupSpace(scope(name, fences=0, records=1))
    observations(space)
    for (digest, event), results in list(space.nodes._steps.items()):
        assert space.nodes.perform(digest, event) == results


AT_0 = TopicPartition("t", 0)
HAS = MemberRecord(1, 0, ("t",), 1, (AT_0,))
GIVES_UP = MemberRecord(1, 0, ("t",), 1, (), (AT_0,))


@pytest.mark.parametrize(
    ("members", "remembered", "acknowledged", "processed", "rules"),
    [
        ({"m0": HAS}, 1, 1, ((0, 0),), []),
        ({"m0": HAS, "m1": HAS}, 0, 0, (), ["two-owners"]),
        ({"m0": HAS, "m1": GIVES_UP}, 0, 0, (), ["two-owners"]),
        ({"m0": HAS}, 0, 1, ((0, 0),), ["group-went-back"]),
        ({"m0": HAS}, -1, 0, (), ["group-went-back"]),
        ({"m0": HAS}, 2, 1, ((0, 0),), ["group-skip"]),
    ],
)
def test_each_promise_is_broken_by_what_breaks_it_only(
    members: dict[str, MemberRecord],
    remembered: int,
    acknowledged: int,
    processed: tuple[tuple[int, int], ...],
    rules: list[str],
) -> None:
    coordinator = GroupCopy(0, GroupRecord(1, members), (remembered,), ())
    member = MemberNode(0, processed=processed)
    assert [name for name, _ in broken_group_promises(coordinator, [member], [acknowledged])] == rules


def test_two_members_of_one_generation_own_what_only_one_may_read() -> None:
    coordinator = GroupCopy(0, GroupRecord(), (0,), (), 2, ("a", "b"))
    a, b = (ClassicMemberNode(0, 2, (0,), given=name, synced=True) for name in "ab")
    for other, rules in ((b, ["two-owners"]), (replace(b, epoch=1), []), (replace(b, given="c"), [])):
        assert [name for name, _ in broken_group_promises(coordinator, [a, other], [0])] == rules


def test_rules_have_the_names_of_anomalies_or_of_invariants() -> None:
    assert {*GROUP_RULES} - {"assertion"} <= {*ANOMALIES} | INVARIANTS


def test_a_scope_says_what_it_leaves_out() -> None:
    left_out = " ".join(scope("group").leaves_out())
    assert "appended and not committed" in left_out
    assert "groups that change their protocol" in left_out

"""A step is worked out once for all states in which it reads the same, and the states that were met take little."""

from __future__ import annotations

from harness.explore import scope_named
from harness.explore.drafts import Draft, Remembered, View
from harness.explore.kept_states import Level, Packing, SeenHashes
from harness.explore.searched import State
from harness.explore.space import Space
from harness.explore.told import Told


def test_an_answer_is_worked_out_once_for_all_states_in_which_the_same_is_read() -> None:
    asked: list[State] = []
    halves = View(lambda digest: digest // 2)

    def work_out(draft: Draft) -> int:
        asked.append(draft.state())
        return 10 * draft[2] + draft.part(0, halves) if draft[1] else -1

    answer = Remembered(work_out)
    assert [answer((4, 0, 1)), answer((5, 0, 2))] == [-1, -1]
    assert [answer((4, 1, 1)), answer((5, 1, 1)), answer((6, 1, 1)), answer((4, 1, 2))] == [12, 12, 13, 22]
    assert asked == [(4, 0, 1), (4, 1, 1), (6, 1, 1), (4, 1, 2)]


def test_a_changed_place_is_not_read() -> None:
    draft = Draft((1, 2, 3), {}, {})
    changed = draft.with_change(1, 7)
    changed[0] = 8
    assert (changed[1], changed[2], changed.state(), draft.state()) == (7, 3, (8, 7, 3), (1, 2, 3))
    assert draft.read == {(2, None): 3}


def test_remembered_steps_and_verdicts_are_those_of_a_space_that_remembers_nothing() -> None:
    for name in ("moved", "wiped"):
        scope = scope_named(name).varied({"brokers": 2, "in-sync": 2}, {"min.insync.replicas": 1})
        space, forgetful, seen = Space(scope), Space(scope), set[int]()
        forgetful.begin()
        for state in (todo := [space.begin()]):
            steps = [*space.follow(state)]
            assert [*forgetful.follow(state)] == steps
            for source in (*forgetful._arrivals, *forgetful._others):
                source._root = None
            verdict = space._verdict(state)
            assert space._judge(Draft(state, {}, {})) == verdict
            fresh = [step.state for step in steps if space.canonical(step.state) not in seen]
            seen.update(map(space.canonical, fresh))
            todo += fresh if len(todo) < 80 else []


def test_a_state_of_a_level_follows_the_least_and_is_unpacked_as_it_was() -> None:
    level = Level(Packing(3))
    for digest, parent, state in ((5, 9, (2**62, 0, -1)), (6, 9, (0, 0, 0)), (5, 7, (1, 1, 1)), (5, 8, (1, 1, 1))):
        level.keep(digest, parent, state)
    assert [level.parent_of(digest) for digest in (5, 6, 7)] == [7, 9, None]
    assert [*level.take()] == [(5, (2**62, 0, -1)), (6, (0, 0, 0))]
    assert (level.digests.tolist(), level.parents.tolist()) == ([5, 6], [7, 9])


def test_hashes_that_were_seen_are_left_out() -> None:
    seen, level = SeenHashes(), Level(Packing(1))
    assert seen.without([3, -4]) == {3, -4}
    assert seen.without([]) == set()
    for digest in (3, -(2**63), 2**63 - 1):
        level.keep(digest, 0, (0,))
    seen.add(level.digests)
    assert seen.without([2**63 - 1, 4, -4, 3, -(2**63)]) == {4, -4}


def test_what_was_told_is_not_told_again() -> None:
    learnt = Told[int, str]()
    learnt[1] = "a"
    assert learnt.fresh() == {1: "a"}
    learnt.update({1: "a", 2: "b"})
    assert learnt.fresh() == {2: "b"}
    assert learnt.fresh() == {}

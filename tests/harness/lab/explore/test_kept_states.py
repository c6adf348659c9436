"""The states that a search has met take little memory, and a worker is told each thing once."""

from __future__ import annotations

from harness.lab.explore.kept_states import Level, Packing, SeenHashes
from harness.lab.explore.told import Told


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

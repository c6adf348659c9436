"""Storms: random faults that overlap, within the budget, each with draws of its own."""

from __future__ import annotations

import pytest

from harness.ground.choices import Choices
from harness.lab.search.storms import FAULTS_A_STORM, KINDS, TURNS_MAX, Storms
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import Timings
from nemesis.schedule import Schedule, most_stopped
from nemesis.topology import Shape


def storms(
    seed: int, kinds: tuple[str, ...] = tuple(KINDS), dead: int = 1, faults: tuple[int, int] = FAULTS_A_STORM
) -> Schedule:
    plan = FaultPlan(dead_brokers_max=dead)
    made = Storms(kinds, plan, Timings(session_ms=1_000, lag_ms=1_000), brokers=3, partitions=2, faults=faults)
    return made.schedule(20_000, Choices(seed).draw)


def test_the_same_seed_is_the_same_weather() -> None:
    assert storms(3) == storms(3)
    assert storms(3) != storms(4)


def test_storms_overlap_in_themselves_and_not_each_other() -> None:
    overlapping = 0
    for seed in range(30):
        schedule = storms(seed)
        ends = [span for group in schedule.groups() for span in group]
        assert ends == sorted(ends)
        assert all(step.end_ms <= schedule.healed_ms for step in schedule.steps)
        for group in {step.group for step in schedule.steps}:
            steps = [step for step in schedule.steps if step.group == group]
            assert len(steps) <= FAULTS_A_STORM[1] * TURNS_MAX
            assert len({step.fault.role.partition for step in steps}) == 1
            overlapping += any(
                earlier.begin_ms <= later.begin_ms < earlier.end_ms
                for earlier in steps
                for later in steps
                if earlier is not later
            )
    assert overlapping > 30


@pytest.mark.parametrize("dead", [1, 2])
def test_a_storm_keeps_the_budget_of_dead_brokers(dead: int) -> None:
    most = [most_stopped(storms(seed, ("kill", "pause", "power"), dead).steps, 3) for seed in range(40)]
    assert max(most) == dead


def test_every_kind_occurs_under_some_seed() -> None:
    seen = {step.fault.kind for seed in range(60) for step in storms(seed).steps}
    assert seen == {kind.drawn(Role(RoleKind.LEADER), Shape.ISOLATE, lambda *_: 0).kind for kind in KINDS.values()}


def test_a_storm_has_as_many_faults_as_it_is_asked_for() -> None:
    steps = storms(3, ("cut",), faults=(9, 9)).steps
    assert {sum(step.group == group for step in steps) for group in {step.group for step in steps}} == {9}

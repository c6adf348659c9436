import itertools
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ground.choices import Choices
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES, Timings
from nemesis.schedule import Schedule, draw_schedule, most_stopped

seeds = st.integers(0, 2**32)
DRAWN = sorted(name for name, family in FAMILIES.items() if not family.beside)
families = st.lists(st.sampled_from(DRAWN), min_size=1, max_size=3, unique=True).map(tuple)


def drawn(seed, *, brokers=3, duration_ms=30_000, timings=None, **plan):
    chance = random.Random(seed)
    return draw_schedule(
        FaultPlan(**plan),
        timings=timings or Timings(),
        brokers=brokers,
        partitions=3,
        duration_ms=duration_ms,
        draw=lambda label, bound: chance.randrange(bound),
    )


@given(seeds, families, st.integers(200, 3_000), st.integers(3_000, 40_000))
def test_schedules_always_leave_a_heal_window(seed, names, healed_ms, duration_ms):
    schedule = drawn(seed, families=names, count=20, healed_ms_min=healed_ms, duration_ms=duration_ms)
    groups = schedule.groups()
    for (_, end_ms), (begin_ms, _) in itertools.pairwise(groups):
        assert begin_ms - end_ms >= healed_ms
    assert all(begin_ms >= healed_ms for begin_ms, _ in groups[:1])
    assert all(end_ms <= schedule.healed_ms == duration_ms for _, end_ms in groups)


@given(seeds, families, st.integers(0, 2), st.sampled_from([3, 5]))
def test_budget_is_never_exceeded(seed, names, dead_max, brokers):
    schedule = drawn(seed, families=names, count=20, dead_brokers_max=dead_max, brokers=brokers, duration_ms=60_000)
    assert most_stopped(schedule.steps, brokers) <= dead_max


@given(seeds, families)
def test_a_schedule_survives_json(seed, names):
    schedule = drawn(seed, families=names, count=10)
    assert msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule) == schedule


@given(seeds, families)
@settings(max_examples=20)
def test_the_same_chance_gives_the_same_schedule(seed, names):
    assert drawn(seed, families=names) == drawn(seed, families=names)


@given(seeds, st.sampled_from(DRAWN))
def test_every_schedule_tells_its_familys_signature_first(seed, family):
    schedule = drawn(seed, families=(family,), count=1)
    assert schedule.steps[0].scenario == FAMILIES[family].scenarios[0].name


@given(seeds, families)
@settings(max_examples=20)
def test_a_family_that_goes_on_beside_the_others_changes_nothing_in_their_schedule(seed, names):
    assert drawn(seed, families=(*names, "upgrade")) == drawn(seed, families=names)
    assert drawn(seed, families=("upgrade",)).steps == ()


@given(seeds, families, st.integers(1, 3))
def test_no_family_of_a_mixture_performs_a_second_scenario_before_each_has_performed_one(seed, names, rounds):
    schedule = drawn(seed, families=names, count=60, duration_ms=600_000, dead_brokers_max=3)
    performed = [step.family for step in first_of_groups(schedule)]
    for turn in range(rounds):
        assert sorted(performed[turn * len(names) : (turn + 1) * len(names)]) == sorted(names)


def test_with_room_for_some_families_only_each_run_is_about_others():
    mixture = ("kill", "pause", "partition")
    runs = [first_of_groups(drawn(seed, families=mixture, count=4)) for seed in range(30)]
    assert {step.scenario for run in runs for step in run[:1]} == {FAMILIES[name].scenarios[0].name for name in mixture}
    assert {frozenset(step.family for step in run) for run in runs} >= {frozenset(mixture), frozenset(mixture[:2])}
    assert len({tuple(step.family for step in run) for run in runs}) == 6


def first_of_groups(schedule):
    """The first step of each scenario."""
    return [next(steps) for _, steps in itertools.groupby(schedule.steps, key=lambda step: step.group)]


@given(seeds, families)
def test_enough_faults_are_drawn_where_time_allows(seed, names):
    schedule = drawn(seed, families=names, count=6, duration_ms=120_000)
    assert len(schedule.steps) >= 6


@given(seeds)
def test_all_scenarios_are_performed_before_one_is_repeated(seed):
    schedule = drawn(seed, families=("partition",), count=60, duration_ms=600_000)
    shown = list(dict.fromkeys(step.scenario for step in schedule.steps))
    assert sorted(shown) == sorted(scenario.name for scenario in FAMILIES["partition"].scenarios)


@given(seeds)
def test_one_scenario_more_or_less_changes_nothing_in_the_others(seed):
    """The draws of a scenario belong to it: with half of the families, those that are left last as long as before."""
    choices = {"count": 8, "duration_ms": 600_000}
    both = drawn_from_choices(seed, families=("kill", "partition"), **choices)
    single = drawn_from_choices(seed, families=("partition",), **choices)
    shown = {scenario: lengths for (family, scenario), lengths in lengths_of(both).items() if family == "partition"}
    alone = {scenario: lengths for (_, scenario), lengths in lengths_of(single).items()}
    common = shown.keys() & alone.keys()
    assert "zombie-leader" in common
    assert all(shown[scenario] == alone[scenario] for scenario in common)


def drawn_from_choices(seed, **plan):
    duration_ms = plan.pop("duration_ms")
    draw = Choices(seed).draw
    return draw_schedule(
        FaultPlan(**plan), timings=Timings(), brokers=3, partitions=3, duration_ms=duration_ms, draw=draw
    )


def lengths_of(schedule):
    """Begin and end of the faults of each scenario when it is performed first, from its begin."""
    first = {}
    for step in schedule.steps:
        group, parts = first.setdefault((step.family, step.scenario), (step, []))
        if step.group == group.group:
            parts.append((step.begin_ms - group.begin_ms, step.end_ms - group.begin_ms, step.fault))
    return {name: parts for name, (_, parts) in first.items()}


def test_a_time_too_short_for_any_scenario_gives_no_faults():
    schedule = drawn(1, families=("kill", "partition"), duration_ms=900)
    assert schedule.steps == ()
    assert schedule.describe().endswith("everything is healed")


def test_a_budget_of_nobody_leaves_only_the_network():
    schedule = drawn(1, families=("kill", "partition"), dead_brokers_max=0, count=20, duration_ms=60_000)
    assert {step.family for step in schedule.steps} == {"partition"}


def test_scenarios_scale_with_the_settings():
    slow = drawn(7, families=("kill",), count=1, timings=Timings(session_ms=9_000, lag_ms=9_000))
    fast = drawn(7, families=("kill",), count=1, timings=Timings(session_ms=600, lag_ms=600))
    assert slow.groups()[0][1] > 9_000 > fast.groups()[0][1]


def test_a_leader_dies_while_its_followers_lag():
    cut, kill = drawn(3, families=("kill",), count=1).steps
    assert (cut.fault.role, kill.fault.role.kind) == (kill.fault.role, "leader")
    assert cut.begin_ms + 300 <= kill.begin_ms < cut.end_ms < kill.end_ms
    assert kill.begin_ms - cut.begin_ms < Timings().lag_ms


def test_the_last_in_sync_leader_dies_only_after_the_isr_could_shrink():
    scenario = next(
        s for s in drawn(3, families=("kill",), count=30, duration_ms=90_000).steps if s.scenario == "last-in-sync"
    )
    kill = next(
        s
        for s in drawn(3, families=("kill",), count=30, duration_ms=90_000).steps
        if s.group == scenario.group and s.fault.stops_brokers
    )
    assert kill.begin_ms - scenario.begin_ms > Timings().lag_ms * 3 // 2


def test_a_schedule_reads_as_a_line_a_fault():
    schedule = drawn(3, families=("kill",), count=3)
    lines = schedule.describe().splitlines()
    assert len(lines) == len(schedule.steps) + 1
    assert "kill the leader of partition" in lines[1]

"""Latencies of writes: histograms that add up and are never too low, and a bounded number of steps over time."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.measures.latency import STEPS_MAX, Latency, WritesOverTime, quantile_us
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import FAIL, INFO, Scene
from tests.workloads.history.event_strategies import examples
from workloads.operations import Event

LATENCIES = st.lists(st.integers(1, 10**9), min_size=1, max_size=50)


def stretched(scene: Scene, factor: int) -> list[Event]:
    """The scene's events so much further apart."""
    return [msgspec.structs.replace(event, time_us=event.time_us * factor) for event in scene.events]


def writes(took_us: list[int], *, partition: str = "t-0") -> Latency:
    """The latency of writes that took so long, one after the other."""
    events: list[Event] = []
    now = 0
    for value, latency_us in enumerate(took_us):
        scene = Scene()
        scene.send(value, value, key=partition)
        events += [
            msgspec.structs.replace(event, time_us=time_us)
            for event, time_us in zip(scene.events, (now, now + latency_us), strict=True)
        ]
        now += latency_us
    return judge_events(events).latency


def disturbed() -> Scene:
    """Before a fault a write, in it one that is acknowledged, one that is refused and one of which nobody knows."""
    scene = Scene()
    scene.phase("break")
    scene.send(0, 0)
    scene.fault("begin")
    scene.send(1, 1)
    scene.send(2, None, kind=FAIL)
    scene.send(3, None, kind=INFO)
    scene.fault("end")
    scene.phase("heal")
    scene.send(4, 4)
    scene.phase("drain")
    return scene


@examples(25)
@given(LATENCIES, st.sampled_from([0.5, 0.99, 0.999, 1.0]))
def test_a_quantile_is_never_too_low_and_at_most_nine_percent_too_high(took_us: list[int], share: float) -> None:
    exact = sorted(took_us)[max(0, math.ceil(share * len(took_us)) - 1)]
    quantile = quantile_us(writes(took_us).all, share)
    assert quantile is not None
    assert exact <= quantile <= exact * 2 ** (1 / 8) + 1


@examples(15)
@given(LATENCIES, LATENCIES)
def test_histograms_of_two_runs_together_are_that_of_all_their_writes(first: list[int], other: list[int]) -> None:
    together = writes(first)
    together.add(writes(other))
    assert together.all == writes([*first, *other]).all


def test_writes_count_by_when_they_began_within_the_workload() -> None:
    latency = judge_events(disturbed().events).latency
    assert sum(latency.calm.values()) == 1
    assert sum(latency.in_fault.values()) == 1
    assert latency.workload_us == 110
    assert latency.per_second == pytest.approx(2e6 / 110)


def test_writes_over_time_say_when_they_were_refused_and_how_slow_they_were() -> None:
    over_time = judge_events(stretched(disturbed(), 10_000)).over_time
    assert (over_time.begun_us, over_time.step_us) == (0, 100_000)
    assert over_time.acknowledged == [0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert over_time.rejected == [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert over_time.unknown == [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert over_time.slowest_us == [0, 100_000, 0, 0, 100_000, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("factor", [1, 10_000, 10**6, 10**9])
def test_steps_are_bounded_however_long_a_run_is(factor: int) -> None:
    over_time = judge_events(stretched(disturbed(), factor)).over_time
    assert 1 <= len(over_time.acknowledged) <= STEPS_MAX
    assert sum(over_time.acknowledged) == 2


def test_parts_of_a_history_add_up_to_the_whole() -> None:
    events = stretched(disturbed(), 10_000)
    scene = Scene()
    scene.events = list(events)
    scene.send(5, 0, key="t-1", process=3)
    parts = [
        judge_events(e for e in scene.events if all(getattr(m, "partition", key) == key for m in e.micro)).over_time
        for key in ("t-0", "t-1")
    ]
    total = WritesOverTime()
    for part in parts:
        total.add(part)
    assert total == judge_events(scene.events).over_time


def test_a_history_that_does_not_say_when_its_workload_was_has_no_steps() -> None:
    scene = Scene()
    scene.send(0, 0)
    verdict = judge_events(scene.events)
    assert verdict.over_time == WritesOverTime()
    assert sum(verdict.latency.calm.values()) == 1
    assert verdict.latency.per_second is None

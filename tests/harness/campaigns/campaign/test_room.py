"""A budget without room for what cells need is told beforehand, with numbers that are enough."""

from __future__ import annotations

import re

import pytest

from harness.campaigns.campaign import room_sentences
from harness.ground.choices import Choices
from harness.plan import Plan, parse_plan
from harness.runs.run import planned

MIXTURE = "kill+pause+partition"


def plan_of(family: str, world: str = "simulated", runs: int = 10, more: str = "", **faults: int) -> Plan:
    keys = ", ".join(f"{name} = {value}" for name, value in faults.items() if name != "duration_ms")
    text = f'families = ["{family}"]\nfaults = {{ {keys} }}\n{more}\n[worlds.{world}]\nruns = {runs}\n'
    return parse_plan(f"{text}workload = {{ duration_ms = {faults.get('duration_ms', 10_000)} }}\n", "p.toml")


def raised(sentence: str) -> dict[str, int]:
    """The keys that a sentence names, each with the number that it says is enough."""
    return {key: int(number) for key, number in re.findall(r"(\w+) from \d+ to (\d+)", sentence)}


def test_a_mixture_with_a_count_for_some_of_its_families_is_told_with_the_count_for_all() -> None:
    (sentence,) = room_sentences(plan_of(MIXTURE, count=4, duration_ms=30_000).runs())
    assert sentence == (
        "In the world simulated, a run of kill+pause+partition may have room for 2 of its 3 families; "
        "raise count from 4 to 5."
    )
    plan = plan_of(MIXTURE, count=5, duration_ms=30_000, runs=50)
    assert room_sentences(plan.runs()) == []
    for run in plan.runs():
        assert {step.family for step in planned(run, Choices(run.seed).draw).steps} == set(MIXTURE.split("+"))


@pytest.mark.parametrize(
    ("family", "more", "budget"),
    [
        (MIXTURE, "", {"count": 4, "duration_ms": 10_000}),
        ("kill", "", {"count": 2, "duration_ms": 6_000}),
        ("kill", "settings = { broker.session.timeout.ms = 9_000 }", {"count": 4, "duration_ms": 10_000}),
        ("kill+outage", "", {"count": 4, "duration_ms": 10_000, "dead_brokers_max": 1}),
    ],
)
@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("by_the_clock", [False, True])
def test_the_numbers_that_it_says_are_enough(
    family: str, more: str, budget: dict[str, int], runs: int, by_the_clock: bool
) -> None:
    sentences = room_sentences(plan_of(family, "processes", runs, more, **budget).runs(), by_the_clock=by_the_clock)
    enough = {name: number for sentence in sentences for name, number in raised(sentence).items() if name != "runs"}
    assert enough or (family == "kill" and (by_the_clock or runs > 1))
    helped = plan_of(family, "processes", runs, more, **(budget | enough))
    assert room_sentences(helped.runs(), by_the_clock=by_the_clock) == []


def test_more_runs_help_too_where_each_has_some_room() -> None:
    (sentence,) = room_sentences(plan_of("kill", runs=1, count=3).runs())
    assert sentence.startswith(
        "In the world simulated, 1 run of kill has room for 2 of the 3 scenarios that a cell needs to be held; raise "
    )
    assert sentence.endswith(", or runs from 1 to 2.")
    assert room_sentences(plan_of("kill", runs=2, count=3).runs()) == []


def test_a_story_that_stops_more_brokers_than_the_plan_allows_is_told_with_the_number_that_allows_it() -> None:
    (sentence,) = room_sentences(plan_of("outage", dead_brokers_max=1).runs(), by_the_clock=True)
    assert (
        sentence
        == "In the world simulated, a run of outage may have room for no scenario; raise dead_brokers_max from 1 to 2."
    )


def test_of_a_script_or_a_given_schedule_nothing_is_told() -> None:
    script = 'story = "S40"\nworkload = { partitions = 1 }\n[worlds.processes]\n'
    given = '[[schedule]]\nbegin_ms = 500\nend_ms = 900\nfault = "kill"\nbroker = 0\n[worlds.processes]\n'
    for text in (script, given):
        assert room_sentences(parse_plan(text, "p.toml").runs()) == []

"""Each plan of the project says what is expected of it, and in virtual time that comes, where it can be performed."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from checkers import FIGURES, Cell, Latency, Outcome
from harness.campaigns.comparison import unexpected
from harness.campaigns.comparison.expectations import expected_sentences, states
from harness.ground.errors import PlanError
from harness.plan import Plan, parse_plan, plans_here, read_plan
from nemesis.plan import EXERCISED_MIN
from tests.plans_performed import has_come, performed, problems, virtual_runs
from workloads import Settings

PLANS: Final = plans_here()
#: Scripted stories: a second each. Drawn ones and others are performed by tests/harness/test_shipped_plans.py.
STORIES: Final = [name for name in PLANS if name.startswith("stories/")]


def plan_of(name: str) -> Plan:
    return read_plan(PLANS[name])


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_states_something_that_can_fail(name: str) -> None:
    assert any(states(entry) for entry in plan_of(name).expected)


@pytest.mark.parametrize("name", PLANS)
def test_no_plan_lowers_the_number_of_faults_that_held_needs(name: str) -> None:
    """One exercised fault is silent with a chance of 5 % where 95 % of faults lose a write."""
    assert {run.faults.exercised_min for run in plan_of(name).runs()} == {EXERCISED_MIN}


@pytest.mark.parametrize("name", PLANS)
def test_each_entry_of_a_plan_states_something(name: str) -> None:
    assert [entry for entry in plan_of(name).expected if not states(entry)] == []


def test_an_entry_that_takes_a_broken_promise_says_of_what() -> None:
    entries = [(name, entry) for name in PLANS for entry in plan_of(name).expected]
    taking = [(name, entry) for name, entry in entries if "broken promise" in entry.outcomes]
    assert len(taking) > 5
    assert [name for name, entry in taking if not entry.anomalies and not entry.finding] == []


@pytest.mark.parametrize("name", STORIES)
def test_a_scripted_story_comes_out_as_its_plan_expects(name: str) -> None:
    assert problems(plan_of(name), 1) == []


@pytest.mark.parametrize(
    "name",
    [
        *("canary", "smoke", "demo", "lag-by-messages", "racks"),
        *(pytest.param(name, marks=pytest.mark.system) for name in ("isr-churn", "one-replica")),
    ],
)
def test_no_run_of_a_plan_contradicts_it(name: str) -> None:
    assert problems(plan_of(name), 1) == []


@pytest.mark.system
def test_each_replica_more_costs_latency_where_all_in_sync_replicas_acknowledge() -> None:
    """And quorum acks keep p99.9 near p99."""
    assert problems(plan_of("quorum-latency"), 1) == []


@pytest.mark.system
def test_the_eras_hold_with_brokers_that_know_all_batches_after_a_restart() -> None:
    text = PLANS["eras"].read_text().replace("[settings]\n", '[settings]\nproducers.after.restart = "all-batches"\n')
    assert problems(parse_plan(text, "eras.toml"), 5) == []


def test_a_plan_that_expects_the_wrong_thing_is_contradicted() -> None:
    """Few runs contradict it as many do: a loss where it expects none, and none where it expects one."""
    text = PLANS["demo"].read_text()
    assert text.count('outcomes = ["permitted loss"]') == 1
    plan = parse_plan(text.replace('outcomes = ["permitted loss"]', 'outcomes = ["held"]'), "demo.toml")
    cells = performed(virtual_runs(plan, 2))
    assert not has_come(plan, cells)
    assert problems(plan, 20)
    silent = [replace(performed_cell, outcome=Outcome.NOT_EXERCISED) for performed_cell in cells]
    assert not has_come(plan_of("demo"), silent)


def cell(plan: Plan, **changes) -> Cell:
    (made, *_) = performed(virtual_runs(plan, 1))
    return replace(made, **changes)


PLAN = """
families = ["kill"]
[matrix]
acks = [1, "all"]
[settings]
min.insync.replicas = 2
[workload]
duration_ms = 4_000
[worlds.simulated]
runs = 1
"""

#: The begin of an entry with a figure, and the words for its bounds.
HELD = 'outcomes = ["held"]\nfigures = {'
BOUNDS = "takes the least and the most, such as [0, 50]"
#: All that an entry may expect, as a sentence says it.
OUTCOMES = 'one of "broken promise", "stalled", "unknown", "permitted loss", "not exercised", "held"'


def test_what_did_not_come_is_named() -> None:
    text = PLAN + '[[expected]]\nsettings = { acks = 1 }\noutcomes = ["held"]\nsome = "held"\n'
    plan = parse_plan(text, "p.toml")
    weak_cell = cell(plan, outcome=Outcome.HELD)
    other = replace(weak_cell, settings=Settings().to_mapping(), cell="acks=all/kill")
    assert list(expected_sentences(plan.expected, [weak_cell])) == ["As the plan expects: 1 cell."]
    lost = replace(weak_cell, outcome=Outcome.PERMITTED_LOSS)
    first, second = expected_sentences(plan.expected, [lost])
    assert first.endswith("permitted loss, expected: held.")
    assert "none of 1 cell is held" in second
    assert list(unexpected(plan.expected, [other])) == []
    assert list(expected_sentences(plan.expected, [weak_cell, other])) == [
        "As the plan expects: 1 cell.",
        "Of 1 cell the plan states nothing.",
    ]
    assert list(expected_sentences((), [weak_cell])) == []
    for outcome in (Outcome.BROKEN_PROMISE, Outcome.STALLED, Outcome.UNKNOWN):
        broken = replace(other, outcome=outcome)
        (sentence,) = unexpected(plan.expected, [weak_cell, broken])
        assert sentence == f"simulated/acks=all/kill: {outcome}, and no entry expects that of the cell"
        assert list(unexpected((), [broken])) == []


def test_an_entry_that_takes_each_unbroken_outcome_is_not_counted_as_expected() -> None:
    any_outcome = 'outcomes = ["held", "permitted loss", "not exercised"]'
    plan = parse_plan(f"{PLAN}[[expected]]\n{any_outcome}\n", "p.toml")
    held = cell(plan, outcome=Outcome.HELD)
    assert list(expected_sentences(plan.expected, [held])) == ["Of 1 cell the plan states nothing."]
    (broken,) = unexpected(plan.expected, [replace(held, outcome=Outcome.BROKEN_PROMISE, broken={"lost-write": 1})])
    assert "broken promise, expected" in broken
    stating = parse_plan(f'{PLAN}[[expected]]\n{any_outcome}\nsome = "permitted loss"\n', "p.toml")
    assert "none of 1 cell is permitted loss" in next(expected_sentences(stating.expected, [held]))


def test_what_does_not_bear_the_marks_of_the_expected_finding_is_not_as_expected() -> None:
    entry = '[[expected]]\noutcomes = ["broken promise"]\nfinding = "008"\n'
    entry += 'anomalies = ["lost-write", "torn-transaction"]\n'
    plan = parse_plan(PLAN + entry, "p.toml")
    broken = replace(
        cell(plan, outcome=Outcome.BROKEN_PROMISE),
        broken={"torn-transaction": 2, "lost-write": 2},
        identities={"torn-transaction": {"aa": 1, "bb": 1}, "lost-write": {"cc": 1}},
        marks={"aa": "no marker", "cc": "hidden"},
    )
    (sentence,) = unexpected(plan.expected, [broken])
    assert sentence.endswith(": torn-transaction bb, without what marks finding 008")
    assert list(unexpected(plan.expected, [replace(broken, marks={"aa": "no marker", "bb": "no marker"})])) == []
    with pytest.raises(PlanError, match=r"expected\[0\].finding: .*800"):
        parse_plan(PLAN + entry.replace("008", "800"), "p.toml")


def test_a_broken_promise_of_another_anomaly_is_not_as_expected() -> None:
    text = PLAN + '[[expected]]\noutcomes = ["broken promise"]\nanomalies = ["duplicate"]\n'
    plan = parse_plan(text, "p.toml")
    broken = cell(plan, outcome=Outcome.BROKEN_PROMISE, broken={"duplicate": 1})
    assert list(unexpected(plan.expected, [broken])) == []
    (sentence,) = unexpected(plan.expected, [replace(broken, broken={"lost-write": 1, "duplicate": 1})])
    assert sentence.endswith("lost-write, expected: duplicate")


def test_a_figure_that_is_out_of_its_bounds_or_not_known_is_not_as_expected() -> None:
    text = PLAN + '[[expected]]\noutcomes = ["held"]\nfigures = { p99_ms = [0, 50], isr_changes_a_run = [0, 1.5] }\n'
    plan = parse_plan(text, "p.toml")
    quick = Latency(calm={80: 100})
    held = cell(plan, outcome=Outcome.HELD, latency=quick, isr_changes=3, runs=2)
    assert list(unexpected(plan.expected, [held])) == []
    slow, unknown = unexpected(plan.expected, [replace(held, latency=Latency(calm={160: 100}), isr_changes=None)])
    assert slow.endswith("p99_ms is 1,143.5, expected: 0 to 50")
    assert unknown.endswith("isr_changes_a_run is not known, expected: 0 to 1.5")


def test_quantiles_of_three_nines_tell_a_thousandth() -> None:
    (made, *_) = performed(virtual_runs(parse_plan(PLAN, "p.toml"), 1))
    told = replace(made, latency=Latency(calm={80: 9_980, 160: 20}))
    assert FIGURES["p99_ms"](told) == pytest.approx(1.117, abs=0.01)
    assert FIGURES["p99.9_ms"](told) == pytest.approx(1_143.5, abs=1)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (f"{HELD} p98_ms = [0, 1] }}", 'figures: unknown figure "p98_ms"; did you mean "p99_ms"?'),
        (f"{HELD} p99_ms = [2, 1] }}", f"figures.p99_ms: {BOUNDS}, not [2, 1]"),
        (f"{HELD} p99_ms = 3 }}", f"figures.p99_ms: {BOUNDS}, not 3"),
        ('outcomes = ["hold"]', f'outcomes: takes a list; each is {OUTCOMES}, not ["hold"]'),
        ("outcomes = [true]", f"outcomes: takes a list; each is {OUTCOMES}, not [true]"),
        ("outcomes = []", "outcomes: no outcome is expected; name those that these cells may have"),
        ('family = "kill"', f"outcomes is missing; it takes a list; each is {OUTCOMES}"),
        ('outcomes = ["held"]\nsettings = { ack = 1 }', 'settings: unknown setting "ack"; did you mean "acks"?'),
        (
            'outcomes = ["held"]\nsettings = { acks = 2026-01-01 }',
            "settings.acks: takes a value or a list of values, not 2026-01-01",
        ),
        ('outcomes = ["held"]\nsome = 1', f"some: takes {OUTCOMES}, not 1"),
        ('outcome = ["held"]', 'outcome: unknown key "outcome"; did you mean "outcomes"?'),
    ],
)
def test_expectations_that_cannot_be_understood_are_refused_in_the_words_of_plans(entry: str, message: str) -> None:
    with pytest.raises(PlanError) as error:
        parse_plan(f"{PLAN}[[expected]]\n{entry}\n", "p.toml")
    assert str(error.value).removeprefix("p.toml: expected[0]").lstrip(".: ") == message

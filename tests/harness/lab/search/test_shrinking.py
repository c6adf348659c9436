"""Runs become as small as they can be, and show the same."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

import msgspec
import pytest

from harness.ground.errors import NamedWronglyError, PlanError
from harness.lab.search import FindingToKeep, finding_of, run_in_memory, shrunk
from harness.lab.search import shrinking as module
from harness.lab.search.list_form import operations_of, steps_of, with_steps, with_workload, with_writes
from harness.plan import parse_plan, plan_text, read_plan
from workloads import LISTED

#: Most of these look at the same shrunk runs, which one worker keeps.
pytestmark = pytest.mark.xdist_group("shrinking")
PLANS = Path(__file__).parents[4] / "plans"


def losing(family="kill", **settings):
    """A run of the default campaign, half as long: docs/guides/shrink.md has whole ones."""
    chosen = {"acks": 1, "min.insync.replicas": 1, "enable.idempotence": False} | settings
    plan = read_plan(PLANS / "default.toml", chosen)
    spec = next(run for run in plan.runs() if run.family == family and not run.settings[UNCLEAN])
    return with_workload(spec, duration_ms=6_000, writes_per_second=20.0)


UNCLEAN = "unclean.leader.election.enable"


@cache
def small(family):
    return shrunk(losing(family))


FAMILIES = ["kill", pytest.param("partition", marks=pytest.mark.system)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_losing_run_becomes_a_few_lines(family):
    small_run = small(family)
    assert small_run.complete
    assert small_run.faults[0] <= 2
    assert small_run.operations == (1, 120)
    assert small_run.finding == finding_of(run_in_memory(losing(family)))
    assert small_run.finding.is_in(small_run.run)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_single_fault_and_no_single_write_can_be_taken_away(family):
    small_run = small(family)
    steps, writes = steps_of(small_run.spec), operations_of(small_run.spec)
    for index in range(len(steps)):
        fewer = run_in_memory(with_steps(small_run.spec, steps[:index] + steps[index + 1 :]))
        assert not small_run.finding.is_in(fewer)
    for index in range(len(writes)):
        assert not small_run.finding.is_in(
            run_in_memory(with_writes(small_run.spec, writes[:index] + writes[index + 1 :]))
        )


def test_what_is_left_has_round_times_and_no_chance():
    spec = small("kill").spec
    assert spec.chance == "none"
    assert spec.workload.name == LISTED
    assert all(time_ms % 10 == 0 for step in steps_of(spec) for time_ms in (step.begin_ms, step.end_ms))
    assert all(write.due_us % 10_000 == 0 for write in operations_of(spec))


@pytest.mark.system
def test_the_same_run_is_shrunk_to_the_same():
    assert shrunk(losing()).spec == small("kill").spec


def test_a_run_without_a_finding_is_refused():
    whole = losing(**{"acks": "all", "min.insync.replicas": 2, "enable.idempotence": True})
    with pytest.raises(NamedWronglyError, match="shows nothing: no write is lost and no promise is broken"):
        shrunk(whole)
    with pytest.raises(NamedWronglyError, match="shows no duplicate"):
        shrunk(losing(), "duplicate")


def test_a_broken_promise_stays_one():
    bug = {"acks": "all", "min.insync.replicas": 2, "planted.bug": "acknowledge-after-append"}
    small_run = shrunk(losing(**bug))
    assert small_run.finding.broken
    assert small_run.run.judgement.broken["lost-write"] == 1


def test_a_broken_invariant_can_be_what_is_kept():
    spec = losing(**{"acks": "all", "min.insync.replicas": 2, "planted.bug": "commit-largest-log-end"})
    broken = run_in_memory(spec, invariants=True).broken
    small_run = shrunk(spec, FindingToKeep(invariant=broken.name))
    assert small_run.run.broken.name == broken.name
    assert len(steps_of(small_run.spec)) == 0


def test_what_is_interrupted_leaves_the_best_so_far(monkeypatch):
    calls = count(1)

    def interrupted(spec, **others):
        if next(calls) > 30:
            raise KeyboardInterrupt
        return run_in_memory(spec, **others)

    monkeypatch.setattr(module, "run_in_memory", interrupted)
    small_run = shrunk(losing())
    assert not small_run.complete
    assert small_run.attempts == 31
    assert small_run.operations[0] < 120
    assert small_run.finding.is_in(run_in_memory(small_run.spec))


def test_it_ends_when_its_time_is_over():
    small_run = shrunk(losing(), seconds=0)
    assert not small_run.complete
    assert small_run.spec.schedule == run_in_memory(losing()).schedule


def test_a_plan_of_the_smaller_run_is_the_smaller_run():
    small_run = small("kill")
    again = parse_plan(plan_text(small_run.spec, "small"), "small.toml").runs()[0]
    assert again.schedule == small_run.spec.schedule
    assert again.workload.writes == small_run.spec.workload.writes
    performed = run_in_memory(again)
    assert performed.verdict.anomalies == small_run.run.verdict.anomalies


def test_only_simulated_runs_can_be_shrunk():
    real = next(run for run in read_plan(PLANS / "default.toml").runs() if not run.world.virtual_time)
    with pytest.raises(PlanError, match="simulated world"):
        shrunk(real)


def test_a_run_whose_writes_are_a_list_is_taken_as_it_is():
    small_run = small("kill")
    longer = msgspec.structs.replace(small_run.spec, seed=5)
    assert shrunk(longer).operations[0] == small_run.operations[0]

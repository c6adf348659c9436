"""A run in memory is the run that everybody else performs and judges through files."""

from __future__ import annotations

import gc
from pathlib import Path

import msgspec
import pytest

from checkers import LostWrite, Outcome, check_one, judge
from harness.ground.choices import Choices
from harness.ground.errors import PlanError
from harness.lab.search import run_in_memory
from harness.plan import parse_plan, read_plan
from harness.runs.run import perform_run
from nemesis.schedule import Schedule

PLANS = Path(__file__).parents[4] / "plans"
POWER = """
families = ["power+partition"]
settings = { acks = "all", "min.insync.replicas" = 1, "unclean.leader.election.enable" = true }
[worlds.simulated]
runs = 4
workload = { duration_ms = 9_000, writes_per_second = 30.0 }
"""


def runs():
    """Runs with and without findings: the default matrix, and one whose disks lose what was acknowledged."""
    return [*read_plan(PLANS / "default.toml").runs()[:60:10], *parse_plan(POWER, "power.toml").runs()]


def test_the_verdict_in_memory_is_the_one_from_files(tmp_path):
    names = set()
    for number, spec in enumerate(runs()):
        run = run_in_memory(spec)
        assert perform_run(spec, tmp_path / str(number)).status == "completed"
        stored = check_one(tmp_path / str(number), name=str(spec.directory()))
        assert run.verdict == stored
        assert run.judgement == judge(spec.chosen(), stored, spec.faults.exercised_min, spec.family.split("+"))
        names |= stored.counts.keys()
    assert "lost-write" in names


def lossy():
    plan = read_plan(PLANS / "default.toml", {"acks": 1, "min.insync.replicas": 1})
    return next(run for run in plan.runs() if run.family == "kill" and not run.settings["enable.idempotence"])


def test_a_given_schedule_is_performed_as_it_is():
    drawn = run_in_memory(lossy())
    schedule = Schedule(steps=drawn.schedule.steps[:1], healed_ms=drawn.schedule.healed_ms)
    assert [receipt.sequence for receipt in run_in_memory(lossy(), schedule=schedule).receipts] == [0]
    assert run_in_memory(lossy(), schedule=drawn.schedule).verdict == drawn.verdict


def test_a_trial_again_with_its_recording_is_the_same():
    first = run_in_memory(lossy())
    again = run_in_memory(first.spec, choices=first.choices)
    assert msgspec.structs.replace(again, recording=first.recording) == first
    assert run_in_memory(first.spec, choices=Choices(1)).verdict != first.verdict


def test_a_broken_invariant_is_noted_with_its_time_and_the_run_goes_on():
    settings = {"acks": "all", "min.insync.replicas": 2, "planted.bug": "commit-largest-log-end"}
    plan = read_plan(PLANS / "default.toml", settings)
    spec = next(run for run in plan.runs() if run.family == "kill")
    run = run_in_memory(spec, invariants=True)
    assert run.broken is not None
    assert run.broken.time_us > 0
    assert run.broken.text.startswith(run.broken.name)
    assert run.verdict.exercise.drained
    assert run.verdict == run_in_memory(spec).verdict


def test_only_simulated_runs_are_attempted():
    real = next(run for run in read_plan(PLANS / "default.toml").runs() if not run.world.virtual_time)
    with pytest.raises(PlanError, match="simulated world"):
        run_in_memory(real)


def test_garbage_is_looked_for_only_when_a_run_is_over():
    """Each look goes through all that the run keeps, and finds nothing before its end."""
    looks = []

    def note(phase, info):
        if phase == "start":
            looks.append(info["generation"])

    spec = runs()[-1]
    gc.collect()
    gc.callbacks.append(note)
    try:
        run_in_memory(spec)
    finally:
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert len(looks) <= 2


@pytest.mark.parametrize(
    ("family", "copies", "seed"),
    [
        pytest.param("partition", 2, 136950947672330, id="followers that wait for an answer in vain fetch again late"),
        pytest.param("kill", 1, 270584017427987, id="a leader that was killed leads again after the next election"),
    ],
)
def test_a_log_that_takes_what_nothing_acknowledges_is_not_stalled(family: str, copies: int, seed: int) -> None:
    text = f"""
    name = "silent"
    racks = ["a", "b", "c"]
    families = ["{family}"]
    settings = {{ acks = 0, "min.insync.replicas" = {copies} }}
    [worlds.simulated]
    runs = 1
    workload = {{ duration_ms = 8_000, writes_per_second = 30.0, partitions = 2 }}
    """
    (spec,) = parse_plan(text, "silent.toml").runs()
    run = run_in_memory(msgspec.structs.replace(spec, seed=seed))
    assert run.verdict.recovery.tried
    assert (run.verdict.recovery.unwritten, run.judgement.stalled) == ({}, {})


def test_a_directory_that_fails_touches_every_log_in_it_and_permits_the_loss_of_each() -> None:
    """Three disks fail in turn before the first broker's session is over: each last copy is gone, of two logs."""
    text = """
    name = "directories"
    racks = ["a", "b", "c"]
    families = ["log-directory"]
    [settings]
    acks = "all"
    "min.insync.replicas" = 2
    "replica.lag.time.max.ms" = 30_000
    "broker.session.timeout.ms" = 9_000
    "broker.heartbeat.interval.ms" = 2_000
    [worlds.simulated]
    runs = 1
    workload = { duration_ms = 8_000, writes_per_second = 30.0, partitions = 2 }
    """
    (spec,) = parse_plan(text, "directories.toml").runs()
    run = run_in_memory(msgspec.structs.replace(spec, seed=264225634577670))
    assert {receipt.touched for receipt in run.receipts} == {("ackproof-0", "ackproof-1")}
    assert {tuple(receipt.seen) for receipt in run.receipts} == {("ackproof-0", "ackproof-1")}
    assert {finding.key for finding in run.verdict.findings(LostWrite)} == {"ackproof-0", "ackproof-1"}
    assert (run.judgement.outcome, run.judgement.broken) == (Outcome.PERMITTED_LOSS, {})

"""A run whose producers all stop after the first fault: its later faults prove nothing, in virtual and in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import Outcome, VerdictLine, check_one
from checkers.verdicts.cells import build_cells
from harness.plan import AnyWorld, Processes, RunSpec, Simulated
from harness.records.files import HISTORY
from harness.records.verdict_lines import facts_of
from harness.runs.run.performing import perform_run
from nemesis.plan import FaultPlan
from tests.harness.worlds.trials import STOPPED_DRAIN_MS, stop_producers_after_the_first_fault
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

SENDS_END_MS = 6_500


def outcomes(world: AnyWorld, directory: Path, *, count: int = 3) -> tuple[Outcome, Outcome]:
    """The ends of a run with ``count`` faults, one after the other, and of its cell."""
    spec = RunSpec(
        world=world,
        cell="cell/restart",
        family="restart",
        settings=Settings(min_insync_replicas=2).to_mapping(),
        workload=WorkloadPlan(writes_per_second=300.0, duration_ms=24_000, drain_limit_ms=STOPPED_DRAIN_MS),
        # So long between faults that every send has ended: one that is still in flight at the next is exercised by it.
        faults=FaultPlan(
            families=("restart",),
            scenarios=("restart/bounce-leader",),
            count=count,
            healed_ms_min=SENDS_END_MS,
            at_stake_min=1,
        ),
        seed=5,
    )
    ended = perform_run(spec, directory)
    assert ended.status == "completed", ended.reason
    assert ended.report is not None
    assert sum(fault["took_effect"] for fault in ended.report["faults"]) >= count
    verdict = check_one(directory / HISTORY, name="runs/1")
    assert (verdict.recovery.tried, verdict.recovery.unwritten) == (True, {}), "fresh clients write, whatever stopped"
    line = VerdictLine.of(verdict, facts_of(spec))
    (cell,) = build_cells([line])
    return line.outcome, cell.outcome


def test_in_virtual_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcomes(Simulated(), tmp_path / "going") == (Outcome.HELD, Outcome.HELD)
    stop_producers_after_the_first_fault(monkeypatch)
    assert outcomes(Simulated(), tmp_path / "stopped") == (Outcome.NOT_EXERCISED, Outcome.NOT_EXERCISED)


@pytest.mark.system
def test_on_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop_producers_after_the_first_fault(monkeypatch)
    assert outcomes(Processes(), tmp_path / "stopped") == (Outcome.NOT_EXERCISED, Outcome.NOT_EXERCISED)

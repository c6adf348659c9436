"""Measures the speed of virtual time: the standard schedule on one core, with its history written to disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import HarnessError
from harness.plan import Plan, RunSpec
from harness.runs.run import perform_run

#: The plan that is measured by default; its file is in this package, so that an installed wheel has it too.
STANDARD_SCHEDULE: Final = Path(__file__).with_name("standard-schedule.toml")


class SimulatedSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Rates on one core, with invariants checked as in every run, and once more without.

    Seconds are those of a processor, so that other work on the machine does not count; those of single schedules are
    milliseconds.
    """

    schedules: int
    schedules_per_second: float
    schedules_per_second_without_invariants: float
    virtual_seconds_per_second: float
    median_ms: float
    worst_ms: float

    def lines(self) -> Iterator[str]:
        """Lines for people."""
        yield f"simulated schedules per second, one core   {self.schedules_per_second:10.1f}"
        yield f"    without invariants                     {self.schedules_per_second_without_invariants:10.1f}"
        yield f"virtual seconds per second of a processor  {self.virtual_seconds_per_second:10.0f}"
        times = f"{self.median_ms:10.1f} / {self.worst_ms:.1f} ms"
        yield f"one schedule, median / worst of {self.schedules:<5}      {times}"


def measure_simulated(plan: Plan, schedules: int, scratch: Path) -> SimulatedSpeed:
    """Perform the first simulated runs of ``plan`` below ``scratch``, each with and without invariants, in turns.

    One more before them is not timed.

    Raises:
        HarnessError: the plan has no simulated runs, or one failed.
    """
    runs = [run for run in plan.runs() if run.world.virtual_time][:schedules]
    if not runs:
        raise HarnessError(f"the plan {plan.name} has no simulated runs to measure; add [worlds.simulated]")
    _performed(runs[0], scratch / "warm", invariants=True)
    watched, unwatched = [], []
    for run in runs:
        watched.append(_performed(run, scratch / "watched" / run.directory(), invariants=True))
        unwatched.append(_performed(run, scratch / "unwatched" / run.directory(), invariants=False))
    each_s = [busy_s for busy_s, _ in watched]
    return SimulatedSpeed(
        schedules=len(runs),
        schedules_per_second=len(runs) / sum(each_s),
        schedules_per_second_without_invariants=len(runs) / sum(busy_s for busy_s, _ in unwatched),
        virtual_seconds_per_second=sum(virtual_s for _, virtual_s in watched) / sum(each_s),
        median_ms=statistics.median(each_s) * 1000,
        worst_ms=max(each_s) * 1000,
    )


def _performed(run: RunSpec, directory: Path, *, invariants: bool) -> tuple[float, float]:
    """Processor and virtual seconds of a run."""
    began = time.process_time()
    ended = perform_run(run, directory, invariants=invariants)
    busy_s = time.process_time() - began
    if ended.report is None:
        raise HarnessError(f"the run with seed {run.seed} failed, so there is nothing to measure: {ended.reason}")
    return busy_s, ended.report["ended_us"] / 1e6

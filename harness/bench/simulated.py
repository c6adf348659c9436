"""How fast virtual time is: the standard schedule on one core, with its history written to disk."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.errors import HarnessError
from harness.plan import Plan, RunSpec
from harness.run import perform

#: The plan that is measured where no other is named: it lies beside this module, so that an installed wheel has it too.
STANDARD_SCHEDULE: Final = Path(__file__).with_name("standard-schedule.toml")


class SimulatedSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Rates on one core. Times of single schedules are wall milliseconds."""

    schedules: int
    schedules_per_second: float
    virtual_seconds_per_second: float
    median_ms: float
    worst_ms: float

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"simulated schedules per second, one core   {self.schedules_per_second:10.1f}"
        yield f"virtual seconds per wall second            {self.virtual_seconds_per_second:10.0f}"
        times = f"{self.median_ms:10.1f} / {self.worst_ms:.1f} ms"
        yield f"one schedule, median / worst of {self.schedules:<5}      {times}"


def measure_simulated(plan: Plan, schedules: int, scratch: Path) -> SimulatedSpeed:
    """Perform the first simulated runs of ``plan`` below ``scratch``; one more before them is not timed.

    Raises:
        HarnessError: the plan has no simulated runs, or one failed.
    """
    runs = [run for run in plan.runs() if run.world.virtual_time][:schedules]
    if not runs:
        raise HarnessError(f"the plan {plan.name} has no simulated runs to measure; add [worlds.simulated]")
    _performed(runs[:1], scratch / "warm")
    began = time.perf_counter()
    each_s, virtual_s = _performed(runs, scratch / "timed")
    wall_s = time.perf_counter() - began
    return SimulatedSpeed(
        schedules=len(runs),
        schedules_per_second=len(runs) / wall_s,
        virtual_seconds_per_second=virtual_s / wall_s,
        median_ms=statistics.median(each_s) * 1000,
        worst_ms=max(each_s) * 1000,
    )


def _performed(runs: Sequence[RunSpec], below: Path) -> tuple[list[float], float]:
    """Wall seconds of each run, and virtual seconds of all."""
    each_s, virtual_s = [], 0.0
    for run in runs:
        began = time.perf_counter()
        ended = perform(run, below / run.directory())
        each_s.append(time.perf_counter() - began)
        if ended.report is None:
            raise HarnessError(f"the run with seed {run.seed} failed, so there is nothing to measure: {ended.reason}")
        virtual_s += ended.report["ended_us"] / 1e6
    return each_s, virtual_s

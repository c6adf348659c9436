"""Counts the runs and writes of a plan before any is made, and refuses too many of them."""

from __future__ import annotations

import math
from collections.abc import Sized

from harness.plan.bounds import (
    COMBINATIONS_MAX,
    EXCLUSIONS_MAX,
    RUNS_MAX,
    SIMULATED_BYTES_MAX,
    SIMULATED_WRITE_BYTES,
    WRITES_MAX,
)
from harness.plan.file_form import BOUNDS
from harness.plan.model import Plan
from harness.plan.values import PlanKey, Table
from harness.plan.worlds import AnyWorld
from workloads import WorkloadPlan


def refuse_too_many_combinations(axes: Table, exclusions: Sized, plan_key: PlanKey) -> None:
    """Refuse a matrix whose ``axes`` have too many combinations, or too many exclusions."""
    lengths = [len(values) for values in axes.values() if isinstance(values, list)]
    if (count := math.prod(lengths)) > COMBINATIONS_MAX:
        raise plan_key.wrong(
            f"{' x '.join(map(str, lengths))} values are {count} combinations; the most is {COMBINATIONS_MAX}, before "
            "exclusions, so leave values out"
        )
    if len(exclusions) > EXCLUSIONS_MAX:
        raise (plan_key / "exclude").wrong(
            f"{len(exclusions)} exclusions are too many; the most is {EXCLUSIONS_MAX}, so shrink the matrix instead"
        )


def refuse_too_many_runs(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse a plan of more runs than a campaign can have."""
    runs = len(plan.choices) * len(plan.families) * sum(world.runs for world in plan.worlds)
    if runs > RUNS_MAX:
        raise plan_key.wrong(
            f"this plan asks for {runs} runs; the most is {RUNS_MAX}, so lower runs or shrink the matrix: "
            f"{BOUNDS['runs'].reason}"
        )


def refuse_too_many_writes(workload: WorkloadPlan, world: AnyWorld, plan_key: PlanKey) -> None:
    """Refuse a workload of more writes than one run in ``world`` can have."""
    writes = planned_writes(workload)
    made = (
        f"writes_per_second={workload.writes_per_second:g}, duration_ms={workload.duration_ms} and "
        f"payload_bytes={workload.payload_bytes} make {writes} writes"
    )
    size = writes * (SIMULATED_WRITE_BYTES + workload.payload_bytes)
    if world.virtual_time and size > SIMULATED_BYTES_MAX:
        raise (plan_key / "workload").wrong(
            f"{made}, which are {size / 1e9:.1f} GB; a simulated cluster has them in memory, and the most is "
            f"{SIMULATED_BYTES_MAX / 1e9:.1f} GB, so lower one of them"
        )
    if not world.virtual_time and writes > WRITES_MAX:
        raise (plan_key / "workload").wrong(
            f"{made}; the most is {WRITES_MAX}, so lower one of them: no larger history was ever checked"
        )


def planned_writes(workload: WorkloadPlan) -> int:
    """The number of writes that ``workload`` asks for in one run."""
    return len(workload.writes) or round(workload.writes_per_second * workload.duration_ms / 1000)

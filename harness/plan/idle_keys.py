"""Refuses keys and settings of a plan that do nothing in its workloads, and so were meant for another workload.

A key of ``[workload]`` says in its annotation in which workloads it counts (:class:`workloads.CountsIn`), and a setting
in its definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from harness.plan.file_form import PlanFile
from harness.plan.model import WorldPlan
from harness.plan.traits import workloads_with
from harness.plan.values import PlanKey, Table, flattened, keys_of, marks_of, table_at
from workloads import CountsIn, Settings, WorkloadPlan, kind_of


def refuse_idle(plan: PlanFile, worlds: Iterable[WorldPlan], plan_key: PlanKey) -> None:
    """Refuse keys of workloads, and settings of the matrix, that do nothing in the workload of any world.

    A plan that lists its writes keeps what a run of another workload had.
    """
    if plan.writes:
        return
    keys = {
        name: mark.trait
        for name, field in keys_of(WorkloadPlan).items()
        for mark in marks_of(field)
        if isinstance(mark, CountsIn)
    }
    of_worlds = {world.world.name: world.workload for world in worlds}
    _refuse(keys, plan.workload, of_worlds.values(), plan_key / "workload")
    for name, workload in of_worlds.items():
        here = plan_key / "worlds" / name
        own = table_at(table_at(plan.worlds, name, plan_key / "worlds"), "workload", here)
        _refuse(keys, own, [workload], here / "workload")
    _refuse(Settings.counting_in(), flattened(plan.matrix), of_worlds.values(), plan_key / "matrix")


def _refuse(keys: Mapping[str, str], table: Table, workloads: Iterable[WorkloadPlan], plan_key: PlanKey) -> None:
    kinds = {workload.name: kind_of(workload) for workload in workloads}
    for key in table:
        if key in keys and not any(map(trait := attrgetter(keys[key]), kinds.values())):
            none = " and ".join(f'"{name}"' for name in kinds)
            raise (plan_key / key).wrong(
                f"does nothing in the workload {none}; write name = {workloads_with(trait)} under [workload], or "
                "leave this key out"
            )

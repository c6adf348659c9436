"""Refuses keys of a plan that do nothing in its workloads, and so were meant for another workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from harness.plan.model import WorldPlan
from harness.plan.traits import GROUPED, TRANSACTIONAL, Trait, workloads_with, writes_in_transactions
from harness.plan.values import PlanKey, Table, flattened, table_at
from workloads import WorkloadPlan, kind_of

#: Keys of ``[workload]`` and settings by the trait of the workloads that look at them.
_KEYS: Final[Mapping[str, Trait]] = {
    "sends_per_transaction": writes_in_transactions,
    "takeover_every_ms": writes_in_transactions,
    "aborts_percent": TRANSACTIONAL,
    "member_change_ms": GROUPED,
    "static_members": GROUPED,
}
_SETTINGS: Final[Mapping[str, Trait]] = {
    "group.protocol": GROUPED,
    "session.timeout.ms": GROUPED,
    "commit.mode": GROUPED,
    "auto.offset.reset": GROUPED,
    "transaction.timeout.ms": TRANSACTIONAL,
}


def refuse_idle(table: Table, worlds: Iterable[WorldPlan], plan_key: PlanKey) -> None:
    """Refuse keys of workloads, and settings of the matrix, that do nothing in the workload of any world.

    A plan that lists its writes keeps what a run of another workload had.

    Raises:
        PlanError: the key, and the workloads that look at it.
    """
    if "writes" in table:
        return
    of_worlds = {world.world.name: world.workload for world in worlds}
    _refuse(_KEYS, table_at(table, "workload", plan_key), of_worlds.values(), plan_key / "workload")
    for name, workload in of_worlds.items():
        own = table_at(table_at(table, "worlds", plan_key), name, plan_key / "worlds")
        here = plan_key / "worlds" / name
        _refuse(_KEYS, table_at(own, "workload", here), [workload], here / "workload")
    _refuse(_SETTINGS, flattened(table_at(table, "matrix", plan_key)), of_worlds.values(), plan_key / "matrix")


def _refuse(keys: Mapping[str, Trait], table: Table, workloads: Iterable[WorkloadPlan], plan_key: PlanKey) -> None:
    kinds = {workload.name: kind_of(workload) for workload in workloads}
    for key in table:
        if key in keys and not any(map(keys[key], kinds.values())):
            none = " and ".join(f'"{name}"' for name in kinds)
            raise (plan_key / key).wrong(
                f"does nothing in the workload {none}; write name = {workloads_with(keys[key])} under [workload], or "
                "leave this key out"
            )

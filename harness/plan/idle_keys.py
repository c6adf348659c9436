"""Refuses keys of a plan that do nothing in its workloads, and so were meant for another workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from harness.plan.model import WorldPlan
from harness.plan.values import PlanKey, Table, flattened, table_at
from workloads import WORKLOADS, WorkloadKind, WorkloadPlan, kind_of

_Trait = Literal["grouped", "transactional", "in transactions"]
#: Keys of ``[workload]`` and settings by the trait of the workloads that look at them.
_KEYS: Final[Mapping[str, _Trait]] = {
    "sends_per_transaction": "in transactions",
    "takeover_every_ms": "in transactions",
    "aborts_percent": "transactional",
    "member_change_ms": "grouped",
    "static_members": "grouped",
}
_SETTINGS: Final[Mapping[str, _Trait]] = {
    "group.protocol": "grouped",
    "session.timeout.ms": "grouped",
    "commit.mode": "grouped",
    "auto.offset.reset": "grouped",
    "transaction.timeout.ms": "transactional",
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


def _refuse(keys: Mapping[str, _Trait], table: Table, workloads: Iterable[WorkloadPlan], plan_key: PlanKey) -> None:
    names = {workload.name: kind_of(workload) for workload in workloads}
    for key in table:
        if key in keys and not any(_has(kind, keys[key]) for kind in names.values()):
            having = " or ".join(f'"{name}"' for name, kind in WORKLOADS.items() if _has(kind, keys[key]))
            none = " and ".join(f'"{name}"' for name in names)
            raise (plan_key / key).wrong(
                f"does nothing in the workload {none}; write name = {having} under [workload], or leave this key out"
            )


def _has(kind: WorkloadKind, trait: _Trait) -> bool:
    if trait == "in transactions":
        return kind.writing == "transactions"
    return kind.grouped if trait == "grouped" else kind.transactional

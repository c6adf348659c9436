"""Refuses a key that is known, but in another table of a plan, with the table where it belongs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from harness.plan.file_form import PlanFile, WorldTable
from harness.plan.values import PlanKey, Table, flattened
from nemesis.plan import FaultPlan
from workloads import Settings, WorkloadPlan

#: The keys of each table that may be taken for another; the first table that has a key is meant.
_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "under [settings], or a list of values under [matrix]": tuple(Settings().to_mapping()),
    "under [workload]": tuple(key for key in WorkloadPlan.__struct_fields__ if key != "writes"),
    "under [faults]": tuple(key for key in FaultPlan.__struct_fields__ if key != "families"),
    "under a world, such as [worlds.kafka]": WorldTable.__struct_fields__,
    "at the top of the plan": PlanFile.__struct_fields__,
}
#: The plan and its workload have one each.
_AMBIGUOUS: Final = "name"


def refuse_misplaced(table: Table, keys: Iterable[str], plan_key: PlanKey) -> None:
    """Refuse what ``table`` has and its ``keys`` do not, where another table has it.

    Raises:
        PlanError: the key, and where to write it.
    """
    strange = {key: value for key, value in table.items() if key not in set(keys)}
    for name in [*strange, *flattened(strange)]:
        for where, own in _TABLES.items():
            if name in own and name != _AMBIGUOUS:
                raise (plan_key / name).wrong(f"this key does not belong here; write it {where}")

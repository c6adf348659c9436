"""Where a plan's brokers stand, and where its log partitions go: ``racks``, ``log_dirs`` and ``assignment``.

Without an assignment the cluster places replicas as it does, in different racks as far as it can (KIP-36). An
assignment by hand is not looked at: it leaves what a reassignment may leave.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.plan.model import Plan
from harness.plan.values import PlanKey, Table
from nemesis.roles import RoleKind, largest_rack
from workloads import shown

#: The family that hits racks.
_RACK = RoleKind.RACK.value


def racks_in(table: Table, brokers: int, place: PlanKey) -> tuple[str, ...]:
    """The rack of each broker, in their order; empty where the plan names none.

    Raises:
        PlanError: they are no names, or not one for each broker.
    """
    racks, place = table.get("racks", []), place / "racks"
    if not isinstance(racks, list) or not all(isinstance(rack, str) and rack for rack in racks):
        raise place.wrong(f'takes a list of names, such as ["a", "b", "c"], not {shown(racks)}')
    if racks and len(racks) != brokers:
        raise place.wrong(f"names the racks of {len(racks)} brokers and the plan has {brokers}; name one for each")
    return tuple(racks)


def assignment_in(table: Table, brokers: int, place: PlanKey) -> tuple[tuple[int, ...], ...]:
    """The brokers of each log partition, the preferred leader first; empty where the cluster places them.

    Raises:
        PlanError: they are no lists of different brokers.
    """
    rows, place = table.get("assignment", []), place / "assignment"
    if not isinstance(rows, list) or not all(isinstance(row, list) and row for row in rows):
        raise place.wrong(f"takes a list of brokers for each log partition, such as [[0, 1, 2]], not {shown(rows)}")
    for row in rows:
        if len({*map(str, row)}) < len(row) or not all(type(node) is int and 0 <= node < brokers for node in row):
            raise place.wrong(f"{shown(row)} are no different brokers; they are numbered from 0 to {brokers - 1}")
    return tuple(map(tuple, rows))


def check_placement(plan: Plan, place: PlanKey) -> None:
    """Refuse racks and assignments that do not go together with the rest of the plan.

    Raises:
        PlanError: one sentence.
    """
    if any(_RACK in family.split("+") for family in plan.families):
        _check_racks(plan, place / "racks")
    for world in plan.worlds:
        if plan.log_dirs > 1 and not world.world.virtual_time:
            raise (place / "log_dirs").wrong(
                f"brokers of the {world.world.name} world have one log directory; leave it out"
            )
        if world.world.host_name == "existing" and (plan.racks or plan.assignment):
            key = "racks" if plan.racks else "assignment"
            raise (place / key).wrong("a cluster that exists already brings its own; leave it out")
        if plan.assignment and len(plan.assignment) != world.workload.partitions:
            raise (place / "assignment").wrong(
                f"has {len(plan.assignment)} log partitions and the workload {world.workload.partitions}; "
                "name the brokers of each"
            )
    factors = {choice.settings["replication.factor"] for choice in plan.choices}
    if plan.assignment and {*map(len, plan.assignment)} != factors:
        raise (place / "assignment").wrong(f"needs replication.factor={_shown(factors)} brokers for each log partition")


def _check_racks(plan: Plan, place: PlanKey) -> None:
    if not plan.racks:
        raise place.wrong(f'the family {_RACK} hits racks; name one for each broker, such as ["a", "b", "c"]')
    stopped = largest_rack(plan.racks)
    for world in plan.worlds:
        if stopped > world.faults.dead_brokers_max:
            raise place.wrong(
                f"the largest rack stops {stopped} brokers at one time; raise "
                f"dead_brokers_max={world.faults.dead_brokers_max}"
            )


def _shown(factors: Iterable[int]) -> str:
    return " and ".join(map(str, sorted(factors)))

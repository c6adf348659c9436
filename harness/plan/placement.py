"""Refuses racks of a plan's brokers, log directories and assignments of log partitions that cannot be.

Without an assignment the cluster places replicas as it does, in different racks as far as it can (KIP-36). An
assignment by hand may ignore racks, as a reassignment may.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.plan.model import Plan
from harness.plan.values import PlanKey
from nemesis.roles import RoleKind, largest_rack
from workloads import shown

#: The family that hits racks.
_RACK = RoleKind.RACK.value


def check_placement(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse racks and assignments that do not go together with the rest of the plan."""
    if any(_RACK in family.split("+") for family in plan.families):
        _check_racks(plan, plan_key / "racks")
    if plan.racks and len(plan.racks) != plan.brokers:
        raise (plan_key / "racks").wrong(
            f"names the racks of {len(plan.racks)} brokers and the plan has {plan.brokers}; name one for each"
        )
    for row in plan.assignment:
        if len({*map(str, row)}) < len(row) or not all(type(node) is int and 0 <= node < plan.brokers for node in row):
            raise (plan_key / "assignment").wrong(
                f"{shown(row)} does not name different brokers; write numbers from 0 to {plan.brokers - 1}, each once"
            )
    for world in plan.worlds:
        if plan.log_dirs > 1 and not world.world.virtual_time:
            raise (plan_key / "log_dirs").wrong(
                f"brokers of the {world.world.name} world have one log directory; leave it out"
            )
        if world.world.host_name == "existing" and (plan.racks or plan.assignment):
            key = "racks" if plan.racks else "assignment"
            raise (plan_key / key).wrong("a cluster that exists already has its own; leave this key out")
        if plan.assignment and len(plan.assignment) != world.workload.partitions:
            raise (plan_key / "assignment").wrong(
                f"has {len(plan.assignment)} log partitions and the workload {world.workload.partitions}; "
                "name the brokers of each"
            )
    factors = {choice.settings["replication.factor"] for choice in plan.choices}
    if plan.assignment and {*map(len, plan.assignment)} != factors:
        raise (plan_key / "assignment").wrong(
            f"each log partition needs as many brokers as replication.factor ({_shown(factors)}); change one of the two"
        )


def _check_racks(plan: Plan, plan_key: PlanKey) -> None:
    if not plan.racks:
        raise plan_key.wrong(f'the family {_RACK} hits racks; name one for each broker, such as ["a", "b", "c"]')
    stopped = largest_rack(plan.racks)
    for world in plan.worlds:
        if stopped > world.faults.dead_brokers_max:
            raise plan_key.wrong(
                f"the largest rack has {stopped} brokers; raise dead_brokers_max from {world.faults.dead_brokers_max}"
            )


def _shown(factors: Iterable[object]) -> str:
    return " and ".join(sorted(map(str, factors)))

"""Refuses plans whose consumer groups, or whose coordinators under faults, cannot be as they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.plan.model import Plan, WorldPlan
from harness.plan.traits import GROUPED, TRANSACTIONAL, Trait, workloads_with
from harness.plan.values import PlanKey
from harness.plan.worlds import RealTime
from nemesis.roles import RoleKind
from workloads import kind_of

#: By the family that strikes it, a coordinator in words, and the trait of workloads that have one.
_COORDINATORS: Final[Mapping[str, tuple[str, Trait]]] = {
    RoleKind.COORDINATOR.value: ("the coordinator of a group", GROUPED),
    RoleKind.TRANSACTION_COORDINATOR.value: ("the coordinator of transactions", TRANSACTIONAL),
}


def check_groups(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse groups without members, of a protocol or with a patience that they cannot have, and coordinators of none.

    Raises:
        PlanError: one sentence.
    """
    for world in plan.worlds:
        here = plan_key / "worlds" / world.world.name
        _refuse_no_coordinator(plan, world, plan_key / "families")
        if kind_of(world.workload).grouped:
            _refuse_no_member(world, here / "workload")
            _refuse_static(world, here / "workload")
            _refuse_protocol(plan, world, here)
            _refuse_patience(plan, world, plan_key)


def _refuse_no_coordinator(plan: Plan, world: WorldPlan, plan_key: PlanKey) -> None:
    for family in dict.fromkeys("+".join(plan.families).split("+")):
        words, trait = _COORDINATORS.get(family, ("", None))
        kind = kind_of(world.workload)
        # An application may read as a group, and write in transactions: what it does not have, no fault hits.
        if trait and plan.schedule is None and not (trait(kind) or kind.applied):
            raise plan_key.wrong(
                f'{family} strikes {words}, and the workload "{world.workload.name}" has none; choose '
                f"{workloads_with(trait)}, or leave the family out"
            )


def _refuse_no_member(world: WorldPlan, plan_key: PlanKey) -> None:
    if world.workload.consumers == 0:
        raise (plan_key / "consumers").wrong(
            f'0 is too small; the members of the group of "{world.workload.name}" are its consumers: write at least 1'
        )


def _refuse_static(world: WorldPlan, plan_key: PlanKey) -> None:
    if world.workload.static_members and world.world.reference:
        raise (plan_key / "static_members").wrong(
            "the reference broker has no static members (KIP-345); leave it out, or write it under [worlds.kafka]"
        )


def _refuse_patience(plan: Plan, world: WorldPlan, plan_key: PlanKey) -> None:
    """Refuse to wait longer for a member that has died than a run waits for the group in the end."""
    workload = world.workload
    for session_ms in {choice.settings["session.timeout.ms"] for choice in plan.choices}:
        if isinstance(session_ms, int) and workload.member_change_ms and session_ms * 2 > workload.drain_limit_ms:
            raise (plan_key / "settings").wrong(
                f"session.timeout.ms={session_ms} is more than half of drain_limit_ms={workload.drain_limit_ms}, so a "
                "member that died may keep its log partitions until the run ends; lower the first or raise the second"
            )


def _refuse_protocol(plan: Plan, world: WorldPlan, plan_key: PlanKey) -> None:
    """Refuse members of a protocol that their brokers do not have, or that their library does not know."""
    chosen = {choice.settings["group.protocol"] for choice in plan.choices}
    if not chosen.issubset(world.world.protocols):
        raise plan_key.wrong(
            'brokers over sockets have no group.protocol="consumer" (KIP-848); write group.protocol = "classic" under '
            f"[settings], or leave [worlds.{world.world.name}] out"
        )
    if isinstance(world.world, RealTime) and chosen != {"classic"}:
        _refuse_kafka_python(world.world, plan_key)


def _refuse_kafka_python(world: RealTime, plan_key: PlanKey) -> None:
    """Refuse kafka-python among the clients of members that speak KIP-848."""
    others = [client for client, _ in getattr(world, "other_clients", ())]
    for key, names, instead in (
        ("client", [world.client], '"confluent-kafka"'),
        ("other_clients", others, '["confluent-kafka"]'),
    ):
        if "kafka-python" in names:
            raise (plan_key / key).wrong(
                f'kafka-python has no group.protocol="consumer" (KIP-848); write {key} = {instead}, or leave this '
                "protocol out"
            )

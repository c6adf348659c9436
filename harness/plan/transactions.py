"""Refuses plans whose workload writes in transactions with settings that clients, or brokers, refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.plan.model import Plan
from harness.plan.values import PlanKey
from harness.plan.worlds import Processes
from workloads import ACKS_ALL, IDEMPOTENCE, Settings, kind_of, shown

#: The version of transactions that brokers of the world of processes offer to clients.
_OVER_SOCKETS: Final = 1


def check_transactions(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse a workload of transactions with settings with which no client makes a producer of them."""
    for world in plan.worlds:
        if not kind_of(world.workload).transactional:
            continue
        every_settings = [
            Settings.from_mapping(choice.settings_in(world.world, transactional=True)) for choice in plan.choices
        ]
        reasons = list(filter(None, map(_why_not, every_settings)))
        if 0 < len(reasons) < len(every_settings):
            raise (plan_key / "matrix").wrong(f"{reasons[0]}, or exclude the combination with [[matrix.exclude]]")
        if reasons:
            raise (plan_key / "settings").wrong(reasons[0])
        for choice, settings in zip(plan.choices, every_settings, strict=True):
            if kind_of(world.workload).reading == "pipeline":
                _refuse_modes(choice.settings, world.workload.name, plan_key)
            if isinstance(world.world, Processes) and settings.transaction_version != _OVER_SOCKETS:
                raise (plan_key / "settings").wrong(
                    f"transaction.version={settings.transaction_version} is not what brokers of [worlds.processes] "
                    f"offer; write transaction.version = {_OVER_SOCKETS}, or leave that world out"
                )


def _refuse_modes(settings: Mapping[str, object], workload: str, plan_key: PlanKey) -> None:
    """Refuse what would let the members of a pipeline pass over records: its transactions commit, and it reads all."""
    for name, needed, why in (
        ("commit.mode", "after-processing", "transactions commit"),
        ("auto.offset.reset", "earliest", "every record has to be read"),
    ):
        if settings[name] != needed:
            raise (plan_key / "settings").wrong(
                f'{name}={shown(settings[name])} is of the workload "groups"; in "{workload}" {why}, so take its line '
                "out"
            )


def _why_not(settings: Settings) -> str:
    """The reason why a client makes no producer with a transactional id; "" where it makes one."""
    if settings.acks != ACKS_ALL:
        return f'transactions need acks="all", not {settings.acks}; take its line out, or take another workload'
    if obstacle := settings.against_idempotence:
        return f"transactions need {IDEMPOTENCE}=true, which {obstacle}; take its line out, or take another workload"
    if not settings.enable_idempotence:
        return f"transactions need {IDEMPOTENCE}=true; take its line out, or take another workload"
    if settings.delivery_timeout_ms >= settings.transaction_timeout_ms:
        return (
            f"delivery.timeout.ms={settings.delivery_timeout_ms} is not less than "
            f"transaction.timeout.ms={settings.transaction_timeout_ms}, so a write could outlive its transaction; "
            "lower the first or raise the second"
        )
    return ""

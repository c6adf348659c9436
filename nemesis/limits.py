"""The faults of a run that cannot be done where capabilities are lacking, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nemesis.cluster import Capability
from nemesis.faults import Fault
from nemesis.plan import FaultPlan
from nemesis.scenarios import FAMILIES, Scenario, scenarios_named, strikes_of
from nemesis.schedule import Schedule


class Limit(msgspec.Struct, frozen=True):
    """Faults of one family that would be skipped: their ``kinds``, the ``scenarios`` that have them, and why.

    ``nothing_left``: no fault that the family is about can be done, so its cells can never be exercised.
    """

    family: str
    kinds: tuple[str, ...]
    scenarios: tuple[str, ...]
    why: str
    nothing_left: bool


class _Planned(NamedTuple):
    """A fault that a run may have, with its scenario; its family ``strikes`` with it, or prepares for another by it."""

    scenario: str
    fault: Fault
    strikes: bool


def limits(plan: FaultPlan, schedule: Schedule | None, lacks: Mapping[Capability, str]) -> Iterator[Limit]:
    """The faults of each family of ``plan`` that cannot be done where ``lacks`` are lacking.

    ``schedule`` has exactly the faults of the run; None where they are drawn from the families.
    """
    for family in plan.families:
        planned = _given(schedule, family) if schedule is not None else _drawn(plan, family)
        skipped = [(fault, why) for fault in planned if (why := _why_not(fault.fault, lacks))]
        if not skipped:
            continue
        about = [fault for fault in planned if fault.strikes]
        yield Limit(
            family=family,
            kinds=tuple(dict.fromkeys(fault.fault.kind for fault, _ in skipped)),
            scenarios=tuple(dict.fromkeys(fault.scenario for fault, _ in skipped)),
            why=next((why for fault, why in skipped if fault.strikes), skipped[0][1]),
            nothing_left=bool(about) and all(_why_not(fault.fault, lacks) for fault in about),
        )


def _drawn(plan: FaultPlan, family: str) -> Sequence[_Planned]:
    scenarios: Sequence[Scenario] = FAMILIES[family].scenarios
    if plan.scenarios:
        scenarios = [scenario for word in plan.scenarios for _, scenario in scenarios_named(word, [family])]
    about = strikes_of(family)
    return [
        _Planned(scenario.name, fault, fault.kind in about) for scenario in scenarios for fault in scenario.faults()
    ]


def _given(schedule: Schedule, family: str) -> Sequence[_Planned]:
    about = strikes_of(family)
    steps = [step for step in schedule.steps if step.family == family]
    return [_Planned(step.scenario, step.fault, step.fault.kind in about) for step in steps]


def _why_not(fault: Fault, lacks: Mapping[Capability, str]) -> str:
    return next((lacks[need] for need in fault.needs if need in lacks), "")

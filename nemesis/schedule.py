"""A run's faults on a time axis: groups of overlapping faults, and between groups a window in which all is well.

A schedule is data, drawn before the run, so that it can be printed, stored, replayed and shrunk. Every performance of
a scenario has draws of its own: one scenario more or less changes nothing in the others. Whom a fault hits is decided
when it fires (:mod:`nemesis.roles`). After the last group everything is healed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from nemesis.faults import AnyFault
from nemesis.plan import FAULTS_MAX, FaultPlan
from nemesis.roles import most_holders
from nemesis.scenarios import FAMILIES, Draw, Part, Scenario, Scene, Timings, scenarios_named

Item = TypeVar("Item")


class ScheduledFault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault of a schedule, in milliseconds from the begin of the break phase.

    Those of one ``group`` are one ``scenario``; files call it "story".
    """

    begin_ms: int
    end_ms: int
    group: int
    family: str
    scenario: str = msgspec.field(name="story")
    fault: AnyFault


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Every fault in order of its begin; at ``healed_ms`` everything is healed for good."""

    steps: tuple[ScheduledFault, ...]
    healed_ms: int

    def groups(self) -> list[tuple[int, int]]:
        """Begin and end of every group, in order of time."""
        spans: dict[int, tuple[int, int]] = {}
        for step in self.steps:
            begin_ms, end_ms = spans.get(step.group, (step.begin_ms, step.end_ms))
            spans[step.group] = (min(begin_ms, step.begin_ms), max(end_ms, step.end_ms))
        return list(spans.values())

    def describe(self) -> str:
        """A line a step, for people."""
        lines = [
            f"{step.begin_ms / 1000:7.2f}-{step.end_ms / 1000:.2f} s  {step.family}/{step.scenario}: {_of(step.fault)}"
            for step in self.steps
        ]
        return "\n".join([*lines, f"{self.healed_ms / 1000:7.2f} s  everything is healed"])


def draw_schedule(
    plan: FaultPlan,
    *,
    timings: Timings,
    brokers: int,
    partitions: int,
    duration_ms: int,
    draw: Draw,
    rack_size: int = 1,
) -> Schedule:
    """A schedule of whole scenarios, at least ``plan.count`` faults if they fit in ``duration_ms``.

    Rounds follow each other: in each, every family performs one scenario, the families in a drawn order. The first
    round has their signatures, the others their other scenarios in a drawn order, round and round. So a short schedule
    is about other families in each run. Families that go on beside the others have no part in it. Where the plan
    chooses ``scenarios``, these are performed instead, in its order and each at least once. A scenario that
    does not fit any more, or is above the budget, is passed over; ``rack_size`` is the most brokers of a rack. A wrong
    family is the reader of plans' business: it is a KeyError here.
    """
    scene = Scene(
        draw=draw,
        timings=timings,
        fault_ms_min=plan.fault_ms_min,
        fault_ms_max=plan.fault_ms_max,
        brokers=brokers,
        partitions=partitions,
    )
    performances: Counter[str] = Counter()
    steps: list[ScheduledFault] = []
    at_ms, passed_over, performed = plan.healed_ms_min, 0, 0
    count = min(plan.count, FAULTS_MAX)
    order, once = _order(plan, draw)
    while order and (len(steps) < count or performed < once) and passed_over < len(order):
        family, scenario = order[performed % len(order)]
        performed += 1
        name = f"{family}/{scenario.name}"
        performances[name] += 1
        parts = scenario.parts(scene.of(f"{name} {performances[name]}"))
        length_ms = max(part.end_ms for part in parts)
        if at_ms + length_ms > duration_ms or most_stopped(parts, brokers, rack_size) > plan.dead_brokers_max:
            passed_over += 1
            continue
        steps += _placed(parts, at_ms, steps[-1].group + 1 if steps else 0, family, scenario)
        at_ms += length_ms + plan.healed_ms_min
        passed_over = 0
    return Schedule(steps=tuple(steps), healed_ms=duration_ms)


def most_stopped(parts: Iterable[Part | ScheduledFault], brokers: int, rack_size: int = 1) -> int:
    """The number of brokers that ``parts`` may have dead or frozen at one time, at most."""
    stopping = [part for part in parts if part.fault.stops_brokers]
    together = (
        sum(
            most_holders(other.fault.role, brokers, rack_size)
            for other in stopping
            if other.begin_ms <= part.begin_ms < other.end_ms
        )
        for part in stopping
    )
    return max(together, default=0)


def _order(plan: FaultPlan, draw: Draw) -> tuple[list[tuple[str, Scenario]], int]:
    """The scenarios in the order of their performance, and how many of them are performed whatever the count is."""
    if plan.scenarios:
        chosen = [named for word in plan.scenarios for named in scenarios_named(word, plan.families)]
        return chosen, len(chosen)
    return _drawn_order([name for name in plan.families if not FAMILIES[name].beside], draw), 0


def _drawn_order(families: Sequence[str], draw: Draw) -> list[tuple[str, Scenario]]:
    """Rounds of one scenario of each family, the signatures first; a family with few of them repeats them sooner."""
    in_turn = _shuffled(families, "order of families", draw)
    # Scenarios had another name once; another label would draw another order from the same seed.
    scenarios = {
        family: [FAMILIES[family].scenarios[0], *_shuffled(FAMILIES[family].scenarios[1:], "order of stories", draw)]
        for family in in_turn
    }
    rounds = max(map(len, scenarios.values()), default=0)
    return [(family, own[turn % len(own)]) for turn in range(rounds) for family, own in scenarios.items()]


def _shuffled(items: Sequence[Item], label: str, draw: Draw) -> list[Item]:
    """All of them in a drawn order (Fisher and Yates)."""
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        chosen = draw(label, last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order


def _placed(parts: Iterable[Part], at_ms: int, group: int, family: str, scenario: Scenario) -> list[ScheduledFault]:
    return [
        ScheduledFault(
            begin_ms=at_ms + part.begin_ms,
            end_ms=at_ms + part.end_ms,
            group=group,
            family=family,
            scenario=scenario.name,
            fault=part.fault,
        )
        for part in sorted(parts, key=lambda part: part.begin_ms)
    ]


def _of(fault: AnyFault) -> str:
    shape = getattr(fault, "shape", None)
    return f"{fault.kind} {fault.role}" if shape is None else f"{fault.kind} {shape} around {fault.role}"

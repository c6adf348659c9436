"""The list form of a run: a schedule and a list instead of drawn faults and generated writes, and changes of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec

from harness.lab.search.judged_run import JudgedRun
from harness.plan import RunSpec
from nemesis.roles import Role, RoleKind
from nemesis.schedule import Schedule, ScheduledFault
from workloads import LISTED, PlannedWrite, kind_of

#: The warm-up of a run with a workload is a multiple of this (:data:`harness.runs.run.scheduled.LOOK_EVERY_MS`).
WARM_UP_STEP_MS: Final = 50
#: Roles whose pick is the number of a broker.
_BY_NUMBER: Final = (RoleKind.NAMED, RoleKind.BROKER)


def operations_of(spec: RunSpec) -> Sequence[PlannedWrite]:
    """The writes of the run's workload: those that are listed, or due in its break phase."""
    if spec.workload.name == LISTED:
        return spec.workload.writes
    end_us = spec.workload.duration_ms * 1000
    due = takewhile(lambda write: write.due_us < end_us, kind_of(spec.workload).writes(spec.workload))
    return tuple(
        PlannedWrite(due_us=w.due_us, producer=w.producer, partition=w.partition, key=w.key.decode()) for w in due
    )


def in_list_form(run: JudgedRun) -> Iterator[RunSpec]:
    """Ways to write the run down with listed writes, the likeliest first; its faults come as much later as they did."""
    spec, schedule = run.spec, run.schedule
    if spec.workload.name == LISTED:
        return
    warm_up_ms = 0
    if run.receipts:
        first = run.receipts[0]
        since_ms = first.begun_us // 1000 - schedule.steps[first.sequence].begin_ms
        warm_up_ms = since_ms // WARM_UP_STEP_MS * WARM_UP_STEP_MS
    for later_ms in dict.fromkeys((warm_up_ms, max(0, warm_up_ms - WARM_UP_STEP_MS), 0, warm_up_ms + WARM_UP_STEP_MS)):
        workload = msgspec.structs.replace(spec.workload, duration_ms=spec.workload.duration_ms + later_ms)
        longer = msgspec.structs.replace(spec, workload=workload)
        moved = [
            msgspec.structs.replace(step, begin_ms=step.begin_ms + later_ms, end_ms=step.end_ms + later_ms)
            for step in schedule.steps
        ]
        yield with_writes(with_steps(longer, moved), operations_of(longer))


def with_steps(spec: RunSpec, steps: Sequence[ScheduledFault]) -> RunSpec:
    """``spec`` with exactly these faults."""
    return msgspec.structs.replace(spec, schedule=Schedule(steps=tuple(steps), healed_ms=spec.workload.duration_ms))


def with_writes(spec: RunSpec, writes: Sequence[PlannedWrite]) -> RunSpec:
    """``spec`` with exactly these writes."""
    return with_workload(spec, name=LISTED, writes=tuple(writes))


def with_workload(spec: RunSpec, **numbers: Any) -> RunSpec:
    """``spec`` with other numbers of its workload."""
    return msgspec.structs.replace(spec, workload=msgspec.structs.replace(spec.workload, **numbers))


def with_roles(spec: RunSpec, change: Callable[[Role], Role]) -> RunSpec:
    """``spec`` with the roles of its faults changed."""
    return with_steps(spec, [with_role(step, change(step.fault.role)) for step in steps_of(spec)])


def with_role(step: ScheduledFault, role: Role) -> ScheduledFault:
    """``step`` with another role."""
    return msgspec.structs.replace(step, fault=msgspec.structs.replace(step.fault, role=role))


def steps_of(spec: RunSpec) -> tuple[ScheduledFault, ...]:
    """The faults of a run that has them as data."""
    return spec.schedule.steps if spec.schedule is not None else ()


def with_one_partition(spec: RunSpec, partition: int) -> Iterator[RunSpec]:
    """Ways to write to the log partition at that position only, which is then the only one.

    The first log partition's leader is another broker than others' are: roles by number are turned round as well, and
    at last the brokers of this one are kept, first the one that leads it where the cluster places it.
    """
    mine = tuple(
        msgspec.structs.replace(write, partition=0) for write in operations_of(spec) if write.partition == partition
    )
    alone = with_workload(spec, topics=1, partitions=1, writes=mine)
    if spec.assignment:
        alone = msgspec.structs.replace(alone, assignment=(spec.assignment[partition % len(spec.assignment)],))
    if not mine:
        return
    for turned in dict.fromkeys((0, partition % spec.brokers)):
        yield with_roles(alone, lambda role, by=turned: _in_first(role, by, spec.brokers))  # type: ignore[misc]
    if not spec.assignment and partition % spec.brokers:
        replicas = (partition + position for position in range(spec.chosen().replication_factor))
        kept = msgspec.structs.replace(alone, assignment=(tuple(node % spec.brokers for node in replicas),))
        yield with_roles(kept, lambda role: _in_first(role, 0, spec.brokers))


def _in_first(role: Role, turned: int, brokers: int) -> Role:
    """The role in the first log partition, that of a broker by number turned round by ``turned``."""
    number = (role.pick - turned) % brokers if role.kind in _BY_NUMBER and turned else role.pick
    return Role(role.kind, 0, number)


# --- times -----------------------------------------------------------------------------------------------------------


def moments_of(spec: RunSpec) -> list[int]:
    """Every moment in microseconds at which something happens that was planned, the end of the phase last."""
    moments = {1000 * time_ms for step in steps_of(spec) for time_ms in (step.begin_ms, step.end_ms)}
    moments |= {write.due_us for write in spec.workload.writes}
    end_us = spec.workload.duration_ms * 1000
    return [*sorted(moments - {end_us}), end_us]


def retimed(spec: RunSpec, moments: Sequence[int]) -> RunSpec:
    """``spec`` with other moments in place of :func:`moments_of`; whole milliseconds where faults begin and end."""
    new = dict(zip(moments_of(spec), moments, strict=True))
    end_ms = -(-moments[-1] // 1000)
    writes = tuple(msgspec.structs.replace(write, due_us=new[write.due_us]) for write in spec.workload.writes)
    new_ms = {old_us // 1000: us // 1000 for old_us, us in new.items() if old_us % 1000 == 0}
    steps = [
        msgspec.structs.replace(step, begin_ms=new_ms[step.begin_ms], end_ms=new_ms[step.end_ms])
        for step in steps_of(spec)
    ]
    return with_steps(with_workload(spec, duration_ms=end_ms, writes=writes), steps)

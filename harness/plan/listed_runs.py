"""Runs as data: exactly these faults (``[[schedule]]``) and exactly these writes (``[[writes]]``), nothing drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from harness.plan.file_form import ScheduleEntry, WriteEntry
from harness.plan.model import Plan, WorldPlan
from harness.plan.values import PlanKey, Table, key_of, known_keys, of_kind, table_at, tables_at, value_at
from nemesis.faults import FAULTS, AnyFault, Fault
from nemesis.roles import Role, RoleKind, largest_rack
from nemesis.schedule import FAULTS_MAX, ScheduledFault, most_stopped
from workloads import LISTED, PlannedWrite, WorkloadPlan, shown, unknown_name

#: The scenario of an entry that does not name one.
GIVEN: Final = "given"
#: The name of the key ``scenario`` in older plans.
OLDER_KEY: Final = "story"
#: Other names for the fields of a fault whose own name its role takes.
RENAMED: Final = {("corruptrecord", "pick"): "record"}
#: Keys that a listed workload does not need, because every write says it.
_OF_GENERATORS: Final = ("name", "writes_per_second", "keys", "skew")
_KINDS: Final[Mapping[str, type[Fault]]] = {kind.kind: kind for kind in FAULTS}


def schedule_in(
    table: Table, families: tuple[str, ...], brokers: int, plan_key: PlanKey
) -> tuple[ScheduledFault, ...] | None:
    """The faults that a plan gives, in its order; None where it leaves them to chance.

    Raises:
        PlanError: an entry is wrong, or the plan has more than one family.
    """
    if "schedule" not in table:
        return None
    entries = tables_at(table, "schedule", plan_key)
    if len(entries) > FAULTS_MAX:
        raise (plan_key / "schedule").wrong(f"{len(entries)} faults are too many; the most is {FAULTS_MAX}")
    if len(families) != 1:
        raise (plan_key / "families").wrong('a [[schedule]] has one family; write one, such as ["kill+partition"]')
    steps = [_step(entry, families[0].split("+"), brokers, here) for here, entry in entries]
    pairs = zip(steps, overlapping_groups(steps), strict=True)
    return tuple(step if step.group >= 0 else msgspec.structs.replace(step, group=group) for step, group in pairs)


def writes_in(table: Table, plan_key: PlanKey) -> tuple[PlannedWrite, ...] | None:
    """The writes that a plan gives, in its order; None where a workload makes them.

    Raises:
        PlanError: an entry is wrong, or the list is empty.
    """
    if "writes" not in table:
        return None
    entries = tables_at(table, "writes", plan_key)
    if not entries:
        raise (plan_key / "writes").wrong("this list is empty, and a run without a write shows nothing; leave it out")
    return tuple(_write(entry, here) for here, entry in entries)


def listed(
    workload: WorkloadPlan, writes: tuple[PlannedWrite, ...] | None, tables: Mapping[PlanKey, Table]
) -> WorkloadPlan:
    """``workload`` with exactly ``writes``, where they are given; ``tables`` are those with what the plan says of it.

    Raises:
        PlanError: a write names a log partition or a producer that does not exist, or is later than the break phase.
    """
    if writes is None:
        return workload
    for plan_key, table in tables.items():
        for key in _OF_GENERATORS:
            if key in table_at(table, "workload", plan_key):
                raise (plan_key / "workload" / key).wrong("the plan lists its writes ([[writes]]); leave this key out")
    file = next(iter(tables)).file
    for number, write in enumerate(writes):
        here = PlanKey(file, f"writes[{number}]")
        for key, bound in (("partition", len(workload.log_partitions)), ("producer", workload.producers)):
            if (value := getattr(write, key)) >= bound:
                raise (here / key).wrong(_absent(key, value, bound))
        if write.due_us >= workload.duration_ms * 1000:
            raise (here / "at_ms").wrong(
                f"{write.due_us / 1000:g} is after the end of the writes; raise duration_ms from {workload.duration_ms}"
            )
    in_order = tuple(sorted(writes, key=lambda write: write.due_us))
    return msgspec.structs.replace(workload, name=LISTED, writes=in_order)


def check_given(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse given faults that do not fit a world: its time, its log partitions, its budget.

    Raises:
        PlanError: one sentence.
    """
    if plan.schedule is None:
        if plan.chance == "none":
            raise (plan_key / "chance").wrong("without chance no fault is drawn; list the faults under [[schedule]]")
        return
    for world in plan.worlds:
        here = plan_key / f"worlds.{world.world.name}"
        _check_fit(plan.schedule, world, plan_key)
        if world.faults.scenarios:
            raise (here / "faults.scenarios").wrong("the plan gives its faults ([[schedule]]); leave this key out")
        stopped = most_stopped(plan.schedule, plan.brokers, largest_rack(plan.racks))
        if stopped > world.faults.dead_brokers_max:
            raise (plan_key / "schedule").wrong(
                f"{stopped} brokers are stopped at once; raise dead_brokers_max from {world.faults.dead_brokers_max}"
            )


def _check_fit(schedule: tuple[ScheduledFault, ...], world: WorldPlan, plan_key: PlanKey) -> None:
    for number, step in enumerate(schedule):
        here = PlanKey(plan_key.file, f"schedule[{number}]")
        if step.end_ms > world.workload.duration_ms:
            raise (here / "end_ms").wrong(
                f"{step.end_ms} is after the end of the writes; raise duration_ms from {world.workload.duration_ms}"
            )
        partitions = len(world.workload.log_partitions)
        if step.fault.role.partition >= partitions:
            raise (here / "partition").wrong(_absent("partition", step.fault.role.partition, partitions))


def _absent(noun: str, number: int, count: int) -> str:
    """A sentence for the number of a partition or producer that the workload does not have."""
    have = f"{noun}s 0 to {count - 1}" if count > 1 else f"only {noun} 0"
    return f"{noun} {number} does not exist; the workload has {have}"


def _step(entry: Table, families: list[str], brokers: int, plan_key: PlanKey) -> ScheduledFault:
    kind: str = _required(entry, "fault", str, plan_key)
    if kind not in _KINDS:
        raise (plan_key / "fault").wrong(unknown_name("fault", kind, _KINDS))
    fields = msgspec.structs.fields(_KINDS[kind])
    own = {RENAMED.get((kind, field.name), field.name): field for field in fields if field.name != "role"}
    plain = {key: value for key, value in entry.items() if key != OLDER_KEY}
    known_keys(plain, [*ScheduleEntry.__struct_fields__, *own], plan_key)
    if missing := [key for key, field in own.items() if field.required and key not in entry]:
        raise plan_key.wrong(f"a fault {shown(kind)} needs {' and '.join(missing)}; add {missing[0]} = ...")
    given = {field.name: of_kind(entry[key], field.type, plan_key / key) for key, field in own.items() if key in entry}
    fault = msgspec.convert({"kind": kind, "role": _role(entry, brokers, plan_key), **given}, AnyFault)
    begin_ms, end_ms = (_required(entry, key, int, plan_key) for key in ("begin_ms", "end_ms"))
    if end_ms < begin_ms:
        raise (plan_key / "end_ms").wrong(f"{end_ms} is before begin_ms={begin_ms}; raise end_ms")
    key = key_of(entry, "scenario", OLDER_KEY, plan_key)
    family, _, name = value_at(entry, key, str, f"{families[0]}/{GIVEN}", plan_key).partition("/")
    if family not in families or not name:
        raise (plan_key / key).wrong(f'write FAMILY/NAME with a family of the plan: "{families[0]}/{GIVEN}"')
    group = value_at(entry, "group", int, -1, plan_key)
    return ScheduledFault(begin_ms=begin_ms, end_ms=end_ms, group=group, family=family, scenario=name, fault=fault)


def _role(entry: Table, brokers: int, plan_key: PlanKey) -> Role:
    """The target of a fault: the broker of ``broker = 1``, or the holder of a role in a log partition."""
    partition: int = value_at(entry, "partition", int, 0, plan_key)
    if "broker" in entry:
        if other := [key for key in ("role", "pick") if key in entry]:
            raise (plan_key / other[0]).wrong("the fault names its broker; leave this key out")
        number: int = value_at(entry, "broker", int, 0, plan_key)
        if number >= brokers:
            raise (plan_key / "broker").wrong(
                f"broker {number} does not exist; the plan has brokers 0 to {brokers - 1}"
            )
        return Role(RoleKind.NAMED, partition, number)
    word: str = _required(entry, "role", str, plan_key)
    roles = {kind.value: kind for kind in RoleKind if kind is not RoleKind.NAMED}
    if word not in roles:
        raise (plan_key / "role").wrong(f'{unknown_name("role", word, roles)}; or write "broker = 0"')
    return Role(roles[word], partition, value_at(entry, "pick", int, 0, plan_key))


def _required(entry: Table, key: str, kind: object, plan_key: PlanKey) -> Any:
    if key not in entry:
        raise plan_key.wrong(f'"{key}" is missing; add {key} = ...')
    return value_at(entry, key, kind, None, plan_key)


def overlapping_groups(steps: Sequence[ScheduledFault]) -> list[int]:
    """For each step the number of its scenario, where those that overlap are one, from 0 in order of time."""
    groups: dict[int, int] = {}
    end_ms, group = -1, -1
    for index, step in sorted(enumerate(steps), key=lambda pair: pair[1].begin_ms):
        group += step.begin_ms >= end_ms
        end_ms = max(end_ms, step.end_ms)
        groups[index] = group
    return [groups[index] for index in range(len(steps))]


def _write(entry: Table, plan_key: PlanKey) -> PlannedWrite:
    known_keys(entry, WriteEntry.__struct_fields__, plan_key)
    return PlannedWrite(
        due_us=round(_required(entry, "at_ms", float, plan_key) * 1000),
        producer=value_at(entry, "producer", int, 0, plan_key),
        partition=value_at(entry, "partition", int, 0, plan_key),
        key=value_at(entry, "key", str, "key-0", plan_key),
    )

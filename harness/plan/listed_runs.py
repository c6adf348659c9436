"""Runs as data: exactly these faults (``[[schedule]]``) and exactly these writes (``[[writes]]``), nothing drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from harness.plan.file_form import ScheduleEntry, WriteEntry
from harness.plan.model import Plan, WorldPlan
from harness.plan.values import PlanKey, Table, known_keys, of_kind, tables_at, value_at
from nemesis.faults import FAULTS, AnyFault, Fault
from nemesis.roles import Role, RoleKind, largest_rack
from nemesis.schedule import FAULTS_MAX, ScheduledFault, most_stopped
from workloads import LISTED, PlannedWrite, WorkloadPlan, shown, unknown_name

#: A story's name where an entry does not say which one it belongs to.
GIVEN: Final = "given"
#: Where a field of a fault has a name that its role takes.
RENAMED: Final = {("corruptrecord", "pick"): "record"}
#: What a listed workload does not need, because every write says it.
_OF_GENERATORS: Final = ("name", "writes_per_second", "keys")
_KINDS: Final[Mapping[str, type[Fault]]] = {kind.kind: kind for kind in FAULTS}


def schedule_in(
    table: Table, families: tuple[str, ...], brokers: int, place: PlanKey
) -> tuple[ScheduledFault, ...] | None:
    """The faults that a plan gives, in its order; None where it leaves them to chance.

    Raises:
        PlanError: an entry is none, or the plan has more families than one.
    """
    if "schedule" not in table:
        return None
    entries = tables_at(table, "schedule", place)
    if len(entries) > FAULTS_MAX:
        raise (place / "schedule").wrong(f"{len(entries)} faults are too many; the most is {FAULTS_MAX}")
    if len(families) != 1:
        raise (place / "families").wrong('a given schedule is of one family, for example ["kill+partition"]')
    steps = [_step(entry, families[0].split("+"), brokers, here) for here, entry in entries]
    pairs = zip(steps, overlapping_groups(steps), strict=True)
    return tuple(step if step.group >= 0 else msgspec.structs.replace(step, group=group) for step, group in pairs)


def writes_in(table: Table, place: PlanKey) -> tuple[PlannedWrite, ...] | None:
    """The writes that a plan gives, in its order; None where a workload makes them.

    Raises:
        PlanError: an entry is none, or a generator of writes is asked for besides.
    """
    if "writes" not in table:
        return None
    entries = tables_at(table, "writes", place)
    if not entries:
        raise (place / "writes").wrong("this list is empty, and a run without a write shows nothing; leave it out")
    return tuple(_write(entry, here) for here, entry in entries)


def listed(
    workload: WorkloadPlan, writes: tuple[PlannedWrite, ...] | None, tables: Mapping[PlanKey, Table]
) -> WorkloadPlan:
    """``workload`` with exactly ``writes``, where they are given; ``tables`` are those with what the plan says of it.

    Raises:
        PlanError: a write is of a log partition or a producer that is not there, or later than the break phase.
    """
    if writes is None:
        return workload
    for place, table in tables.items():
        for key in _OF_GENERATORS:
            if key in table.get("workload", {}):
                raise (place / "workload" / key).wrong("the plan lists its writes ([[writes]]); leave it out")
    file = next(iter(tables)).file
    for number, write in enumerate(writes):
        here = PlanKey(file, f"writes[{number}]")
        for key, bound in (("partition", workload.partitions), ("producer", workload.producers)):
            if (value := getattr(write, key)) >= bound:
                raise (here / key).wrong(_absent(key, value, bound))
        if write.due_us >= workload.duration_ms * 1000:
            raise (here / "at_ms").wrong(
                f"it is not before the end of the phase; raise duration_ms={workload.duration_ms}"
            )
    in_order = tuple(sorted(writes, key=lambda write: write.due_us))
    return msgspec.structs.replace(workload, name=LISTED, writes=in_order)


def check_given(plan: Plan, place: PlanKey) -> None:
    """Refuse given faults that do not fit a world: its time, its log partitions, its budget.

    Raises:
        PlanError: one sentence.
    """
    if plan.schedule is None:
        if plan.chance == "none":
            raise (place / "chance").wrong("without chance nothing is drawn; write the faults down ([[schedule]])")
        return
    for world in plan.worlds:
        here = place / f"worlds.{world.world.name}"
        _check_fit(plan.schedule, world, place)
        if world.faults.stories:
            raise (here / "faults.stories").wrong("the plan gives its faults ([[schedule]]); leave the stories out")
        stopped = most_stopped(plan.schedule, plan.brokers, largest_rack(plan.racks))
        if stopped > world.faults.dead_brokers_max:
            raise (place / "schedule").wrong(
                f"{stopped} brokers are stopped at one time; raise dead_brokers_max={world.faults.dead_brokers_max}"
            )


def _check_fit(schedule: tuple[ScheduledFault, ...], world: WorldPlan, place: PlanKey) -> None:
    for number, step in enumerate(schedule):
        here = PlanKey(place.file, f"schedule[{number}]")
        if step.end_ms > world.workload.duration_ms:
            raise (here / "end_ms").wrong(
                f"{step.end_ms} is after the end of the phase; raise duration_ms={world.workload.duration_ms}"
            )
        if step.fault.role.partition >= world.workload.partitions:
            raise (here / "partition").wrong(_absent("partition", step.fault.role.partition, world.workload.partitions))


def _absent(noun: str, number: int, count: int) -> str:
    """A sentence for a partition or producer of which the workload has fewer, from 0."""
    have = f"{noun}s 0 to {count - 1}" if count > 1 else f"only {noun} 0"
    return f"{noun} {number} does not exist; the workload has {have}"


def _step(entry: Table, families: list[str], brokers: int, place: PlanKey) -> ScheduledFault:
    kind: str = _required(entry, "fault", str, place)
    if kind not in _KINDS:
        raise (place / "fault").wrong(unknown_name("fault", kind, _KINDS))
    fields = msgspec.structs.fields(_KINDS[kind])
    own = {RENAMED.get((kind, field.name), field.name): field for field in fields if field.name != "role"}
    known_keys(entry, [*ScheduleEntry.__struct_fields__, *own], place)
    if missing := [key for key, field in own.items() if field.required and key not in entry]:
        raise place.wrong(f"a fault {shown(kind)} needs {' and '.join(missing)}; add {missing[0]} = ...")
    given = {field.name: of_kind(entry[key], field.type, place / key) for key, field in own.items() if key in entry}
    fault = msgspec.convert({"kind": kind, "role": _role(entry, brokers, place), **given}, AnyFault)
    begin_ms, end_ms = (_required(entry, key, int, place) for key in ("begin_ms", "end_ms"))
    if end_ms < begin_ms:
        raise (place / "end_ms").wrong(f"{end_ms} is before begin_ms={begin_ms}; raise it")
    family, _, name = value_at(entry, "story", str, f"{families[0]}/{GIVEN}", place).partition("/")
    if family not in families or not name:
        raise (place / "story").wrong(f'write FAMILY/NAME, of a family of the plan: "{families[0]}/{GIVEN}"')
    group = value_at(entry, "group", int, -1, place)
    return ScheduledFault(begin_ms=begin_ms, end_ms=end_ms, group=group, family=family, story=name, fault=fault)


def _role(entry: Table, brokers: int, place: PlanKey) -> Role:
    """Whom a fault means: ``broker = 1``, to which leadership of a log partition may be moved, or a role in one."""
    partition: int = value_at(entry, "partition", int, 0, place)
    if "broker" in entry:
        if other := [key for key in ("role", "pick") if key in entry]:
            raise (place / other[0]).wrong("the fault names its broker; leave it out")
        number: int = value_at(entry, "broker", int, 0, place)
        if number >= brokers:
            raise (place / "broker").wrong(f"broker {number} does not exist; the plan has brokers 0 to {brokers - 1}")
        return Role(RoleKind.NAMED, partition, number)
    word: str = _required(entry, "role", str, place)
    known = {kind.value: kind for kind in RoleKind if kind is not RoleKind.NAMED}
    if word not in known:
        raise (place / "role").wrong(f'{unknown_name("role", word, known)}; or write "broker = 0"')
    return Role(known[word], partition, value_at(entry, "pick", int, 0, place))


def _required(entry: Table, key: str, kind: object, place: PlanKey) -> Any:
    if key not in entry:
        raise place.wrong(f'there is no "{key}"')
    return value_at(entry, key, kind, None, place)


def overlapping_groups(steps: Sequence[ScheduledFault]) -> list[int]:
    """For each step the number of its story, where those that overlap are one, from 0 in order of time."""
    groups: dict[int, int] = {}
    end_ms, group = -1, -1
    for place, step in sorted(enumerate(steps), key=lambda pair: pair[1].begin_ms):
        group += step.begin_ms >= end_ms
        end_ms = max(end_ms, step.end_ms)
        groups[place] = group
    return [groups[place] for place in range(len(steps))]


def _write(entry: Table, place: PlanKey) -> PlannedWrite:
    known_keys(entry, WriteEntry.__struct_fields__, place)
    return PlannedWrite(
        due_us=round(_required(entry, "at_ms", float, place) * 1000),
        producer=value_at(entry, "producer", int, 0, place),
        partition=value_at(entry, "partition", int, 0, place),
        key=value_at(entry, "key", str, "key-0", place),
    )

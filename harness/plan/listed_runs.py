"""Runs as data: exactly these faults (``[[schedule]]``) and exactly these writes (``[[writes]]``), nothing drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec

from harness.plan.model import Plan, WorldPlan
from harness.plan.values import (
    PlanKey,
    Table,
    key_of,
    keys_of,
    known_keys,
    of_kind,
    other_than_default,
    record_of,
    value_of,
)
from nemesis.faults import FAULTS, AnyFault, Fault
from nemesis.plan import FAULTS_MAX
from nemesis.roles import Role, RoleKind, largest_rack
from nemesis.schedule import ScheduledFault, most_stopped
from workloads import LISTED, PlannedWrite, WorkloadPlan, shown, unknown_name

#: The scenario of an entry that does not name one.
GIVEN: Final = "given"
#: The name of the key ``scenario`` in older plans.
_OLDER_KEY: Final = "story"
_LACKING: Final = '"{key}" is missing; add {key} = ...'
#: Other names for the fields of a fault whose own name its role takes.
RENAMED: Final = {("corruptrecord", "pick"): "record"}
#: Keys that a listed workload does not need, because every write says it.
OF_GENERATORS: Final = ("name", "writes_per_second", "keys", "skew")
_KINDS: Final[Mapping[str, type[Fault]]] = {kind.kind: kind for kind in FAULTS}


class ScheduleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ``[[schedule]]``, beside the fields of its fault. It has a ``broker`` or a ``role``."""

    begin_ms: int
    """Its begin: from the moment at which faults may happen; with `[[writes]]`, from the first moment of the
    workload, as the writes are."""
    end_ms: int
    """Its end."""
    fault: str
    """Its kind: `"kill"`, `"holdmessages"`, ... ([faults](faults.md))."""
    role: str = ""
    """The target, by its role when the fault begins: `"leader"`, `"follower"`, `"followers"`, `"isr-member"` or
    `"out-of-isr"` of a log partition; `"broker"`, `"minority"`, `"rack"`, `"controller"` or `"producer"`."""
    broker: Annotated[int, msgspec.Meta(ge=0)] = -1
    """The target, by number; leadership is moved to it, or a record on it is damaged."""
    partition: int = 0
    """The log partition of the role, or the one that is moved or damaged."""
    pick: int = 0
    """Among several holders of the role it decides, modulo their number."""
    scenario: str = ""
    """The scenario that it is counted as, of a family of the plan; by default `"FAMILY/given"`."""
    group: Annotated[int, msgspec.Meta(ge=0, le=FAULTS_MAX - 1, description="a schedule has no more faults")] = -1
    """Faults with one number are one scenario; by default those that overlap are."""


class WriteEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of ``[[writes]]``."""

    at_ms: float
    """Its time, from the first moment of the workload; fractions are microseconds."""
    producer: int = 0
    """The producer that sends it."""
    partition: int = 0
    """The log partition to which it is sent."""
    key: str = "key-0"
    """Its key."""

    def planned(self) -> PlannedWrite:
        """The write that the entry describes."""
        due_us = round(self.at_ms * 1000)
        return PlannedWrite(due_us=due_us, producer=self.producer, partition=self.partition, key=self.key)

    @classmethod
    def of(cls, write: PlannedWrite) -> WriteEntry:
        """The entry that describes a ``write``."""
        at_ms = write.due_us / 1000 if write.due_us % 1000 else write.due_us // 1000
        return cls(at_ms=at_ms, producer=write.producer, partition=write.partition, key=write.key)


def schedule_in(
    entries: Sequence[Table], families: tuple[str, ...], brokers: int, plan_key: PlanKey
) -> tuple[ScheduledFault, ...]:
    """The faults that a plan gives, in its order."""
    here = plan_key / "schedule"
    if len(entries) > FAULTS_MAX:
        raise here.wrong(f"{len(entries)} faults are too many; the most is {FAULTS_MAX}")
    if len(families) != 1:
        raise (plan_key / "families").wrong('a [[schedule]] has one family; write one, such as ["kill+partition"]')
    steps = [_step(entry, families[0].split("+"), brokers, here[number]) for number, entry in enumerate(entries)]
    pairs = zip(steps, overlapping_groups(steps), strict=True)
    return tuple(step if step.group >= 0 else msgspec.structs.replace(step, group=group) for step, group in pairs)


def writes_in(entries: Sequence[Table], plan_key: PlanKey) -> tuple[PlannedWrite, ...]:
    """The writes that a plan gives, in its order."""
    if not entries:
        raise plan_key.wrong("this list is empty, and a run without a write shows nothing; leave it out")
    return tuple(
        record_of(WriteEntry, entry, plan_key[number], _LACKING).planned() for number, entry in enumerate(entries)
    )


def listed(
    workload: WorkloadPlan, writes: tuple[PlannedWrite, ...] | None, tables: Mapping[PlanKey, Table]
) -> WorkloadPlan:
    """``workload`` with exactly ``writes``, where they are given; ``tables`` are what the plan says of it."""
    if writes is None:
        return workload
    for plan_key, table in tables.items():
        for key in OF_GENERATORS:
            if key in table:
                raise (plan_key / "workload" / key).wrong("the plan lists its writes ([[writes]]); leave this key out")
    file = next(iter(tables)).file
    for number, write in enumerate(writes):
        here = (PlanKey(file) / "writes")[number]
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
    """Refuse given faults that do not fit a world: its time, its log partitions, its budget."""
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
        here = (plan_key / "schedule")[number]
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


def _step(entry: Table, families: Sequence[str], brokers: int, plan_key: PlanKey) -> ScheduledFault:
    if "fault" not in entry:
        raise plan_key.wrong(_LACKING.replace("{key}", "fault"))
    kind = value_of(keys_of(ScheduleEntry)["fault"], entry["fault"], plan_key / "fault")
    if kind not in _KINDS:
        raise (plan_key / "fault").wrong(unknown_name("fault", kind, _KINDS))
    fields = msgspec.structs.fields(_KINDS[kind])
    own = {RENAMED.get((kind, field.name), field.name): field for field in fields if field.name != "role"}
    plain = {key: value for key, value in entry.items() if key not in {_OLDER_KEY, *own}}
    known_keys(plain, [*keys_of(ScheduleEntry), *own], plan_key)
    if missing := [key for key, field in own.items() if field.required and key not in entry]:
        raise plan_key.wrong(f"a fault {shown(kind)} needs {' and '.join(missing)}; add {missing[0]} = ...")
    given = {field.name: of_kind(entry[key], field.type, plan_key / key) for key, field in own.items() if key in entry}
    if "broker" in entry and (other := [key for key in ("role", "pick") if key in entry]):
        raise (plan_key / other[0]).wrong("the fault names its broker; leave this key out")
    if not {"broker", "role"} & entry.keys():
        raise plan_key.wrong(_LACKING.replace("{key}", "role"))
    common = record_of(ScheduleEntry, plain, plan_key, _LACKING)
    role = _role(common, brokers, plan_key)
    if common.end_ms < common.begin_ms:
        raise (plan_key / "end_ms").wrong(f"{common.end_ms} is before begin_ms={common.begin_ms}; raise end_ms")
    key = key_of(entry, "scenario", _OLDER_KEY, plan_key)
    word: str = of_kind(entry.get(key, f"{families[0]}/{GIVEN}"), str, plan_key / key)
    family, _, name = word.partition("/")
    if family not in families or not name:
        raise (plan_key / key).wrong(f'write FAMILY/NAME with a family of the plan: "{families[0]}/{GIVEN}"')
    return ScheduledFault(
        begin_ms=common.begin_ms,
        end_ms=common.end_ms,
        group=common.group,
        family=family,
        scenario=name,
        fault=msgspec.convert({"kind": kind, "role": role, **given}, AnyFault),
    )


def _role(common: ScheduleEntry, brokers: int, plan_key: PlanKey) -> Role:
    """The target of a fault: the broker of ``broker = 1``, or the holder of a role in a log partition."""
    if common.broker >= 0:
        if common.broker >= brokers:
            raise (plan_key / "broker").wrong(
                f"broker {common.broker} does not exist; the plan has brokers 0 to {brokers - 1}"
            )
        return Role(RoleKind.NAMED, common.partition, common.broker)
    roles = {kind.value: kind for kind in RoleKind if kind is not RoleKind.NAMED}
    if common.role not in roles:
        raise (plan_key / "role").wrong(f'{unknown_name("role", common.role, roles)}; or write "broker = 0"')
    return Role(roles[common.role], common.partition, common.pick)


def as_written(step: ScheduledFault, family: str) -> dict[str, object]:
    """A fault of a run of ``family`` as an entry of ``[[schedule]]``, without its group."""
    fields = msgspec.to_builtins(step.fault)
    role, kind = step.fault.role, fields.pop("kind")
    del fields["role"]
    named = {"broker": role.pick} if role.kind is RoleKind.NAMED else {"role": role.kind.value, "pick": role.pick}
    scenario = f"{step.family}/{step.scenario}"
    entry = ScheduleEntry(
        begin_ms=step.begin_ms,
        end_ms=step.end_ms,
        fault=kind,
        partition=role.partition,
        scenario="" if scenario == f"{family.split('+', maxsplit=1)[0]}/{GIVEN}" else scenario,
        **named,
    )
    own = {RENAMED.get((kind, name), name): value for name, value in fields.items()}
    return other_than_default(entry) | own


def overlapping_groups(steps: Sequence[ScheduledFault]) -> list[int]:
    """For each step the number of its scenario, where those that overlap are one, from 0 in order of time."""
    groups: dict[int, int] = {}
    end_ms, group = -1, -1
    for index, step in sorted(enumerate(steps), key=lambda pair: pair[1].begin_ms):
        group += step.begin_ms >= end_ms
        end_ms = max(end_ms, step.end_ms)
        groups[index] = group
    return [groups[index] for index in range(len(steps))]

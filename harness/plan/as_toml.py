"""One run as the text of a plan: what :mod:`harness.plan.reading` makes the same run of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from harness.plan.listed_runs import GIVEN, RENAMED, overlapping_groups
from harness.plan.model import ALWAYS_NAMED, RunSpec
from nemesis.plan import FaultPlan
from nemesis.roles import RoleKind
from nemesis.schedule import ScheduledFault
from workloads import IDEMPOTENCE, LISTED, PlannedWrite, Settings, WorkloadPlan, in_toml

#: The keys of a plan of faults that count where the faults are given.
_OF_FAULTS: Final = ("dead_brokers_max", "exercised_min", "at_stake_min")

#: Names that TOML takes without quotes.
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def plan_text(spec: RunSpec, name: str, remarks: Iterable[str] = ()) -> str:
    """The plan ``name`` with ``spec`` as its one run, which has a given schedule; ``remarks`` come first.

    What has its default is left out. A world's own table holds nothing but its name: the run is to be performed
    anywhere.

    Raises:
        ValueError: the run's faults are drawn.
    """
    if spec.schedule is None:
        raise ValueError("a run whose faults are drawn cannot be written down as data")
    top: dict[str, object] = {"name": name, "seed": spec.seed, "families": [spec.family]}
    top |= _other({"brokers": spec.brokers, "log_dirs": spec.log_dirs, "chance": spec.chance}, _TOP)
    top |= {key: value for key, value in (("racks", spec.racks), ("assignment", spec.assignment)) if value}
    if not spec.schedule.steps:
        top["schedule"] = []  # no fault at all; without the key chance would draw some
    tables: dict[str, Mapping[str, object]] = {
        "settings": dict(_settings(spec)),
        "workload": _other(_plain(spec.workload, without=("writes",)), _plain(WorkloadPlan())),
        "faults": _other({key: getattr(spec.faults, key) for key in _OF_FAULTS}, _plain(FaultPlan())),
        f"worlds.{spec.world.name}": {},
    }
    lines = [*(f"# {remark}" for remark in remarks), *lines_of(top, tables)]
    by_overlap = overlapping_groups(spec.schedule.steps)
    same = [step.group for step in spec.schedule.steps] == by_overlap
    for step in spec.schedule.steps:
        group = {} if same else {"group": step.group}
        lines += ["", "[[schedule]]", *_pairs(_entry(step, spec.family) | group)]
    for write in spec.workload.writes:
        lines += ["", "[[writes]]", *_pairs(_write(write))]
    return "\n".join(lines) + "\n"


def lines_of(top: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A plan's keys and tables, a line each. An empty table is left out, unless it is a world's."""
    lines = _pairs(top)
    for table, values in tables.items():
        if values or table.startswith("worlds"):
            lines += ["", f"[{table}]", *_pairs(values)]
    return lines


_TOP: Final[Mapping[str, object]] = {"brokers": 3, "log_dirs": 1, "chance": "drawn"}


def _settings(spec: RunSpec) -> Iterator[tuple[str, object]]:
    """Settings that differ from the defaults or that every cell names; client libraries decide the others."""
    defaults = Settings().to_mapping()
    named = {*ALWAYS_NAMED, IDEMPOTENCE} - {*spec.client_defaults}
    for name, value in spec.settings.items():
        if name in named or (value != defaults[name] and name not in spec.client_defaults):
            yield name, value


def _plain(record: msgspec.Struct, without: tuple[str, ...] = ()) -> dict[str, object]:
    """The fields of a record; of a listed workload its name follows from the list."""
    fields = {name: value for name, value in msgspec.structs.asdict(record).items() if name not in without}
    if fields.get("name") == LISTED:
        for name in ("name", "writes_per_second", "keys"):
            del fields[name]
    return fields


def _other(values: Mapping[str, object], defaults: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value != defaults[name]}


def _entry(step: ScheduledFault, family: str) -> dict[str, object]:
    """One fault as an entry of ``[[schedule]]``, without its group."""
    fields = msgspec.to_builtins(step.fault)
    role, kind = step.fault.role, fields.pop("kind")
    del fields["role"]
    whom: dict[str, object] = {"broker": role.pick}
    if role.kind is not RoleKind.NAMED:
        whom = {"role": role.kind.value} | _other({"pick": role.pick}, _NOUGHT)
    whom |= _other({"partition": role.partition}, _NOUGHT)
    own = {RENAMED.get((kind, name), name): value for name, value in fields.items()}
    scenario = f"{step.family}/{step.scenario}"
    named = {"scenario": scenario} if scenario != f"{family.split('+', maxsplit=1)[0]}/{GIVEN}" else {}
    return {"begin_ms": step.begin_ms, "end_ms": step.end_ms, "fault": kind} | whom | own | named


_NOUGHT: Final[Mapping[str, object]] = {"partition": 0, "pick": 0}


def _write(write: PlannedWrite) -> dict[str, object]:
    at_ms = write.due_us // 1000 if write.due_us % 1000 == 0 else write.due_us / 1000
    rest = {"producer": write.producer, "partition": write.partition, "key": write.key}
    return {"at_ms": at_ms} | _other(rest, {"producer": 0, "partition": 0, "key": "key-0"})


def _pairs(values: Mapping[str, object]) -> list[str]:
    return [f"{_key(name)} = {in_toml(value)}" for name, value in values.items()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else in_toml(name)

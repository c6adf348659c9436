"""The keys of a plan's file, table by table. A struct is a table, and its fields say all of a key that is known.

The tables ``[workload]``, ``[faults]`` and ``[application]`` are :class:`workloads.WorkloadPlan`,
:class:`nemesis.plan.FaultPlan` and :class:`workloads.ApplicationPlan`; a world's is
:class:`harness.plan.world_keys.WorldTable`, with ``inventory`` and ``security`` in modules of their names; entries of
``[[schedule]]`` and ``[[writes]]`` are in :mod:`harness.plan.listed_runs`. Reading, writing back, the page
of keys, bounds, and what is misplaced or idle follow from these. A key that runs or worlds have too is a field of the
same name in :class:`harness.plan.model.RunSpec` or :mod:`harness.plan.worlds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Final, Literal

import msgspec

from harness.plan.bounds import BROKERS_MAX, NUMBER_MAX, Bounds, bounds_of
from harness.plan.chosen_faults import families_in
from harness.plan.listed_runs import ScheduleEntry, WriteEntry
from harness.plan.machines import Machine
from harness.plan.operator_commands import OperatorCommands
from harness.plan.values import PlanKey, ReadBy, Table, choices_of, flattened, is_number, keys_of, of_kind
from harness.plan.world_keys import WorldTable
from nemesis.plan import FaultPlan
from workloads import ApplicationPlan, Settings, WorkloadPlan, shown

#: The name of a plan is the name of a directory.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: ``results/latest`` is a link to the newest campaign.
LATEST: Final = "latest"

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Row = Annotated[tuple[object, ...], msgspec.Meta(min_length=1)]
_RACKS: Final = ReadBy(
    lambda value, plan_key: of_kind(value, tuple[_Name, ...], plan_key, 'a list of names, such as ["a", "b", "c"]')
)
_ASSIGNMENT: Final = ReadBy(
    lambda value, plan_key: of_kind(
        value, tuple[_Row, ...], plan_key, "a list of brokers for each log partition, such as [[0, 1, 2]]"
    )
)


def _name(value: object, plan_key: PlanKey) -> str:
    name: str = of_kind(value, str, plan_key)
    if not _NAME.fullmatch(name):
        raise plan_key.wrong(f'{shown(name)} cannot name a directory; use letters, digits, "-", "_", ".", at most 64')
    if name == LATEST:
        raise plan_key.wrong(f'"{LATEST}" is the link to the newest campaign; choose another name')
    return name


def _families(value: object, plan_key: PlanKey) -> tuple[str, ...]:
    """Names of families; ``kill+partition`` draws one schedule from both."""
    seen: set[frozenset[str]] = set()
    for name in choices_of(value, plan_key):
        if not isinstance(name, str):
            raise plan_key.wrong(
                f'{shown(name)} is not the name of a family; write, for example, "kill" or "kill+pause"'
            )
        parts = families_in(name, plan_key)
        if len(set(parts)) < len(parts) or frozenset(parts) in seen:
            raise plan_key.wrong(f'"{name}" names the same faults twice; leave one out')
        seen.add(frozenset(parts))
    return of_kind(value, tuple[str, ...], plan_key)  # type: ignore[no-any-return]


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """The top of a plan."""

    name: Annotated[str, ReadBy(_name)] = ""
    """The name of the directory below `results/`; by default the file's."""
    seed: Annotated[int, msgspec.Meta(ge=0, le=NUMBER_MAX, description="seeds are stored in 64 bits")] = 1
    """Every run's seed follows from it, and so do schedules and workloads."""
    brokers: Annotated[
        int, msgspec.Meta(ge=1, le=BROKERS_MAX, description="controllers have the numbers from 100 on")
    ] = 3
    """Brokers of each cluster."""
    racks: Annotated[tuple[str, ...], _RACKS] = ()
    """Each broker's rack, in their order: `["a", "a", "b"]`. Brokers are told (`broker.rack`), so the replicas of a new
    topic go to as many racks as there are (KIP-36)."""
    log_dirs: Annotated[int, msgspec.Meta(ge=1, le=100, description="no broker has more disks")] = 1
    """Log directories of each broker, in the simulated world. With several a broker outlives the failure of one (JBOD,
    KIP-112)."""
    assignment: Annotated[tuple[tuple[int, ...], ...], _ASSIGNMENT] = ()
    """The brokers of each log partition of a topic, the preferred leader first: `[[0, 1, 2], [1, 2, 0]]`. By default
    the cluster places them. Racks are not looked at then, nor at a later reassignment."""
    families: Annotated[tuple[str, ...], ReadBy(_families)] = ("kill",)
    """Families of faults ([faults](faults.md#families)). `"kill+partition"` draws one schedule from both: a scenario of
    each in turn, in another order in each run."""
    story: str = ""
    """The number of a scripted story (`"S40"`), or a story file beside the plan or below it (`"my.toml"`). A run
    performs it in place of a workload and drawn faults. It is the cell's family, so the plan has no `families`, and the
    workload has `partitions = 1`. See [stories](stories.md)."""
    settings: Table = {}
    """Settings under Kafka's own names, one value each ([settings](settings.md)). A setting that is left out has its
    default. That of `enable.idempotence` is the client library's: true with kafka-python, with java since 3.0.1, and in
    the simulated world where `acks=all`, at most five requests are in flight and `retries` is not 0; else false, and
    always with confluent-kafka. The report says what was in force. No exclusion meets such a value: name it to
    choose."""
    matrix: Table = {}
    """The same names with lists of values: one cell for every combination. Each `[[matrix.exclude]]` names settings
    with one value each, and takes out the combinations that have all of them. It may name any setting, with the value
    that it has in the matrix, under `[settings]` or by default; one that no combination matches is refused."""
    workload: Table = {}
    """The table [`[workload]`](#workload)."""
    faults: Table = {}
    """The table [`[faults]`](#faults)."""
    application: Table = {}
    """The table [`[application]`](#application): a program of yours, which is tested."""
    schedule: list[Table] = []
    """Exactly these faults, in place of drawn ones: [`[[schedule]]`](#schedule). The plan has one family, and its first
    run has the plan's own seed."""
    writes: list[Table] = []
    """Exactly these writes, in place of generated ones: [`[[writes]]`](#writes). The workload has no `name`,
    `writes_per_second`, `keys` or `skew` then. Nothing is waited for before the first write. After the last one only
    the fresh producers at the end of every run write."""
    chance: Literal["drawn", "none"] = "drawn"
    """`"none"`, with a `[[schedule]]`: in the simulated world every message takes a millisecond, and no cut lets a
    message be sent again. Elsewhere it changes nothing."""
    expected: list[Table] = []
    """The outcome that is expected of each cell. A campaign says at its end whether it came; it changes no exit code. A
    cell is held against the first entry that fits its `world`, `family` and `settings` (a value, or a list of them);
    what an entry leaves out is any. A cell that none fits may have any outcome but `broken promise`, `stalled` and
    `unknown`. `outcomes` are those that the cell may have; `some` is one that a cell of the entry has at least;
    `anomalies` are all that a broken promise may be of; `finding` is the number of its page, and what that one has
    marks of must bear them; `figures` are the least and the most of numbers of a cell,
    `{ p99_ms = [0, 50] }`: `p50_ms`, `p99_ms` and `p99.9_ms` of acknowledged writes, and `acknowledged_a_run`,
    `lost_a_run`, `refused_attempts_a_run` and `isr_changes_a_run`."""
    worlds: Table = {}
    """The tables [`[worlds.simulated]`, `[worlds.processes]` and `[worlds.kafka]`](#worlds); at least one."""


#: The tables to which a misplaced key may belong; the first that has it is meant.
_WHERE: Final[Mapping[str, Iterable[str]]] = {
    "under [settings], or a list of values under [matrix]": Settings().to_mapping(),
    "under [workload]": keys_of(WorkloadPlan),
    "under [faults]": keys_of(FaultPlan),
    "under [application]": keys_of(ApplicationPlan),
    "under a world, such as [worlds.kafka]": keys_of(WorldTable),
    "at the top of the plan": keys_of(PlanFile),
}
#: The plan and its workload have one each.
_AMBIGUOUS: Final = "name"
_TABLES: Final = (
    PlanFile, WorldTable, OperatorCommands, Machine, WorkloadPlan, FaultPlan, ApplicationPlan, ScheduleEntry,
    WriteEntry,
)  # fmt: skip
#: The bounds of every number, by the name of the key, or of the option.
BOUNDS: Final[Mapping[str, Bounds]] = {
    **{field.name: bounds_of(field) for table in _TABLES for field in keys_of(table).values() if is_number(field)},
    "workers": Bounds(1, 256, "each is a process"),
}


def refuse_misplaced(table: Table, keys: Iterable[str], plan_key: PlanKey) -> None:
    """Refuse a key that ``table`` has and its ``keys`` do not, where another table has it."""
    strange = {key: value for key, value in table.items() if key not in set(keys)}
    for name in [*strange, *flattened(strange)]:
        for where, own in _WHERE.items():
            if name in own and name != _AMBIGUOUS:
                raise (plan_key / name).wrong(f"this key does not belong here; write it {where}")

"""Reads a plan from TOML and refuses, before anything is started, one that cannot be run as written."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from harness.errors import PlanError
from harness.plan.existing import EXISTING, bootstrap_at
from harness.plan.machines import controllers_of, machines_at
from harness.plan.model import Choice, Plan, WorldPlan
from harness.plan.security import security_at
from harness.plan.spec import ClientName, HostName, ModeName, WorldName, settings_label
from harness.plan.stories import check_stories, chosen_stories, families_in
from harness.plan.values import (
    Place,
    Table,
    flattened,
    known_keys,
    list_at,
    record_at,
    shown,
    table_at,
    unknown_key,
    value_at,
)
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings, SettingsError

KEYS: Final = ("name", "seed", "brokers", "families", "settings", "matrix", "workload", "faults", "worlds")
#: What says where a cluster is that the harness does not start here.
CLUSTER_KEYS: Final = ("inventory", "bootstrap", "security")
WORLD_KEYS: Final = (
    "runs",
    "parallel",
    "host",
    "version",
    "controllers",
    "mode",
    "client",
    "workload",
    "faults",
    *CLUSTER_KEYS,
)

#: The name of a plan is the name of a directory.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Kafka's own rule for topic names (org.apache.kafka.common.internals.Topic).
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: A release of Apache Kafka.
VERSION: Final = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}")
#: ``results/latest`` is a link to the newest campaign.
LATEST: Final = "latest"
#: Runs of one campaign; each leaves a directory of a few files, and one Spark job reads them all.
RUNS_MAX: Final = 100_000
#: Brokers on one machine; the controller is node 100 (nemesis.cluster).
BROKERS_MAX: Final = 100
#: An even number outlives no more deaths than the odd one below it.
CONTROLLERS: Final = (1, 3, 5)


def read_plan(path: Path, overrides: Mapping[str, object] | None = None) -> Plan:
    """The plan in the file ``path``; ``overrides`` fix settings that the file leaves open or says otherwise.

    Raises:
        PlanError: one sentence with the place in the file.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte order mark
    except OSError as error:
        raise PlanError(f"cannot read the plan {path}: {error.strerror}; name a TOML file") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: not a text in UTF-8 (byte {error.start}); a plan is a TOML file") from error
    return parse_plan(text, str(path), overrides, name=path.stem)


def parse_plan(text: str, file: str, overrides: Mapping[str, object] | None = None, name: str = "plan") -> Plan:
    """The plan that ``text`` writes; ``file`` names it in errors, ``name`` where it does not name itself."""
    place = Place(file)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise place.wrong(f"not valid TOML: {error}") from error
    except RecursionError as error:
        raise place.wrong("nested too deeply; a plan has tables of tables of values, no more") from error
    known_keys(table, KEYS, place)
    brokers = value_at(table, "brokers", int, 3, place)
    if brokers > BROKERS_MAX:
        raise (place / "brokers").wrong(f"{brokers} is too large; the most is {BROKERS_MAX}")
    plan = Plan(
        name=_name(value_at(table, "name", str, name, place), place / "name"),
        seed=value_at(table, "seed", int, 1, place),
        brokers=brokers,
        choices=tuple(_choices(table, overrides or {}, brokers, place)),
        families=_families(table, place),
        worlds=tuple(_worlds(table, brokers, place)),
        text=text,
    )
    check_stories(plan, place)
    runs = len(plan.choices) * len(plan.families) * sum(world.runs for world in plan.worlds)
    if runs > RUNS_MAX:
        raise place.wrong(f"this plan asks for {runs} runs; the most is {RUNS_MAX}, so lower runs or shrink the matrix")
    return plan


def _name(name: str, place: Place) -> str:
    if not NAME.fullmatch(name):
        raise place.wrong(f'{shown(name)} cannot name a directory; use letters, digits, "-", "_" and ".", at most 64')
    if name == LATEST:
        raise place.wrong(f'"{LATEST}" is what the link to the newest campaign is called; choose another name')
    return name


def _choices(table: Table, overrides: Mapping[str, object], brokers: int, place: Place) -> Iterator[Choice]:
    fixed = flattened(table_at(table, "settings", place))
    axes = flattened(table_at(table, "matrix", place))
    _refuse_unknown(fixed, place / "settings")
    _refuse_unknown(axes, place / "matrix")
    _refuse_unknown(overrides, Place("--settings"))
    for name in axes:
        if name in fixed:
            raise (place / "matrix" / name).wrong("this setting stands under [settings] too; leave one of them out")
    axes = {name: list_at(axes, name, [], place / "matrix") for name in axes if name not in overrides}
    seen: set[str] = set()
    for values in itertools.product(*axes.values()):
        varied = dict(zip(axes, values, strict=True))
        settings = _possible({**fixed, **overrides, **varied}, varied, brokers, place)
        label = settings_label(settings, varied)
        if label in seen:
            raise (place / "matrix").wrong(f"{label} comes twice; leave one spelling out")
        seen.add(label)
        yield Choice(label=label, settings=settings)


def _refuse_unknown(names: Table, place: Place) -> None:
    known = Settings().to_mapping()
    for name, value in names.items():
        if name not in known:
            raise (place / name).wrong(unknown_key("setting", name, known))
        if isinstance(value, list) and not place.path.startswith("matrix"):
            raise (place / name).wrong("a list of choices stands under [matrix], one choice under [settings]")


def _possible(values: Table, varied: Table, brokers: int, place: Place) -> dict[str, Any]:
    try:
        settings = Settings.from_mapping(values)
    except SettingsError as error:
        # The sentence of a SettingsError begins with the name of the setting to correct.
        guilty = next(
            (name for name in values if str(error).startswith(f"{name}=") or str(error).startswith(f"{name} ")), ""
        )
        raise (place / ("matrix" if guilty in varied else "settings")).wrong(error) from error
    if settings.replication_factor > brokers:
        raise (place / ("matrix" if "replication.factor" in varied else "settings")).wrong(
            f"replication.factor={settings.replication_factor} needs that many brokers and the plan has {brokers}; "
            "raise brokers or lower replication.factor"
        )
    return settings.to_mapping()


def _families(table: Table, place: Place) -> tuple[str, ...]:
    """Names of the families; ``kill+partition`` draws one schedule from both."""
    names = list_at(table, "families", ["kill"], place)
    place = place / "families"
    seen: set[frozenset[str]] = set()
    for name in names:
        parts = families_in(str(name), place)
        if len(set(parts)) < len(parts) or frozenset(parts) in seen:
            raise place.wrong(f'"{name}" names the same faults twice; leave one out')
        seen.add(frozenset(parts))
    return tuple(names)


def _worlds(table: Table, brokers: int, place: Place) -> Iterator[WorldPlan]:
    worlds = table_at(table, "worlds", place)
    place = place / "worlds"
    if not worlds:
        raise place.wrong(
            "the plan names no world; add a table [worlds.simulated], [worlds.processes] or [worlds.kafka]"
        )
    known_keys(worlds, get_args(WorldName), place)
    for name in worlds:
        own = table_at(worlds, name, place)
        here = place / name
        known_keys(own, WORLD_KEYS, here)
        root = Place(place.file)
        workload = _workload(_workload(WorkloadPlan(), table, root), own, here)
        faults = _faults(_faults(FaultPlan(), table, brokers, root), own, brokers, here)
        if faults.healed_ms_min + faults.fault_ms_min > workload.duration_ms:
            raise here.wrong(
                f"no fault fits in: healed_ms_min={faults.healed_ms_min} and fault_ms_min={faults.fault_ms_min} exceed "
                f"duration_ms={workload.duration_ms}; raise the last or lower the others"
            )
        host = _host(name, value_at(own, "host", HostName, "loopback", here), here / "host")
        controllers = _controllers(name, value_at(own, "controllers", int, 1, here), own, here / "controllers")
        yield WorldPlan(
            world=msgspec.convert(name, WorldName),
            runs=value_at(own, "runs", int, 1, here),
            parallel=_parallel(host, value_at(own, "parallel", int, None, here), here / "parallel"),
            host=host,
            machines=machines_at(own, host, [*range(brokers), *controllers_of(controllers)], here),
            bootstrap=bootstrap_at(own, host, workload, here),
            security=security_at(own, host, here),
            client=value_at(own, "client", ClientName, "kafka-python", here),
            version=_version(name, value_at(own, "version", str, "", here), here / "version"),
            controllers=controllers,
            mode=_mode(name, value_at(own, "mode", ModeName, "kraft", here), here / "mode"),
            workload=workload,
            faults=faults,
        )


def _host(world: str, host: HostName, place: Place) -> HostName:
    if host != "loopback" and world == "simulated":
        raise place.wrong("the simulated world is one process and has no hosts; leave it out")
    if host == "ssh" and world != "kafka":
        raise place.wrong("machines over SSH carry Apache Kafka only; use it under [worlds.kafka]")
    if host == EXISTING and world != "kafka":
        raise place.wrong("clusters that exist already are Apache Kafka's; use it under [worlds.kafka]")
    return host


def _parallel(host: HostName, parallel: int | None, place: Place) -> int | None:
    if host == EXISTING:
        return parallel or 1  # it serves others too
    if host != "ssh":
        return parallel
    if parallel is not None and parallel > 1:
        raise place.wrong("the machines of an inventory carry one run at a time; leave it out")
    return 1


def _version(world: str, version: str, place: Place) -> str:
    if version and world != "kafka":
        raise place.wrong("only the kafka world has versions; leave it out")
    if version and not VERSION.fullmatch(version):
        raise place.wrong(f'"{version}" is no version of Apache Kafka; write three numbers, for example "4.1.1"')
    return version


def _mode(world: str, mode: ModeName, place: Place) -> ModeName:
    if mode != "kraft" and world != "kafka":
        raise place.wrong("only the kafka world has modes; leave it out")
    return mode


def _controllers(world: str, controllers: int, own: Table, place: Place) -> int:
    if controllers != 1 and world != "kafka":
        raise place.wrong("the reference broker has one controller; leave it out")
    if controllers != 1 and own.get("mode") == "zookeeper":
        raise place.wrong('with mode = "zookeeper" the controller is one of the brokers; leave controllers out')
    if controllers not in CONTROLLERS:
        raise place.wrong(
            f"{controllers} controllers are no quorum that outlives as many deaths as it could; choose 1, 3 or 5"
        )
    return controllers


def _workload(base: WorkloadPlan, table: Table, place: Place) -> WorkloadPlan:
    workload = record_at(base, table_at(table, "workload", place), place / "workload")
    if not TOPIC.fullmatch(workload.topic) or workload.topic in {".", ".."}:
        raise (place / "workload").wrong(
            f'topic={shown(workload.topic)} is no name of a topic; use letters, digits, ".", "_", "-"'
        )
    return workload


def _faults(base: FaultPlan, table: Table, brokers: int, place: Place) -> FaultPlan:
    own = table_at(table, "faults", place)
    place = place / "faults"
    stories = chosen_stories(own, base.stories, place)
    if "families" in own:
        raise (place / "families").wrong("families stand at the top of the plan; each is a row of the matrix")
    plain = {name: value for name, value in own.items() if name != "stories"}
    faults = record_at(msgspec.structs.replace(base, stories=stories), plain, place, without=frozenset({"families"}))
    if faults.fault_ms_min > faults.fault_ms_max:
        raise place.wrong(f"fault_ms_min={faults.fault_ms_min} exceeds fault_ms_max={faults.fault_ms_max}; swap them")
    if faults.dead_brokers_max > brokers:
        raise place.wrong(
            f"dead_brokers_max={faults.dead_brokers_max} exceeds the {brokers} brokers of the plan; lower it"
        )
    return faults

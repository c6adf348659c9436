"""Reads a plan from TOML and refuses, before anything is started, one that cannot be run as written."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

import msgspec

from harness.ground.errors import PlanError
from harness.plan import worlds
from harness.plan.bounds import BOUNDS
from harness.plan.chosen_faults import OLDER_KEY, check_scenarios, chosen_scenarios, families_in, story_in
from harness.plan.counting import refuse_too_many_runs, refuse_too_many_writes
from harness.plan.expected import expected_in
from harness.plan.file_form import PLAN_DEFAULTS, Chance, PlanFile, WorldTable
from harness.plan.groups import check_groups
from harness.plan.idle_keys import refuse_idle
from harness.plan.listed_runs import check_given, listed, schedule_in, writes_in
from harness.plan.matrix import choices_in
from harness.plan.misplaced import refuse_misplaced
from harness.plan.model import Plan, WorldPlan
from harness.plan.placement import assignment_in, check_placement, racks_in
from harness.plan.transactions import check_transactions
from harness.plan.upgrades import check_upgrade
from harness.plan.values import (
    ENDLESS,
    PlanKey,
    Table,
    known_keys,
    list_at,
    record_at,
    refuse_endless_numbers,
    table_at,
    value_at,
)
from harness.plan.world_keys import world_at
from nemesis.plan import FaultPlan
from workloads import WORKLOADS, Settings, WorkloadPlan, kind_of, shown, topics_of, unknown_name

#: Findings that are accepted, beside a plan.
ACCEPTED_FILE: Final = "accepted.toml"
#: The name of a plan is the name of a directory.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Kafka's own rule for topic names (org.apache.kafka.common.internals.Topic).
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: ``results/latest`` is a link to the newest campaign.
LATEST: Final = "latest"


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
        raise PlanError(f"{path}: byte {error.start} is not UTF-8; name a plan, a TOML file in UTF-8") from error
    plan = parse_plan(text, str(path), overrides, name=path.stem)
    return msgspec.structs.replace(plan, file=str(path), accepted=_beside(path))


def _beside(path: Path) -> str:
    """The text of ``accepted.toml`` beside the plan, as it is; what judges findings understands it."""
    accepted = path.with_name(ACCEPTED_FILE)
    try:
        return accepted.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"cannot read {accepted}, which is beside the plan: {error}; correct or remove it") from error


def parse_plan(text: str, file: str, overrides: Mapping[str, object] | None = None, name: str = "plan") -> Plan:
    """The plan that ``text`` writes; ``file`` names it in errors, ``name`` where it does not name itself.

    Raises:
        PlanError: one sentence with the place in the text.
    """
    plan_key = PlanKey(file)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise plan_key.wrong(f"not valid TOML: {error}") from error
    except RecursionError as error:
        raise plan_key.wrong("tables or lists are nested too deeply; write them as the plans in plans/ do") from error
    except ValueError as error:  # Python's limit for the digits of an integer
        raise plan_key.wrong(ENDLESS) from error
    refuse_endless_numbers(table, plan_key)
    refuse_misplaced(table, PlanFile.__struct_fields__, plan_key)
    known_keys(table, PlanFile.__struct_fields__, plan_key)
    brokers = value_at(table, "brokers", int, PLAN_DEFAULTS.brokers, plan_key)
    story, own_story = story_in(table, plan_key)
    families = (story,) if story else _families(table, plan_key)
    plan = Plan(
        name=_name(value_at(table, "name", str, name, plan_key), plan_key / "name"),
        seed=value_at(table, "seed", int, PLAN_DEFAULTS.seed, plan_key),
        brokers=brokers,
        choices=tuple(choices_in(table, overrides or {}, brokers, plan_key)),
        families=families,
        worlds=tuple(_worlds(table, brokers, plan_key)),
        racks=racks_in(table, brokers, plan_key),
        log_dirs=value_at(table, "log_dirs", int, PLAN_DEFAULTS.log_dirs, plan_key),
        assignment=assignment_in(table, brokers, plan_key),
        text=text,
        expected=expected_in(table, families, table_at(table, "worlds", plan_key), plan_key),
        schedule=schedule_in(table, families, brokers, plan_key),
        chance=value_at(table, "chance", Chance, PLAN_DEFAULTS.chance, plan_key),
        story=story,
        own_story=own_story,
    )
    refuse_too_many_runs(plan, plan_key)
    check_placement(plan, plan_key)
    check_scenarios(plan, plan_key)
    check_given(plan, plan_key)
    _refuse_impatience(plan, plan_key)
    _refuse_cleaning(plan, plan_key)
    _refuse_ages(plan, plan_key)
    check_transactions(plan, plan_key)
    check_upgrade(plan, plan_key)
    check_groups(plan, plan_key)
    refuse_idle(table, plan.worlds, plan_key)
    return plan


def _refuse_cleaning(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse a compacted topic for writes without keys of their own, and a workload of keys without such a topic."""
    policies = {choice.settings["cleanup.policy"] for choice in plan.choices}
    for world in plan.worlds:
        keyed = kind_of(world.workload).keyed
        here = plan_key / "worlds" / world.world.name / "workload" / "name"
        if keyed and policies != {"compact"}:
            raise here.wrong(
                f'the workload "{world.workload.name}" is about compaction: write cleanup.policy = "compact" under '
                "[settings]"
            )
        # A story says itself what it needs.
        if not keyed and policies != {"delete"} and not plan.story:
            raise here.wrong(
                f'the workload "{world.workload.name}" expects every record to stay, and cleanup.policy=compact '
                'removes some: choose workload = { name = "keyed" }, or leave cleanup.policy out'
            )


def _refuse_ages(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse retention.ms where a record that was too old is not told from a lost one."""
    if not any(Settings.from_mapping(choice.settings).expires for choice in plan.choices):
        return
    for world in plan.worlds:
        if not kind_of(world.workload).judged_by_age:
            raise (plan_key / "worlds" / world.world.name / "workload" / "name").wrong(
                f'the workload "{world.workload.name}" expects records to stay at any age, and retention.ms drops old '
                'ones: choose workload = { name = "steady" }, or leave retention.ms out'
            )


def _refuse_impatience(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse to give up producers sooner than one request may last: none would be put to the test."""
    for world in plan.worlds:
        silent_ms = world.workload.replace_silent_ms
        for request_ms in {choice.settings["request.timeout.ms"] for choice in plan.choices}:
            if isinstance(request_ms, int) and 0 < silent_ms < request_ms:
                raise (plan_key / "worlds" / world.world.name / "workload").wrong(
                    f"replace_silent_ms={silent_ms} is less than request.timeout.ms={request_ms}, so producers would "
                    "be replaced while they wait for an answer; raise it, or leave it out"
                )


def _name(name: str, plan_key: PlanKey) -> str:
    if not NAME.fullmatch(name):
        raise plan_key.wrong(f'{shown(name)} cannot name a directory; use letters, digits, "-", "_", ".", at most 64')
    if name == LATEST:
        raise plan_key.wrong(f'"{LATEST}" is the link to the newest campaign; choose another name')
    return name


def _families(table: Table, plan_key: PlanKey) -> tuple[str, ...]:
    """Names of the families; ``kill+partition`` draws one schedule from both."""
    names = list_at(table, "families", [*PLAN_DEFAULTS.families], plan_key)
    plan_key = plan_key / "families"
    seen: set[frozenset[str]] = set()
    for name in names:
        if not isinstance(name, str):
            raise plan_key.wrong(
                f'{shown(name)} is not the name of a family; write, for example, "kill" or "kill+pause"'
            )
        parts = families_in(name, plan_key)
        if len(set(parts)) < len(parts) or frozenset(parts) in seen:
            raise plan_key.wrong(f'"{name}" names the same faults twice; leave one out')
        seen.add(frozenset(parts))
    return tuple(map(str, names))


def _worlds(table: Table, brokers: int, plan_key: PlanKey) -> Iterator[WorldPlan]:
    every = table_at(table, "worlds", plan_key)
    plan_key = plan_key / "worlds"
    if not every:
        raise plan_key.wrong("the plan names no world; add [worlds.simulated], [worlds.processes] or [worlds.kafka]")
    known_keys(every, get_args(worlds.WorldName), plan_key)
    writes = writes_in(table, PlanKey(plan_key.file))
    for name in every:
        own = table_at(every, name, plan_key)
        here = plan_key / name
        refuse_misplaced(own, WorldTable.__struct_fields__, here)
        known_keys(own, WorldTable.__struct_fields__, here)
        root = PlanKey(plan_key.file)
        workload = _workload(_workload(WorkloadPlan(), table, root), own, here)
        workload = listed(workload, writes, {root: table, here: own})
        faults = _faults(_faults(FaultPlan(), table, brokers, root), own, brokers, here)
        if "schedule" not in table and faults.healed_ms_min + faults.fault_ms_min > workload.duration_ms:
            raise here.wrong(
                f"no fault fits in: healed_ms_min={faults.healed_ms_min} and fault_ms_min={faults.fault_ms_min} exceed "
                f"duration_ms={workload.duration_ms}; raise duration_ms or lower the others"
            )
        world = world_at(name, own, brokers, workload.topic, here)
        refuse_too_many_writes(workload, world, here)
        _refuse_needs(workload, world, here)
        parallel = value_at(own, "parallel", int, world.parallel, here)
        if world.machines and parallel > 1:
            raise (here / "parallel").wrong("the machines of an inventory carry one run at a time; leave this key out")
        # A scripted story and a given schedule leave little or nothing to chance.
        drawn = "story" not in table and "schedule" not in table
        runs = value_at(own, "runs", int, world.drawn_runs if drawn else 1, here)
        yield WorldPlan(world=world, runs=runs, parallel=parallel, workload=workload, faults=faults)


def _refuse_needs(workload: WorkloadPlan, world: worlds.AnyWorld, plan_key: PlanKey) -> None:
    """Refuse a workload that needs what this world's clients and brokers have not."""
    missing = _missing(workload, world)
    if missing:
        having = [kind for kind in (worlds.Simulated, worlds.Kafka) if not _missing(workload, kind)]
        who = "only Apache Kafka has" if len(having) == 1 else "the reference broker has in virtual time only"
        raise (plan_key / "workload" / "name").wrong(
            f'the workload "{workload.name}" needs {" and ".join(missing)}, which {who}; write it under '
            f"{' or '.join(f'[worlds.{kind.name}]' for kind in having)}"
        )


def _missing(workload: WorkloadPlan, world: worlds.AnyWorld | type[worlds.Simulated | worlds.Kafka]) -> list[str]:
    """The needs of a workload that clients and brokers of a world do not meet."""
    kind = kind_of(workload)
    return [need.value for need in kind.needs if need not in world.capabilities]


def _workload(base: WorkloadPlan, table: Table, plan_key: PlanKey) -> WorkloadPlan:
    own = table_at(table, "workload", plan_key)
    refuse_misplaced(own, WorkloadPlan.__struct_fields__, plan_key / "workload")
    workload = record_at(base, own, plan_key / "workload", without=frozenset({"writes"}))
    if workload.name not in WORKLOADS:
        raise (plan_key / "workload" / "name").wrong(unknown_name("workload", workload.name, WORKLOADS))
    if not all(map(TOPIC.fullmatch, topics_of(workload))) or workload.topic in {".", ".."}:
        raise (plan_key / "workload").wrong(
            f'topic={shown(workload.topic)} cannot name a topic; use letters, digits, ".", "_", "-", at most 249'
        )
    if (partitions := workload.topics * workload.partitions) > BOUNDS["partitions"].most:
        raise (plan_key / "workload" / "topics").wrong(
            f"{workload.topics} topics of {workload.partitions} log partitions are {partitions} in all; the most are "
            f"{BOUNDS['partitions'].most}: {BOUNDS['partitions'].reason}"
        )
    return workload


def _faults(base: FaultPlan, table: Table, brokers: int, plan_key: PlanKey) -> FaultPlan:
    own = table_at(table, "faults", plan_key)
    plan_key = plan_key / "faults"
    scenarios = chosen_scenarios(own, base.scenarios, plan_key)
    if "families" in own:
        raise (plan_key / "families").wrong("write families at the top of the plan; each is a row of the matrix")
    plain = {name: value for name, value in own.items() if name not in {"scenarios", OLDER_KEY}}
    refuse_misplaced(plain, FaultPlan.__struct_fields__, plan_key)
    base = msgspec.structs.replace(base, scenarios=scenarios)
    faults = record_at(base, plain, plan_key, without=frozenset({"families"}))
    if faults.fault_ms_min > faults.fault_ms_max:
        raise plan_key.wrong(
            f"fault_ms_min={faults.fault_ms_min} exceeds fault_ms_max={faults.fault_ms_max}; swap them"
        )
    if faults.dead_brokers_max > brokers:
        raise plan_key.wrong(
            f"dead_brokers_max={faults.dead_brokers_max} exceeds the {brokers} brokers of the plan; lower it"
        )
    return faults

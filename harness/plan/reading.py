"""Reads a plan from TOML and refuses, before anything is started, one that cannot be run as written."""

from __future__ import annotations

import errno
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

import msgspec

from harness.ground.errors import PlanError
from harness.plan import worlds
from harness.plan.application import application_of, check_applications, with_application
from harness.plan.chosen_faults import OLDER_KEY, check_scenarios, chosen_scenarios, story_in
from harness.plan.counting import refuse_too_many_runs, refuse_too_many_writes
from harness.plan.expected import expected_in
from harness.plan.file_form import BOUNDS, PlanFile, refuse_misplaced
from harness.plan.groups import check_groups
from harness.plan.idle_keys import refuse_idle
from harness.plan.listed_runs import check_given, listed, schedule_in, writes_in
from harness.plan.matrix import choices_in
from harness.plan.model import Plan, WorldPlan
from harness.plan.placement import check_placement
from harness.plan.transactions import check_transactions
from harness.plan.upgrades import check_upgrade
from harness.plan.values import (
    ENDLESS,
    TOO_DEEP,
    PlanKey,
    Table,
    keys_of,
    known_keys,
    record_of,
    refuse_endless_numbers,
    refuse_too_deep,
    shared,
    table_at,
    values_in,
)
from harness.plan.world_keys import WorldTable, world_of, world_table
from nemesis.plan import FaultPlan
from workloads import WORKLOADS, Settings, WorkloadPlan, kind_of, shown, topics_of, unknown_name

#: Findings that are accepted, beside a plan.
ACCEPTED_FILE: Final = "accepted.toml"
#: Kafka's own rule for topic names (org.apache.kafka.common.internals.Topic).
TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


def read_plan(path: Path, overrides: Mapping[str, object] | None = None) -> Plan:
    """The plan in the file ``path``; ``overrides`` fix settings that the file leaves open or says otherwise.

    Raises:
        PlanError: one sentence with the place in the file.
    """
    try:
        text = _text(path)
    except OSError as error:
        raise PlanError(f"cannot read the plan {path}: {error.strerror}; name a TOML file") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path}: byte {error.start} is not UTF-8; name a plan, a TOML file in UTF-8") from error
    plan = parse_plan(text, str(path), overrides, name=path.stem)
    return msgspec.structs.replace(plan, file=str(path), accepted=_beside(path))


def _text(path: Path) -> str:
    """The text of a file, which some editors begin with a byte order mark.

    Raises:
        OSError: it cannot be read, or is a pipe or a device, which may never end.
    """
    if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return path.read_text(encoding="utf-8-sig")


def _beside(path: Path) -> str:
    """The text of ``accepted.toml`` beside the plan, as it is; what judges findings understands it."""
    accepted = path.with_name(ACCEPTED_FILE)
    try:
        return _text(accepted)
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
        raise plan_key.wrong(TOO_DEEP) from error
    except ValueError as error:  # Python's limit for the digits of an integer
        raise plan_key.wrong(ENDLESS) from error
    refuse_too_deep(table, plan_key)
    refuse_endless_numbers(table, plan_key)
    refuse_misplaced(table, keys_of(PlanFile), plan_key)
    story, own_story = story_in(table, plan_key)
    top = record_of(PlanFile, {"name": name, **table}, plan_key)
    families = (story,) if story else top.families
    given = schedule_in(top.schedule, families, top.brokers, plan_key) if "schedule" in table else None
    plan = Plan(
        **shared(Plan, top)
        | {
            "choices": tuple(choices_in(top, overrides or {}, plan_key)),
            "families": families,
            "worlds": tuple(_worlds(table, top, plan_key)),
            "text": text,
            "expected": expected_in(top.expected, families, top.worlds, plan_key / "expected"),
            "schedule": given,
            "story": story,
            "own_story": own_story,
        }
    )
    for refuse in _REFUSALS:
        refuse(plan, plan_key)
    refuse_idle(top, plan.worlds, plan_key)
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


#: The refusals of a whole plan, in this order: keys that do not go together.
_REFUSALS: Final[tuple[Callable[[Plan, PlanKey], None], ...]] = (
    refuse_too_many_runs,
    check_placement,
    check_scenarios,
    check_given,
    _refuse_impatience,
    _refuse_cleaning,
    _refuse_ages,
    check_transactions,
    check_upgrade,
    check_applications,
    check_groups,
)


def _worlds(table: Table, top: PlanFile, root: PlanKey) -> Iterator[WorldPlan]:
    every, plan_key = top.worlds, root / "worlds"
    application = application_of(top.application, root / "application")
    if not every:
        raise plan_key.wrong("the plan names no world; add [worlds.simulated], [worlds.processes] or [worlds.kafka]")
    known_keys(every, get_args(worlds.WorldName), plan_key)
    writes = writes_in(top.writes, root / "writes") if "writes" in table else None
    for name in every:
        own, here = table_at(every, name, plan_key), plan_key / name
        refuse_misplaced(own, keys_of(WorldTable), here)
        keys = world_table(name, own, here)
        workload = _workload(_workload(WorkloadPlan(), top.workload, root), keys.workload, here)
        workload = with_application(workload, application, {**top.workload, **keys.workload})
        _refuse_topics(workload, here / "workload")
        workload = listed(workload, writes, {root: top.workload, here: keys.workload})
        few = FaultPlan(dead_brokers_max=min(FaultPlan().dead_brokers_max, top.brokers))
        faults = _faults(_faults(few, top.faults, top.brokers, root), keys.faults, top.brokers, here)
        if "schedule" not in table and faults.healed_ms_min + faults.fault_ms_min > workload.duration_ms:
            raise here.wrong(
                f"no fault fits in: healed_ms_min={faults.healed_ms_min} and fault_ms_min={faults.fault_ms_min} exceed "
                f"duration_ms={workload.duration_ms}; raise duration_ms or lower the others"
            )
        world = world_of(name, keys, top.brokers, workload.topic, here)
        refuse_too_many_writes(workload, world, here)
        _refuse_needs(workload, world, here)
        if world.machines and keys.parallel > 1:
            raise (here / "parallel").wrong("the machines of an inventory carry one run at a time; leave this key out")
        # A scripted story and a given schedule leave little or nothing to chance.
        drawn = "story" not in table and "schedule" not in table
        yield WorldPlan(
            world=world,
            runs=keys.runs or (world.drawn_runs if drawn else 1),
            parallel=keys.parallel or world.parallel,
            workload=workload,
            faults=faults,
        )


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


def _workload(base: WorkloadPlan, own: Table, plan_key: PlanKey) -> WorkloadPlan:
    here = plan_key / "workload"
    refuse_misplaced(own, keys_of(WorkloadPlan), here)
    workload = msgspec.structs.replace(base, **values_in(WorkloadPlan, own, here))
    if workload.name not in WORKLOADS:
        raise (here / "name").wrong(unknown_name("workload", workload.name, WORKLOADS))
    _refuse_topics(workload, here)
    if (partitions := workload.topics * workload.partitions) > BOUNDS["partitions"].most:
        raise (here / "topics").wrong(
            f"{workload.topics} topics of {workload.partitions} log partitions are {partitions} in all; the most are "
            f"{BOUNDS['partitions'].most}: {BOUNDS['partitions'].reason}"
        )
    return workload


def _refuse_topics(workload: WorkloadPlan, plan_key: PlanKey) -> None:
    for topic in topics_of(workload):
        if not TOPIC.fullmatch(topic) or workload.topic in {".", ".."}:
            named = workload.topic if workload.application is None else topic
            raise plan_key.wrong(
                f'topic={shown(named)} cannot name a topic; use letters, digits, ".", "_", "-", at most 249'
            )


def _faults(base: FaultPlan, own: Table, brokers: int, plan_key: PlanKey) -> FaultPlan:
    here = plan_key / "faults"
    scenarios = chosen_scenarios(own, base.scenarios, here)
    if "families" in own:
        raise (here / "families").wrong("write families at the top of the plan; each is a row of the matrix")
    plain = {name: value for name, value in own.items() if name not in {"scenarios", OLDER_KEY}}
    refuse_misplaced(plain, keys_of(FaultPlan), here)
    faults = msgspec.structs.replace(base, scenarios=scenarios, **values_in(FaultPlan, plain, here))
    if faults.fault_ms_min > faults.fault_ms_max:
        raise here.wrong(f"fault_ms_min={faults.fault_ms_min} exceeds fault_ms_max={faults.fault_ms_max}; swap them")
    if faults.dead_brokers_max > brokers:
        raise here.wrong(
            f"dead_brokers_max={faults.dead_brokers_max} exceeds the {brokers} brokers of the plan; lower it"
        )
    return faults

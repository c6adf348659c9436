"""Reads the families, scenarios and stories that a plan names.

Unknown names are refused, and chosen scenarios that chance may draw too long or above the budget.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from harness.plan.model import OwnStory, Plan, WorldPlan
from harness.plan.values import PlanKey, Table, choices_of, key_of, of_kind
from nemesis.roles import largest_rack
from nemesis.scenarios import FAMILIES, SCRIPTED, Part, Scenario, Scene, Timings, scenarios_named
from nemesis.schedule import most_stopped
from workloads import Settings, reason_of, shown, unknown_name

#: The plan's name in its campaign's directory (harness.records.files.PLAN_FILE).
_PLAN_FILE: Final = "plan.toml"
#: The settings that :func:`timings_of` reads.
_TIMED: Final = ("broker.session.timeout.ms", "replica.lag.time.max.ms", "request.timeout.ms")
#: The name of the key ``scenarios`` in older plans.
OLDER_KEY: Final = "stories"
#: The number of brokers, and of replicas, of a scripted story.
_SCRIPT_BROKERS: Final = 3


def families_in(name: str, plan_key: PlanKey) -> list[str]:
    """The families that ``name`` joins ("kill+partition")."""
    if "," in name:
        entries = [part.strip() for part in name.split(",")]
        raise plan_key.wrong(
            f"{shown(name)} is not one family; write {shown(entries)}, or {shown('+'.join(entries))} for faults of "
            "each in one run"
        )
    parts = name.split("+")
    if len(parts) > 1 and "" in parts:
        raise plan_key.wrong(
            f'{shown(name)} has a "+" without a family on both sides; write, for example, "kill" or "kill+pause"'
        )
    for part in parts:
        if part not in FAMILIES:
            raise plan_key.wrong(unknown_name("fault family", part, FAMILIES, ", ".join(FAMILIES)))
    return parts


def story_in(table: Table, plan_key: PlanKey) -> tuple[str, OwnStory | None]:
    """The number of the scripted story that a plan performs, empty where it names none, and its file if it has one."""
    story: str = of_kind(table.get("story", ""), str, plan_key / "story")
    own = _own_story(story, plan_key) if story.endswith(".toml") else None
    if own:
        story = _number(own)
    if story and not SCRIPTED.fullmatch(story):
        problem = f'{shown(story)} is not the number of a story; write one such as "S40"'
        raise (
            (PlanKey(own.file) / "number").wrong(problem)
            if own
            else (plan_key / "story").wrong(f'{problem}, or a file such as "my.toml"')
        )
    for key in ("families", "schedule", "writes"):
        if story and key in table:
            raise (plan_key / key).wrong(f"the story {story} is all that happens in a run; leave the {key} out")
    return story, own


def _own_story(word: str, plan_key: PlanKey) -> OwnStory:
    """The story file ``word`` beside the plan, or below; the campaign's directory keeps both in the same places."""
    here, path = plan_key / "story", PurePosixPath(word)
    if path.is_absolute() or ".." in path.parts:
        raise here.wrong(f"{shown(word)} is outside the plan's directory; put the story into it, or below")
    if path == PurePosixPath(_PLAN_FILE):
        raise here.wrong(f"{shown(word)} is the name of the plan in a campaign; give the story another name")
    try:
        return OwnStory(file=word, text=(Path(plan_key.file).parent / path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise here.wrong(f"{shown(word)} cannot be read ({reason_of(error)}); name a story file in UTF-8") from error


def _number(own: OwnStory) -> str:
    try:
        return str(tomllib.loads(own.text).get("number"))
    except tomllib.TOMLDecodeError as error:
        raise PlanKey(own.file).wrong(f"not valid TOML: {error}") from error


def chosen_scenarios(table: Table, base: tuple[str, ...], plan_key: PlanKey) -> tuple[str, ...]:
    """The ``scenarios`` of a plan's table of faults, else ``base``; older plans call them ``stories``."""
    key = key_of(table, "scenarios", OLDER_KEY, plan_key)
    if key not in table:
        return base
    words = choices_of(table[key], plan_key / key)
    for word in words:
        if not scenarios_named(str(word), FAMILIES):
            raise (plan_key / key).wrong(_unknown_scenario(str(word)))
    return tuple(map(str, words))


def _unknown_scenario(word: str) -> str:
    """A sentence with the scenarios of the family that ``word`` begins with, else with those that have a number."""
    names = dict.fromkeys(
        name for family in FAMILIES.values() for scenario in family.every_scenario for name in family.names(scenario)
    )
    family = word.partition("/")[0]
    if family in FAMILIES:
        there_are = ", ".join(name for name in names if name.startswith(f"{family}/"))
    else:
        there_are = f"{', '.join(sorted(name for name in names if '/' not in name))}, and FAMILY/NAME"
    return unknown_name("scenario", word, names, there_are)


def check_scenarios(plan: Plan, plan_key: PlanKey) -> None:
    """Refuse chosen scenarios that no family of the plan has, and families and budgets that leave none of them.

    A scripted story writes to one log partition, and chooses nothing.
    """
    if plan.story:
        _check_script(plan, plan_key)
        return
    for world in plan.worlds:
        cells = [tuple(family.split("+")) for family in plan.families]
        here = plan_key / f"worlds.{world.world.name}" / "faults.scenarios"
        for word in world.faults.scenarios:
            if not any(scenarios_named(word, families) for families in cells):
                having = [family for family in FAMILIES if scenarios_named(word, [family])]
                raise here.wrong(f"{shown(word)} is a scenario of the family {' or '.join(having)}; add that family")
        for families in cells if world.faults.scenarios else ():
            scenarios = [named for word in world.faults.scenarios for named in scenarios_named(word, families)]
            if not scenarios:
                raise here.wrong(f"the family {'+'.join(families)} has none of these scenarios; leave the family out")
            _check_budget(plan, world, scenarios, here)


def _check_script(plan: Plan, plan_key: PlanKey) -> None:
    """A script is about brokers 0, 1 and 2, which all replicate its one log partition."""
    story = f"the story {plan.story}"
    if plan.brokers != _SCRIPT_BROKERS:
        raise (plan_key / "brokers").wrong(f"{story} has brokers 0, 1 and 2; write brokers = 3, or leave it out")
    if any(choice.settings["replication.factor"] != _SCRIPT_BROKERS for choice in plan.choices):
        raise (plan_key / "settings").wrong(f"{story} has replicas on brokers 0, 1 and 2; write replication.factor = 3")
    for world in plan.worlds:
        here = plan_key / f"worlds.{world.world.name}"
        if world.faults.scenarios:
            raise (here / "faults.scenarios").wrong(f"{story} is all that happens in a run; leave this key out")
        if len(world.workload.log_partitions) != 1:
            raise (here / "workload").wrong(
                f"{story} writes to one log partition; write partitions = 1, and leave topics out"
            )


def _check_budget(plan: Plan, world: WorldPlan, scenarios: Iterable[tuple[str, Scenario]], plan_key: PlanKey) -> None:
    faults, duration_ms = world.faults, world.workload.duration_ms
    # Thousands of choices have a few different timings.
    by_settings = {tuple(choice.settings[name] for name in _TIMED): choice.settings for choice in plan.choices}
    every_timings = [timings_of(Settings.from_mapping(settings)) for settings in by_settings.values()]
    for family, scenario in scenarios:
        name = f"{family}/{scenario.name}"
        for timings in every_timings:
            parts = _longest(scenario, plan, world, timings)
            stopped = most_stopped(parts, plan.brokers, largest_rack(plan.racks))
            if stopped > faults.dead_brokers_max:
                raise plan_key.wrong(
                    f"{name} stops {stopped} brokers at once; raise dead_brokers_max from {faults.dead_brokers_max}"
                )
            needed_ms = faults.healed_ms_min + max(part.end_ms for part in parts)
            if needed_ms > duration_ms:
                raise plan_key.wrong(f"{name} may take {needed_ms} ms; raise duration_ms from {duration_ms}")


def _longest(scenario: Scenario, plan: Plan, world: WorldPlan, timings: Timings) -> list[Part]:
    """The scenario as chance would draw it longest: every draw at its top."""
    scene = Scene(
        draw=lambda _, bound: bound - 1,
        timings=timings,
        fault_ms_min=world.faults.fault_ms_min,
        fault_ms_max=world.faults.fault_ms_max,
        brokers=plan.brokers,
        partitions=len(world.workload.log_partitions),
    )
    return scenario.parts(scene)


def timings_of(settings: Settings) -> Timings:
    """The settings that decide how long a fault must last to matter."""
    return Timings(
        session_ms=settings.broker_session_timeout_ms,
        lag_ms=settings.replica_lag_time_max_ms,
        request_ms=settings.request_timeout_ms,
        retention_ms=settings.delete_retention_ms,
        member_ms=settings.session_timeout_ms,
        transaction_ms=settings.transaction_timeout_ms,
    )


def with_scenarios(plan: Plan, words: Iterable[str]) -> Plan:
    """The plan with these scenarios instead of its own in every world."""
    plan_key = PlanKey("--scenario")
    scenarios = chosen_scenarios({"scenarios": list(words)}, (), plan_key)
    worlds = tuple(
        msgspec.structs.replace(world, faults=msgspec.structs.replace(world.faults, scenarios=scenarios))
        for world in plan.worlds
    )
    chosen = msgspec.structs.replace(plan, worlds=worlds)
    check_scenarios(chosen, plan_key)
    return chosen

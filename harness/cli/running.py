"""`ackproof run` and `ackproof campaign`."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from harness.campaign.judge import check_campaign
from harness.campaign.replay import trace_missing
from harness.campaign.stages import Stages, conduct
from harness.choices import Choices
from harness.cli.outcome import tell
from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_HELD, PlanError
from harness.java import usable_java
from harness.plan import LATEST, SEED_MAX, Existing, Kafka, Plan, RunSpec, read_plan, require_kind, with_stories
from harness.plan.stories import families_in
from harness.plan.values import Place
from harness.records.run_record import exact_campaign, new_campaign
from harness.report import witnesses, write
from harness.run.perform import perform
from harness.run.phases import planned
from harness.worlds.kafka.rehearsal import PREFACE, rehearse, require_machines
from harness.worlds.kafka.world import release_for

RESULTS: Final = Path("results")

plan_argument = click.argument("plan_path", metavar="PLAN", type=directory_argument)
seed_range = click.IntRange(0, SEED_MAX)
dry_option = click.option("--dry-run", is_flag=True, help="Say what would be done on machines over SSH; do nothing.")
out_option = click.option("--out", type=directory_argument, help="The campaign's directory, instead of results/NAME.")


@click.command()
@plan_argument
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="Fix a setting; may be repeated.")
@click.option("--family", help="The fault family, if the plan has several.")
@click.option("--world", help="The world, if the plan has several.")
@click.option("--story", "stories", multiple=True, metavar="S09", help="Tell this story; may be repeated.")
@click.option("--seed", type=seed_range, help="The run's own seed, instead of one derived from the plan's.")
@out_option
@dry_option
@as_json
@click.pass_obj
def run(
    state: State,
    plan_path: Path,
    *,
    settings: Sequence[str],
    family: str | None,
    world: str | None,
    stories: Sequence[str],
    seed: int | None,
    out: Path | None,
    dry_run: bool,
    json_: bool,
) -> int:
    """Do one run of PLAN: one choice of settings, one fault family, one world, one seed."""
    plan = read_plan(plan_path, _overrides(settings))
    if family is not None:
        families_in(family, Place("--family"))
    if family is not None and stories:
        plan = msgspec.structs.replace(plan, families=(family,))
    if stories:
        plan = with_stories(plan, stories)
    one = plan.single(family, world, seed)
    return _rehearse(state, [one]) if dry_run else _conduct(state, plan, [one], out, json_=json_)


@click.command()
@plan_argument
@click.option("--seed", type=seed_range, help="Replace the plan's seed, and with it every run's.")
@out_option
@dry_option
@as_json
@click.pass_obj
def campaign(state: State, plan_path: Path, seed: int | None, out: Path | None, *, dry_run: bool, json_: bool) -> int:
    """Do every run of PLAN, check all histories, and write one report; its path is the last line."""
    plan = read_plan(plan_path)
    if seed is not None:
        plan = msgspec.structs.replace(plan, seed=seed)
    return _rehearse(state, plan.runs()) if dry_run else _conduct(state, plan, plan.runs(), out, json_=json_)


def _rehearse(state: State, runs: list[RunSpec]) -> int:
    require_machines(runs)
    _see_to_releases(runs)
    for line in PREFACE:
        state.say(line)
    for one in runs:
        state.say(f"## {one.directory()}")
        rehearse(one, planned(one, Choices(one.seed).draw), state.say)
    return EXIT_HELD


def _conduct(state: State, plan: Plan, runs: list[RunSpec], out: Path | None, *, json_: bool) -> int:
    _see_to_what_is_needed(runs)
    directory = exact_campaign(out) if out else new_campaign(RESULTS, plan.name)
    state.err.print(f"{len(runs)} runs of {plan.name} into {directory}", markup=False)
    if not out:
        _point_latest(directory)
    report = conduct(
        plan, runs, directory, Stages(perform, check_campaign, witnesses, trace_missing, write), state.progress()
    )
    return tell(state, directory, report, json_=json_)


def _see_to_what_is_needed(runs: list[RunSpec]) -> None:
    """Say what is missing now, and not after minutes of runs."""
    usable_java()
    _see_to_releases(runs)
    for security in {run.world.security for run in runs if isinstance(run.world, Existing)}:
        security.check()


def _see_to_releases(runs: list[RunSpec]) -> None:
    for run in {run.cell: run for run in runs if isinstance(run.world, Kafka)}.values():
        release_for(require_kind(run.world, Kafka), run.chosen())


def _point_latest(directory: Path) -> None:
    """A link to the newest campaign is a convenience: a file system without links is no reason to stop."""
    with contextlib.suppress(OSError):
        link = directory.parent / LATEST
        link.unlink(missing_ok=True)
        link.symlink_to(directory.name)


def _overrides(settings: Sequence[str]) -> dict[str, object]:
    """``NAME=VALUE`` as in a plan; several may stand in one, with commas between."""
    values: dict[str, object] = {}
    for assignment in (part for text in settings for part in text.split(",")):
        name, separator, value = assignment.partition("=")
        if not separator:
            raise PlanError(f'--settings {assignment}: write NAME=VALUE, for example "acks=1"')
        values[name.strip()] = _value(value.strip())
    return values


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text

"""`ackproof campaign`, and what `ackproof run` shares with it: one run is a small campaign."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from checkers import counted
from harness.campaigns.campaign import Campaign, begin_session, room_sentences
from harness.cli.limits import limits_where_all_can_run, refuse_the_impossible
from harness.cli.matrix_table import show_campaign
from harness.cli.numbers import BoundedNumber
from harness.cli.terminal import RESULTS, Terminal, path_type, takes_json
from harness.cli.workers import master_option
from harness.ground.choices import Choices
from harness.ground.errors import EXIT_HELD, NamedWronglyError, PlanError
from harness.ground.machine.java import usable_java
from harness.plan import ACCEPTED_FILE, LATEST, Existing, Plan, RunSpec, read_plan
from harness.records.accepted_file import parse_accepted
from harness.records.files import exact_campaign, new_campaign
from harness.runs.run import planned, story_of
from nemesis.faults import InstanceCut

plan_argument = click.argument("plan_path", metavar="PLAN", type=path_type)
seed_range = BoundedNumber("seed")
dry_option = click.option("--dry-run", is_flag=True, help="Say what would be done by SSH or commands; do nothing.")
out_option = click.option("--out", type=path_type, help="The campaign's directory, instead of results/NAME.")


@click.command()
@plan_argument
@click.option("--seed", type=seed_range, help="Replace the plan's seed, and with it every run's.")
@out_option
@click.option("--continue", "continue_", is_flag=True, help="Go on in --out: do what did not complete there.")
@dry_option
@master_option
@takes_json
def campaign(
    terminal: Terminal,
    plan_path: Path,
    *,
    seed: int | None,
    out: Path | None,
    continue_: bool,
    dry_run: bool,
    master: str | None,
) -> int:
    """Do every run of PLAN, judge them all, and write one report.

    The report's path is the last line.

    With --master, runs in virtual time are performed by a Spark cluster; what it sends is written and judged here.

    With --continue, runs that completed in --out stay; those that are missing, failed or were interrupted are done
    again, and then everything that follows. The plan and the seed must be those with which the campaign began.
    """
    plan = read_plan(plan_path)
    if seed is not None:
        plan = msgspec.structs.replace(plan, seed=seed)
    if master is not None:
        _refuse_real_time(plan)
    if dry_run:
        return rehearse_all(terminal, plan.runs())
    if not continue_:
        notes = room_sentences(plan.runs())
        return show_campaign(terminal, *perform_stages(terminal, plan, plan.runs(), out, notes, master=master))
    if out is None:
        raise NamedWronglyError("--continue needs the directory of the campaign; name it with --out DIR")
    see_to_what_is_needed(terminal, plan.runs(), master)
    begun = Campaign.continued(plan, out)
    terminal.note(f"{len(begun.missing)} of {len(plan.runs())} runs are left to do in {out}")
    return show_campaign(terminal, out, begun.perform_stages(terminal.progress(), master=master))


def _refuse_real_time(plan: Plan) -> None:
    for world in (each.world for each in plan.worlds if not each.world.virtual_time):
        raise PlanError(
            f"with --master executors perform the runs, which they can in virtual time only; leave --master out, or "
            f"take [worlds.{world.name}] out of the plan"
        )


def rehearse_all(terminal: Terminal, runs: list[RunSpec]) -> int:
    """Say what ``runs`` on machines over SSH, or with an operator's own commands, would do; nothing is done."""
    from harness.worlds.kafka.rehearsal import PREFACE, rehearse, require_machines  # noqa: PLC0415 - brings clients

    if all(isinstance(run.world, Existing) and run.world.commands for run in runs):
        return _rehearse_commands(terminal, runs)
    require_machines(runs)
    refuse_unfit(runs)
    for sentence in limits_where_all_can_run(runs):
        terminal.note(sentence)
    for line in PREFACE:
        terminal.say(line)
    for run in runs:
        terminal.say(f"## {run.directory()}")
        rehearse(run, planned(run, Choices(run.seed).draw), terminal.say)
    return EXIT_HELD


def _rehearse_commands(terminal: Terminal, runs: list[RunSpec]) -> int:
    from harness.worlds.commanded_rehearsal import rehearse_commands  # noqa: PLC0415 - brings clients

    refuse_unfit(runs)
    terminal.say("Nothing is done. In a run the cluster decides who leads, and targets are chosen when a fault begins.")
    for run in runs:
        terminal.say(f"## {run.directory()}")
        rehearse_commands(run, planned(run, Choices(run.seed).draw), terminal.say)
    return EXIT_HELD


def perform_stages(
    terminal: Terminal,
    plan: Plan,
    runs: list[RunSpec],
    out: Path | None,
    notes: Sequence[str] = (),
    *,
    master: str | None = None,
) -> tuple[Path, Path]:
    """Say ``notes``, do ``runs`` of ``plan`` with all that follows; the directory, and the report's path."""
    refuse_wrongly_accepted(plan)
    see_to_what_is_needed(terminal, runs, master)
    for sentence in notes:
        terminal.note(sentence)
    directory = exact_campaign(out) if out else new_campaign(RESULTS, plan.name)
    terminal.note(f"{counted(len(runs), 'run')} of {plan.name} into {directory}")
    if not out:
        _point_latest(directory)
    return directory, Campaign.new(plan, runs, directory).perform_stages(terminal.progress(), master=master)


def refuse_wrongly_accepted(plan: Plan) -> None:
    """Refuse an ``accepted.toml`` beside the plan that cannot be understood, before hours of runs."""
    parse_accepted(plan.accepted, str(Path(plan.file).with_name(ACCEPTED_FILE)))


def see_to_what_is_needed(terminal: Terminal, runs: list[RunSpec], master: str | None = None) -> None:
    """Say what is missing now, and not after minutes of runs."""
    refuse_unfit(runs)
    usable_java()
    limits = limits_where_all_can_run(runs)
    for world in {run.world for run in runs if isinstance(run.world, Existing)}:
        from harness.worlds.kafka import require_answer  # noqa: PLC0415 - brings clients

        require_answer(world)
    for sentence in limits:
        terminal.note(sentence)
    if master is not None:
        begin_session(terminal.progress(), master)


def refuse_unfit(runs: list[RunSpec]) -> None:
    """Refuse what a plan asks of a world that can never do it: scripted stories, and families of faults.

    Raises:
        PlanError: what it is, and what to write.
    """
    refuse_the_impossible(runs)
    for run in {(run.cell, run.world.name): run for run in runs if run.story}.values():
        story_of(run)
    for application in {id(run.workload.application): run.workload.application for run in runs}.values():
        if application is not None:
            from harness.worlds.real.instances import require_command  # noqa: PLC0415 - brings clients

            require_command(application)
    if any(InstanceCut.family in run.faults.families for run in runs):
        from harness.worlds.real.instance_links import require_cuts  # noqa: PLC0415 - likewise

        require_cuts()


def _point_latest(directory: Path) -> None:
    """A link to the newest campaign is a convenience: a file system without links is no reason to stop."""
    with contextlib.suppress(OSError):
        link = directory.parent / LATEST
        link.unlink(missing_ok=True)
        link.symlink_to(directory.name)

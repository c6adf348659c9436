"""The command `ackproof soak`."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from checkers import counted
from harness.campaigns.campaign import is_unbegun, room_sentences, soak_estimate, write_plan
from harness.campaigns.soak import (
    DISK,
    TRIES,
    Night,
    SoakRequest,
    bytes_of,
    perform_soak,
    read_nights,
    read_request,
    refuse_too_little,
    seconds_of,
)
from harness.cli.campaign import out_option, refuse_wrongly_accepted, see_to_what_is_needed, seed_range
from harness.cli.numbers import WholeNumber
from harness.cli.plan import lasting
from harness.cli.terminal import RESULTS, Terminal, path_type, takes_json
from harness.ground.errors import NamedWronglyError
from harness.ground.machine.this_call import this_command, utc_now
from harness.ground.progress import Progress
from harness.plan import Plan, read_plan
from harness.records.files import PLAN_FILE, exact_campaign, new_campaign

#: Seeds of soaks, exact in JSON everywhere.
SEEDS: Final = 2**48


@click.command(name="soak")
@click.argument("plan_path", metavar="[PLAN]", type=path_type, required=False)
@click.option("--for", "for_", metavar="DURATION", help="How long to work, for example 8h or 90m.")
@click.option("--until-finding", is_flag=True, help="End after the first finding that no promise permits.")
@click.option("--fail-fast", is_flag=True, help="As --until-finding, and stop runs that have begun.")
@click.option("--disk", help=f"The largest size of the soak's directory.  [default: {DISK}]")
@click.option("--memory", help="The most memory of all its processes; by default what the machine has.")
@click.option(
    "--tries",
    type=WholeNumber(0, 1000),
    help=f"How often a finding of a real world is tried again.  [default: {TRIES}]",
)
@click.option("--seed", type=seed_range, help="Draw turns and runs from this; by default each soak has a new one.")
@out_option
@click.option("--resume", type=path_type, metavar="DIR", help="Go on with the soak in DIR, for the rest of its time.")
@click.option(
    "--nights", multiple=True, metavar="DIR", help="Earlier nights, at or below a path or URI; may be repeated."
)
@takes_json
def soak(
    terminal: Terminal,
    plan_path: Path | None,
    *,
    for_: str | None,
    until_finding: bool,
    fail_fast: bool,
    disk: str | None,
    memory: str | None,
    tries: int | None,
    seed: int | None,
    out: Path | None,
    resume: Path | None,
    nights: Sequence[str],
) -> int:
    """Run the cells of PLAN in turns for hours, judging each run.

    Findings are kept. The report's path is the last line.

    A soak that died goes on with --resume DIR, which needs nothing else; its limits and the earlier nights can be given
    again.
    """
    limits: dict[str, object] = {
        "for_s": None if for_ is None else seconds_of(for_),
        "disk_bytes": None if disk is None else bytes_of(disk),
        "memory_bytes": None if memory is None else bytes_of(memory),
        "tries": tries,
        "nights": tuple(nights) or None,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    if resume is not None:
        begun_with = {"PLAN": plan_path, "--seed": seed, "--out": out}
        begun_with |= {"--until-finding": until_finding or None, "--fail-fast": fail_fast or None}
        return _resume(terminal, resume, given, [name for name, value in begun_with.items() if value is not None])
    if plan_path is None:
        raise NamedWronglyError("name a PLAN, or the soak to go on with: --resume DIR")
    if for_ is None and not (until_finding or fail_fast):
        raise NamedWronglyError("say when to end: --for 8h, --until-finding or --fail-fast")
    plan = read_plan(plan_path)
    asked = SoakRequest(
        name=plan.name,
        plan=plan.file,
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        began=utc_now(),
        command=this_command(),
        until_finding=until_finding,
        fail_fast=fail_fast,
    )
    asked = msgspec.structs.replace(asked, **given)
    refuse_wrongly_accepted(plan)
    refuse_too_little(asked.disk_bytes, [world.world for world in plan.worlds])
    see_to_what_is_needed(terminal, plan.runs())
    for sentence in room_sentences(plan.runs(), by_the_clock=True):
        terminal.note(sentence)
    if asked.for_s is not None:
        _warn_if_short(terminal, plan, asked.for_s)
    earlier = read_nights(nights, out or RESULTS)
    # A soak of this plan that was killed before it was written down is begun again.
    unbegun = out if out and is_unbegun(out, plan) else None
    directory = unbegun or (exact_campaign(out) if out else new_campaign(RESULTS, f"{plan.name}-soak"))
    write_plan(plan, directory)
    return _perform(terminal, directory, plan, asked, earlier)


def _resume(terminal: Terminal, directory: Path, given: Mapping[str, object], begun_with: Sequence[str]) -> int:
    """Go on with a soak; ``begun_with`` are options that only its beginning has."""
    if begun_with:
        raise NamedWronglyError(f"a soak is resumed with what it began with; leave {', '.join(begun_with)} out")
    asked = msgspec.structs.replace(read_request(directory), **given)
    return _perform(terminal, directory, read_plan(directory / PLAN_FILE), asked, read_nights(asked.nights, directory))


def _warn_if_short(terminal: Terminal, plan: Plan, for_s: float) -> None:
    """Say beforehand which worlds need more time than they are given."""
    for needed in soak_estimate(plan, RESULTS):
        if needed.total_s > for_s:
            terminal.note(
                f"In the world {needed.world}, {lasting(for_s)} is short: to put each cell to the test takes about "
                f"{counted(needed.runs, 'run')} of {lasting(needed.run_s)}, {needed.parallel} at a time, so about "
                f"{lasting(needed.total_s)}. A cell that gets fewer is not exercised (exit code 2)."
            )


def _perform(terminal: Terminal, directory: Path, plan: Plan, asked: SoakRequest, earlier: Sequence[Night]) -> int:
    terminal.note(f"soak of {plan.name} in {directory}, seed {asked.seed}")
    ending = perform_soak(
        directory, plan, asked, Progress() if terminal.as_json else terminal.progress(), earlier=earlier
    )
    report = None if ending.report is None else str(ending.report)
    terminal.answer(
        {
            "directory": str(directory),
            "exit_code": ending.exit_code,
            "report": report,
            "sentences": ending.sentences,
        },
        [*ending.sentences, *filter(None, [report])],
    )
    return ending.exit_code

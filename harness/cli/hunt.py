"""The command `ackproof hunt`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

import click

from checkers import counted
from harness.cli.campaign import seed_range
from harness.cli.numbers import WholeNumber, seconds_type
from harness.cli.terminal import Terminal, assigned, takes_json
from harness.cli.workers import chosen_workers, master_option, workers_option
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, HarnessError, PlanError
from harness.ground.machine.spread import Workers
from harness.lab.search import (
    ASSERTION,
    CRASH,
    EVERYTHING,
    HuntedRun,
    HuntResult,
    Portfolio,
    as_it_is,
    portfolios_for,
    shrunk,
)
from harness.lab.search import hunt as hunt_for
from workloads import PlantedBug, SettingsError, spelled, unknown_name

#: Planted bugs that a simulated cluster can have.
BUGS: Final = {bug: bug for bug in get_args(PlantedBug) if bug != "none"}
#: Words of an alarm that are printed.
TEXT_MAX: Final = 160


@click.command()
@click.argument("bugs", nargs=-1, metavar="[BUG]...")
@click.option("--settings", multiple=True, metavar="NAME=VALUE", help="Hunt for what this setting does wrong instead.")
@click.option("--as-is", is_flag=True, help="Hunt in the code as it is until something is found, as for a bug.")
@click.option(
    "--clean",
    type=WholeNumber(1, 10**9),
    metavar="N",
    help="Perform N runs of the code as it is, of every family, and go on after a finding.",
)
@click.option("--portfolio", "names", multiple=True, metavar="NAME", help="Only this portfolio; may be repeated.")
@click.option(
    "--run",
    "number",
    type=WholeNumber(0, 10**9),
    metavar="N",
    help="Only this run of one --portfolio, as hunts name it.",
)
@click.option("--seconds", type=seconds_type, default=60.0, show_default=True, help="Seconds of one core for each bug.")
@click.option("--seed", type=seed_range, default=1, show_default=True)
@workers_option
@master_option
@click.option(
    "--shrink", type=seconds_type, default=20.0, show_default=True, help="Seconds to shrink the run that found a bug."
)
@takes_json
def hunt(
    terminal: Terminal,
    bugs: Sequence[str],
    *,
    settings: Sequence[str],
    as_is: bool,
    clean: int | None,
    names: Sequence[str],
    number: int | None,
    seconds: float,
    seed: int,
    workers: int | None,
    master: str | None,
    shrink: float,
) -> int:
    """Look for planted bugs with random schedules.

    Runs in virtual time go on until a checker or an invariant notices the bug. A BUG is a value of planted.bug; without
    one all are hunted (docs/guides/hunt.md). A finding counts only if the same run without the bug finds nothing. Exit
    code 0 if all were found, 2 if one was not; 1 if the broker as it is breaks a promise.
    """
    performers, first = chosen_workers(workers, master), 0
    if number is not None:
        if clean is not None:
            raise PlanError("--run performs one run, and --clean many; leave one of the two out")
        if len(names) != 1:
            raise PlanError(f"--run {number} is a run of one portfolio; name it, and only it, with --portfolio NAME")
        performers, first, seconds = 1, number, 0.0
    if clean is not None:
        if bugs or settings or as_is:
            raise PlanError(
                "--clean hunts in the code as it is: name no bug, --settings or --as-is, or leave --clean out"
            )
        return _clean(terminal, clean, _chosen(names, EVERYTHING), seed, performers)
    results = []
    for changed in _changes(bugs, assigned(settings), as_is=as_is):
        portfolios = _chosen(names, portfolios_for(changed))
        try:
            result = hunt_for(
                changed, seed=seed, seconds=seconds, workers=performers, portfolios=portfolios, first=first
            )
        except SettingsError as error:
            raise PlanError(str(error)) from error
        results.append(result)
        terminal.answer(result, _lines(result))
        if result.stopped:
            raise HarnessError(result.stopped)
    if len(results) == 1 and results[0].alarming and shrink > 0 and not terminal.as_json:
        _show_small(terminal, results[0].alarming, shrink)
    spurious = sum(len(result.spurious) for result in results) + sum(
        result.alarming is not None for result in results if not result.changed
    )
    seen = sum(result.alarming is not None for result in results)
    if not terminal.as_json:
        of_bugs = "" if as_is else f"{seen} of {len(results)} found, "
        terminal.say(f"{of_bugs}seed {seed}; {counted(spurious, 'finding')} about the broker as it is")
    if spurious:
        return EXIT_BROKEN
    return EXIT_HELD if seen == len(results) or as_is else EXIT_UNKNOWN


def _changes(bugs: Sequence[str], settings: Mapping[str, Any], *, as_is: bool) -> list[Mapping[str, Any]]:
    """List what to hunt for, one after the other, as settings."""
    if as_is + bool(settings) + bool(bugs) > 1:
        raise PlanError("name bugs, --settings or --as-is, and only one of the three")
    for bug in bugs:
        if bug not in BUGS:
            raise PlanError(unknown_name("bug", bug, BUGS))
    if as_is or settings:
        return [settings]
    return [{"planted.bug": bug} for bug in bugs or BUGS]


def _chosen(names: Sequence[str], portfolios: Sequence[Portfolio]) -> Sequence[Portfolio]:
    by_name = {portfolio.name: portfolio for portfolio in EVERYTHING}
    for name in names:
        if name not in by_name:
            raise PlanError(unknown_name("portfolio", name, by_name))
    return [by_name[name] for name in names] or portfolios


def _lines(result: HuntResult) -> Iterator[str]:
    what = ", ".join(f"{name}={spelled(value)}" for name, value in result.changed.items()) or "as it is"
    spent = f"{counted(result.schedules, 'schedule')}, {result.seconds:.1f} s of one core"
    if result.alarming is None:
        yield f"{what}: nothing found in {spent}"
    else:
        yield f"{what}: {', '.join(alarm.by for alarm in result.alarming.alarms)} after {spent}"
        yield from _of(result.alarming, result.changed, result.seed)
    for run in result.spurious:
        yield f"{what}: run {run.number} shows a finding even without it: that is about the broker itself"
        yield from _of(run, result.changed, result.seed)


def _of(run: HuntedRun, changed: Mapping[str, Any], seed: int) -> Iterator[str]:
    """Say what a run found, and how to perform it again."""
    yield f"  repeat it: ackproof hunt {_words(changed)} --portfolio {run.portfolio} --seed {seed} --run {run.number}"
    for alarm in run.alarms:
        yield f"  {alarm.by}: {alarm.text[:TEXT_MAX]}"


def _words(changed: Mapping[str, Any]) -> str:
    """Say what is hunted for, as on the command line."""
    if set(changed) == {"planted.bug"}:
        return str(changed["planted.bug"])
    return " ".join(f"--settings {name}={spelled(value)}" for name, value in changed.items()) or "--as-is"


def _show_small(terminal: Terminal, run: HuntedRun, seconds: float) -> None:
    """The faults of the run, as few and short as they can be in that time; what ended early stays as it is."""
    schedule = run.spec.schedule
    if all(alarm.by not in (ASSERTION, CRASH) for alarm in run.alarms):
        small = shrunk(run.spec, seconds=seconds)
        terminal.say(f"the same with {small.in_words()} (of {small.faults[1]} and {small.operations[1]}):")
        schedule = small.run.schedule
    if schedule is not None:
        terminal.say(schedule.describe())


def _clean(terminal: Terminal, count: int, portfolios: Sequence[Portfolio], seed: int, workers: Workers) -> int:
    seconds, alarmed = 0.0, []
    progress = terminal.progress()
    with progress.phase("runs", count):
        for run in as_it_is(count, seed=seed, workers=workers, portfolios=portfolios):
            seconds += run.seconds
            progress.advance()
            if run.alarms:
                alarmed.append(run)
                terminal.answer(run, _of(run, {}, seed))
    rate = count / seconds if seconds else 0.0
    of_all = f"{counted(count, 'schedule')} of {counted(len(portfolios), 'portfolio')} from seed {seed}"
    summary = f"{of_all}: {len(alarmed)} with a finding"
    terminal.answer(
        {"schedules": count, "seed": seed, "seconds": seconds, "findings": len(alarmed)},
        [f"{summary}; {seconds:.0f} s of one core, {rate:.1f} a second"],
    )
    return EXIT_BROKEN if alarmed else EXIT_HELD

"""The command `ackproof plan`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from checkers import PROMISED_BY, counted, promise_under, settings_words
from harness.campaigns.campaign import Estimate, estimate, room_sentences, soak_estimate
from harness.cli.campaign import plan_argument, refuse_unfit
from harness.cli.limits import limit_sentences
from harness.cli.terminal import RESULTS, Terminal, takes_json
from harness.ground.errors import EXIT_HELD
from harness.plan import Plan, RunSpec, read_plan


@click.command()
@plan_argument
@click.option("--explain", is_flag=True, help="Say how long each world takes, and what settings promise.")
@takes_json
def plan(terminal: Terminal, plan_path: Path, *, explain: bool) -> int:
    """Say what PLAN would run, or why it cannot be run.

    Nothing is started. It also says what a world, its host or this machine cannot do, and which cells get too few
    faults to be held.

    With --json every run is named, with its cell, its world and its seed.
    """
    wanted = read_plan(plan_path)
    runs, expected = wanted.runs(), estimate(wanted, RESULTS)
    refuse_unfit(runs)
    limits = [*limit_sentences(runs), *room_sentences(runs)]
    if terminal.as_json:
        terminal.json(_facts(wanted, runs, expected, limits))
        return EXIT_HELD
    if explain:
        _show_worlds(terminal, wanted, expected)
        for line in (*_promises(runs), "", *_seeds(wanted, runs), ""):
            terminal.fold(line)
    for line in (f"{wanted.name}: {_size(wanted, runs)}, about {lasting(expected.total_s)}", *limits):
        terminal.fold(line)
    return EXIT_HELD


def _facts(wanted: Plan, runs: list[RunSpec], expected: Estimate, limits: list[str]) -> dict[str, object]:
    return {
        "name": wanted.name,
        "seed": wanted.seed,
        "cells": len(wanted.cells),
        "estimated_s": round(expected.total_s),
        "worlds": [expectation._asdict() for expectation in expected.worlds],
        "limits": limits,
        "runs": [{"world": run.world.name, "cell": run.cell, "seed": run.seed} for run in runs],
    }


def _size(wanted: Plan, runs: list[RunSpec]) -> str:
    parts = (
        counted(len(wanted.choices), "choice") + " of settings",
        counted(len(wanted.families), "family", "families") + f" of faults ({', '.join(wanted.families)})",
        counted(len(wanted.worlds), "world"),
    )
    return f"{counted(len(runs), 'run')} of {counted(len(wanted.cells), 'cell')}: {' × '.join(parts)}"


def _show_worlds(terminal: Terminal, wanted: Plan, expected: Estimate) -> None:
    rows = [
        (
            expectation.world,
            f"{world.runs:,}",
            f"{expectation.runs:,}",
            str(expectation.parallel),
            lasting(expectation.run_s),
            lasting(expectation.total_s),
            expectation.basis,
        )
        for world, expectation in zip(wanted.worlds, expected.worlds, strict=True)
    ]
    rows.append(("check and report", "", "", "", "", lasting(expected.checking_s), "the numbers of runs and writes"))
    terminal.table(["world", "runs a cell", "runs", "at a time", "one run", "all", "estimated from"], rows)
    least = max(soak_estimate(wanted, RESULTS), key=lambda world: world.total_s)
    terminal.say("")
    terminal.say(
        f"ackproof soak puts each cell to the test in about {lasting(least.total_s)} (the world {least.world})"
    )
    terminal.say("")


def _promises(runs: list[RunSpec]) -> Iterator[str]:
    """Say what each choice of settings promises, at worst, under each family; equal promises share a line."""
    if story := runs[0].story:
        yield f"{story} is a scripted story; its outcome under each choice of settings: ackproof stories {story}"
        return
    first = {(run.cell, run.world.name): run for run in reversed(runs)}
    names = [name for name in runs[0].settings if len({str(run.settings[name]) for run in runs}) > 1]
    together: dict[tuple[str, str], dict[str, None]] = {}
    for run in reversed(first.values()):
        words = settings_words({name: run.settings[name] for name in names or PROMISED_BY})
        sentence = promise_under(run.chosen(), run.family.split("+")).sentence()
        together.setdefault((words, sentence), {})[run.family] = None
    for (words, sentence), families in together.items():
        yield f"{words} under {', '.join(families)}: {sentence}"
    yield "rule n: docs/reference/replication-rules.md#rule-n"


def _seeds(wanted: Plan, runs: list[RunSpec]) -> Iterator[str]:
    yield f"seed {wanted.seed}; the seed of every run follows from it; the first run: {runs[0].directory()}"


def lasting(seconds: float) -> str:
    """As coarse as the estimate is."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"

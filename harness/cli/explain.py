"""The command `ackproof explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.cli.numbers import WholeNumber
from harness.cli.terminal import Terminal, path_type, takes_json
from harness.ground.errors import EXIT_HELD
from harness.lab.search import FUTURES, explain_run
from harness.records.explanation_file import EXPLANATION_FILE, Explanation


@click.command()
@click.argument("run_dir", type=path_type)
@click.option("--finding", default="", metavar="NAME", help="Explain this anomaly (duplicate), not the worst one.")
@click.option(
    "--futures", type=WholeNumber(1, 1000), default=FUTURES, show_default=True, help="Continuations of each step."
)
@takes_json
def explain(terminal: Terminal, run_dir: Path, *, finding: str, futures: int) -> int:
    """Say how a finding came about, and when it became certain.

    The run in RUN_DIR is taken back to each step and continued with other draws of chance: with the faults that were
    still to come, and with every fault ended then and none to follow. Writes explanation.json into RUN_DIR, which the
    report shows. See docs/guides/shrink.md.
    """
    explanation = explain_run(run_dir, terminal.progress(), finding, futures)
    terminal.answer(explanation, [*described(explanation), _conclusion(explanation, run_dir)])
    return EXIT_HELD


def described(explanation: Explanation) -> Iterator[str]:
    """The narrative, and a line for each step that the run was taken back to."""
    yield f"what it shows: {explanation.finding}"
    yield from explanation.sentences
    if explanation.twin:
        yield explanation.twin
    if explanation.steps:
        yield "right after           as planned  if healed   of these futures show it"
    for step in explanation.steps:
        shares = f"{step.as_planned:>4}/{step.futures:<5} {step.if_healed:>4}/{step.futures:<5}"
        yield f"{step.time_us / 1e6:10.3f} s          {shares}   {step.what}"


def _conclusion(explanation: Explanation, run_dir: Path) -> str:
    where = run_dir / EXPLANATION_FILE
    step = explanation.no_return
    if step is None:
        return f"at every step that was tried it could still be avoided: {where}"
    since = f"{step.time_us / 1e6:.3f} s ({step.what})"
    before = explanation.avoidable_us
    avoidable = "" if before is None else f"; at {before / 1e6:.3f} s it still could"
    return f"from {since} on it could not be avoided{avoidable}: {where}"

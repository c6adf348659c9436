"""`ackproof check` and `ackproof report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.markup import escape

from harness.cli.outcome import tell
from harness.cli.terminal import State, as_json, directory_argument
from harness.judge import Judged, exit_code, judge_all, write_verdicts
from harness.progress import Quiet
from harness.report import write

#: Worst first.
COLOURS: Final = {
    "broken promise": "bold red",
    "not valid": "bold red",
    "unknown": "magenta",
    "permitted": "yellow",
    "held": "green",
}
#: Rows of the table; the rest stands in verdicts.jsonl.
ROWS_MAX: Final = 40


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=directory_argument)
@as_json
@click.pass_obj
def check(state: State, paths: Sequence[Path], *, json_: bool) -> int:
    """Judge the histories at PATH...: run directories, campaigns, or files of JSON lines.

    Verdicts are written to verdicts.jsonl in each directory named; the last line is the verdict and where they are.
    """
    judged = judge_all(paths, Quiet() if json_ else state.progress())
    written = [str(write_verdicts(path, _below(path, judged))) for path in paths if path.is_dir()]
    if json_:
        for one in judged:
            state.json({"path": str(one.path), "outcome": one.outcome, "reason": one.reason, "verdict": one.verdict})
        return exit_code(judged)
    _tell(state, judged)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in Counter(one.outcome for one in judged).items())
    what = "1 history" if len(judged) == 1 else f"{len(judged)} histories"
    state.say(f"{what}: {counted}" + (f"; see {' '.join(written)}" if written else ""))
    return exit_code(judged)


def _below(path: Path, judged: Sequence[Judged]) -> list[Judged]:
    return [one for one in judged if one.path.is_relative_to(path)]


def _tell(state: State, judged: Sequence[Judged]) -> None:
    worst = sorted(judged, key=lambda one: list(COLOURS).index(one.outcome))
    headers = ["history", "outcome", "anomalies", "acknowledged", "in faults", "why not told"]
    state.table(headers, [_row(one) for one in worst[:ROWS_MAX]])
    if len(judged) > ROWS_MAX:
        state.say(f"... and {len(judged) - ROWS_MAX} more")


def _row(one: Judged) -> tuple[str, ...]:
    verdict = one.verdict
    anomalies = ", ".join(f"{count} {name}" for name, count in verdict.counts.items() if count)
    return (
        escape(str(one.path)),
        f"[{COLOURS[one.outcome]}]{one.outcome}[/]",
        anomalies or "none",
        str(verdict.exercise.acknowledged),
        str(verdict.exercise.acknowledged_in_fault),
        escape(one.reason or ""),
    )


@click.command()
@click.argument("campaign_dir", type=directory_argument)
@as_json
@click.pass_obj
def report(state: State, campaign_dir: Path, *, json_: bool) -> int:
    """Make matrix.json and report.html again from the files of CAMPAIGN_DIR; the report's path is the last line."""
    return tell(state, campaign_dir, write(campaign_dir), json_=json_)

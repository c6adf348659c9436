"""`ackproof check` and `ackproof report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.findings import tell_judged
from harness.cli.outcome import tell
from harness.cli.terminal import State, as_json, directory_argument
from harness.errors import EXIT_PLAN
from harness.judge import Judged, exit_code, is_unreadable, judge_all, write_verdicts
from harness.progress import Quiet
from harness.report import write


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=directory_argument)
@as_json
@click.pass_obj
def check(state: State, paths: Sequence[Path], *, json_: bool) -> int:
    """Judge the histories at PATH...: run directories, campaigns, or files of JSON lines.

    Verdicts are written to verdicts.jsonl in each directory named; the last line is the verdict and where they are.
    Exit code 64 if none of the histories could be read.
    """
    judged = judge_all(paths, Quiet() if json_ else state.progress())
    written = [str(write_verdicts(path, _below(path, judged))) for path in paths if path.is_dir()]
    code = EXIT_PLAN if all(is_unreadable(one) for one in judged) else exit_code(judged)
    if json_:
        for one in judged:
            state.json({"path": str(one.path), "outcome": one.outcome, "reason": one.reason, "verdict": one.verdict})
        return code
    tell_judged(state, judged, written)
    return code


def _below(path: Path, judged: Sequence[Judged]) -> list[Judged]:
    return [one for one in judged if one.path.is_relative_to(path)]


@click.command()
@click.argument("campaign_dir", type=directory_argument)
@as_json
@click.pass_obj
def report(state: State, campaign_dir: Path, *, json_: bool) -> int:
    """Make matrix.json and report.html again from the files of CAMPAIGN_DIR; the report's path is the last line."""
    return tell(state, campaign_dir, write(campaign_dir), json_=json_)

"""The command `ackproof replay`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click

from checkers import Finding, Scratch, ScratchKind, Verdict, judge
from harness.campaigns.campaign import Replayed, rerun
from harness.campaigns.campaign import replay as replay_run
from harness.cli.terminal import RESULTS, Terminal, path_type, takes_json
from harness.ground.choices import Choices
from harness.ground.errors import EXIT_HARNESS, EXIT_HELD, EXIT_UNKNOWN
from harness.records.files import CLUSTER_FILE, new_campaign
from harness.records.run_record import RunRecord, read_record
from harness.runs.run import read_choices

#: Findings of one anomaly that are printed; the rest is in the verdict.
FINDINGS_MAX: Final = 5


@click.command()
@click.argument("run_dir", type=path_type)
@click.option(
    "--choices",
    "choices_file",
    type=path_type,
    help="Perform the draws of chance in this file, such as a changed copy of RUN_DIR's choices.json.",
)
@takes_json
def replay(terminal: Terminal, run_dir: Path, choices_file: Path | None) -> int:
    """Do the run in RUN_DIR again, and compare the two.

    Exit code 0 if the same was found, else 70.

    A simulated run comes out byte for byte, and its cluster.jsonl and choices.json are written on the way. A run of
    real processes only repeats its plan, and one with --choices is another run: each gets a directory of its own, and
    the exit code is 2 if outcomes, kinds of findings or the log partitions that did not come back differ.
    """
    record = read_record(run_dir)
    if choices_file is not None:
        return _rerun(terminal, run_dir, record, read_choices(choices_file))
    if not record.world.virtual_time:
        terminal.note(
            f"{run_dir} ran on real processes: its seed repeats the plan of faults, not their effect; running it again"
        )
        return _rerun(terminal, run_dir, record, None)
    with Scratch(ScratchKind.REPLAY) as scratch:
        result = replay_run(run_dir, scratch.path / "again")
    terminal.answer(result, [*described(result.again), _conclusion(result, run_dir)])
    return EXIT_HELD if result.identical else EXIT_HARNESS


def _conclusion(result: Replayed, run_dir: Path) -> str:
    if result.identical:
        return f"reproduced identically, history and findings; what the cluster did is in {run_dir / CLUSTER_FILE}"
    what = "; ".join(result.differences) or "the findings are the same, but the histories differ"
    why = "the program or a library has changed since (campaign.json has versions), or something here is left to chance"
    return f"not reproduced: {what}; {why}"


def _rerun(terminal: Terminal, run_dir: Path, record: RunRecord, choices: Choices | None) -> int:
    directory = new_campaign(RESULTS, f"rerun-{record.seed}")
    before, again = rerun(record, run_dir, directory, choices)
    changed = [*_changes(record, before, again)]
    outcome = "; ".join(changed) or "the same outcome, and every kind of finding showed again"
    terminal.answer(
        {"recorded": before, "again": again, "directory": str(directory), "changed": changed},
        [*described(again), f"{outcome}: {directory}"],
    )
    return EXIT_UNKNOWN if changed else EXIT_HELD


def _changes(record: RunRecord, before: Verdict, again: Verdict) -> Iterator[str]:
    """Say what is new and what is gone: the outcome, kinds of findings, log partitions that did not come back."""
    settings, exercised_min = record.spec().chosen(), record.spec().faults.exercised_min
    first, second = (judge(settings, verdict, exercised_min) for verdict in (before, again))
    if first.outcome is not second.outcome:
        yield f"{first.outcome} before, {second.outcome} now"
    for what, old, new in (("", before.counts, again.counts), ("stalled ", first.stalled, second.stalled)):
        if gone := sorted(set(old) - set(new)):
            yield f"did not show again: {what}{', '.join(gone)}"
        if added := sorted(set(new) - set(old)):
            yield f"new: {what}{', '.join(added)}"


def described(verdict: Verdict, line: Callable[[Finding], str] = Finding.on_a_line) -> Iterator[str]:
    """A line for each kind of finding, with their number, and one for each of the first few."""
    for anomaly, findings in verdict.anomalies.items():
        count = verdict.counts.get(anomaly, len(findings))
        yield f"{anomaly}: {count}" + (f", the first {FINDINGS_MAX} of them:" if count > FINDINGS_MAX else "")
        yield from (f"  {line(finding)}" for finding in findings[:FINDINGS_MAX])
    if not verdict.anomalies:
        yield "no anomaly"

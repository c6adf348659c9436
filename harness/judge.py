"""Judges recorded histories: finds them below paths, has PySpark check all of them in one job, writes the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from checkers.pipeline import check

from checkers.judgement import judge as apply_promise
from checkers.verdict import Verdict
from harness.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, ResultsError
from harness.java import usable_java
from harness.progress import Progress
from harness.rundir import HISTORY, RUN_FILE, VERDICTS_FILE, read_record, run_directories, write_file
from workloads.history import HistoryError
from workloads.history.jsonl import import_jsonl


class Judged(NamedTuple):
    """A history, the verdict on it, and what that means under its settings.

    ``outcome`` is "broken promise", "permitted" (findings that the settings permit), "held", or "unknown"; a history
    without a run (from another tool) has no settings, so every finding counts as broken.
    """

    directory: Path
    verdict: Verdict
    outcome: str


def check_campaign(directory: Path, progress: Progress) -> list[Judged]:
    """Judge every run below ``directory`` in one Spark job and write ``verdicts.jsonl`` there."""
    return check_below(directory, run_directories(directory), progress)


def check_below(directory: Path, histories: Sequence[Path], progress: Progress) -> list[Judged]:
    """Judge ``histories``, which lie in or below ``directory``, and write ``verdicts.jsonl`` there."""
    judged = judge_all(histories, progress)
    lines = []
    for one in judged:
        name = one.directory.relative_to(directory).as_posix()
        lines.append(msgspec.json.encode(msgspec.structs.replace(one.verdict, history=name)) + b"\n")
    write_file(directory / VERDICTS_FILE, b"".join(lines))
    return judged


def judge_all(histories: Sequence[Path], progress: Progress) -> list[Judged]:
    """Judge the histories of these directories.

    Raises:
        JavaError: there is no Java for PySpark.
        ResultsError: nothing is there to judge.
    """
    if not histories:
        raise ResultsError("no history to judge; name run directories, a campaign, or files of JSON lines")
    usable_java()
    with progress.phase(f"checking {len(histories)} histories", None):
        verdicts = check([directory / HISTORY for directory in histories])
    return [
        Judged(directory, verdict, _outcome(directory, verdict))
        for directory, verdict in zip(histories, verdicts, strict=True)
    ]


def histories_at(path: Path, scratch: Path) -> list[Path]:
    """The directories with histories that ``path`` stands for; JSON lines are stored below ``scratch`` first."""
    if path.is_file():
        directory = scratch / path.stem
        try:
            import_jsonl(path, directory / HISTORY)
        except HistoryError as error:
            raise ResultsError(str(error)) from error
        return [directory]
    if (path / HISTORY).is_dir():
        return [path]
    return run_directories(path)


def exit_code(judged: Sequence[Judged]) -> int:
    """1 if a promise was broken, 2 if any history could not be judged, else 0."""
    outcomes = {one.outcome for one in judged}
    if "broken promise" in outcomes:
        return EXIT_BROKEN
    return EXIT_UNKNOWN if "unknown" in outcomes else EXIT_HELD


def _outcome(directory: Path, verdict: Verdict) -> str:
    if not (directory / RUN_FILE).is_file():
        return "unknown" if verdict.valid == "unknown" else "held" if verdict.valid else "broken promise"
    judgement = apply_promise(read_record(directory).chosen(), verdict)
    if judgement.broken:
        return "broken promise"
    if not judgement.judged:
        return "unknown"
    return "permitted" if judgement.permitted else "held"

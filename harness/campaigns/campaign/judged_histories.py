"""Judges recorded histories: finds them below paths, has PySpark check all of them in one job, writes the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers import (
    NO_HISTORY,
    SHOWN,
    Cell,
    FoundHistory,
    Outcome,
    Place,
    Scratch,
    ScratchKind,
    SourceKind,
    Verdict,
    VerdictLine,
    build_matrix,
    check,
    counted,
    exit_code_of,
    fetch,
    find_histories,
)
from harness.ground.errors import NamedWronglyError, NoHistoryError, NotReachableError, ResultsError
from harness.ground.machine.java import usable_java
from harness.ground.machine.translated_errors import translated_errors
from harness.ground.progress import Progress
from harness.records.files import HISTORY, RUN_FILE, VERDICTS_FILE
from harness.records.run_record import Ended, RunRecord, read_record
from harness.records.verdict_lines import WrittenVerdicts, cells_of_campaign, facts_of, write_lines, write_matrix


class CheckOptions(NamedTuple):
    """Choices for a check other than the usual ones; see :func:`checkers.spark.pipeline.check`."""

    master: str | None = None
    ww_deps: bool | None = None
    shown: int | None = SHOWN
    scratch: Path | None = None


DEFAULT_OPTIONS: Final = CheckOptions()


class JudgedHistory(NamedTuple):
    """A history and its line of verdicts; of a run (``is_run``) with its judgement, if its ``run.json`` can be read."""

    path: Place
    line: VerdictLine
    is_run: bool = False

    @property
    def outcome(self) -> Outcome:
        """In one word."""
        return self.line.outcome


def check_campaign(directory: Path, progress: Progress) -> list[JudgedHistory]:
    """Judge every run below ``directory`` in one Spark job; write ``verdicts.jsonl`` and ``matrix.json`` there."""
    judged = judge_all([directory], progress)
    write_verdicts(directory, judged)
    write_matrix(directory)
    return judged


def judge_all(
    paths: Sequence[Place], progress: Progress, options: CheckOptions = DEFAULT_OPTIONS
) -> list[JudgedHistory]:
    """Judge the histories at ``paths``, all in one Spark job: campaigns, runs, stored histories, JSON lines.

    Raises:
        JavaError: there is no Java for PySpark.
        ResultsError: nothing is there to judge; by its class, because a path is wrong, or has no history.
        NotReachableError: a store does not answer, or cannot be asked from here.
        HarnessError: Spark failed.
    """
    histories = find_histories(paths)
    for history in histories:
        if history.kind is SourceKind.NOTHING:
            absent = isinstance(history.path, Path) and not history.path.exists()
            raise (NamedWronglyError if absent else NoHistoryError)(str(history.problem))
        if history.kind is SourceKind.UNREACHABLE:
            raise (ResultsError if isinstance(history.path, Path) else NotReachableError)(str(history.problem))
    usable_java()
    what = counted(len(histories), "history", "histories")
    with translated_errors(), progress.phase(f"checking {what}", None):
        verdicts = check(histories, progress=partial(progress.reach, unit="Spark tasks"), **options._asdict())
    return [_judged(history, verdict) for history, verdict in zip(histories, verdicts, strict=True)]


def write_verdicts(directory: Path, judged: Sequence[JudgedHistory]) -> WrittenVerdicts:
    """Write ``verdicts.jsonl`` in ``directory``; histories below it are named by their place there."""
    return write_verdicts_to(directory / VERDICTS_FILE, judged, below=directory)


def write_verdicts_to(file: Path, judged: Sequence[JudgedHistory], *, below: Path | None = None) -> WrittenVerdicts:
    """Write a line for each history into ``file``, which may have been there; their names as they were given.

    Histories in the directory ``below`` are named by their place in it. See :func:`write_lines`.
    """
    lines = []
    for history in judged:
        inside = below is not None and history.path.is_relative_to(below)
        name = history.path.relative_to(below).as_posix() if below is not None and inside else str(history.path)
        lines.append(msgspec.structs.replace(history.line, history=name))
    return write_lines(file, lines)


class Counted(NamedTuple):
    """The facts that decide a check: ``cells`` of the runs below places that were named, and what lies ``alone``."""

    cells: Sequence[Cell]
    alone: Sequence[JudgedHistory]

    @property
    def exit_code(self) -> int:
        """1 if a promise was broken or a foreign history is not valid, 2 if any could not be judged, else 0."""
        red = [cell.outcome for cell in self.cells if not cell.excused]
        return exit_code_of([*red, *(history.outcome for history in self.alone)])


def count_cells(places: Sequence[Place], judged: Sequence[JudgedHistory]) -> Counted:
    """Runs below one of ``places`` count as its cells, as in a campaign's matrix; all others by themselves."""
    inside = [
        [history for history in judged if history.line.judgement and _is_below(directory, history)]
        for directory in places
    ]
    cells = [
        cell
        for directory, runs in zip(places, inside, strict=True)
        for cell in _accepting(directory, build_matrix(history.line for history in runs).cells)
    ]
    return Counted(cells, [history for history in judged if not any(history in runs for runs in inside)])


def _accepting(directory: Place, cells: list[Cell]) -> list[Cell]:
    return cells_of_campaign(directory, cells) if isinstance(directory, Path) and directory.is_dir() else cells


def _is_below(directory: Place, history: JudgedHistory) -> bool:
    return history.path != directory and history.path.is_relative_to(directory)


def is_unreadable(history: JudgedHistory) -> bool:
    """True of a history of another tool that could not be read. Runs leave what they leave: they are unknown."""
    return history.outcome is Outcome.UNKNOWN and not history.is_run and history.line.says_nothing


def _record_of(run: Place) -> RunRecord:
    if isinstance(run, Path):
        return read_record(run)
    try:
        with Scratch(ScratchKind.RUN) as scratch:
            fetch(run / RUN_FILE, scratch.path)
            return read_record(scratch.path)
    except OSError as error:
        raise ResultsError(f"{run / RUN_FILE} cannot be read: {error}") from error


def _judged(source: FoundHistory, verdict: Verdict) -> JudgedHistory:
    if source.kind is not SourceKind.RUN:
        return JudgedHistory(source.path, VerdictLine.of(verdict))
    try:
        record = _record_of(source.path)
    except ResultsError as error:  # one damaged file must not take the verdicts of thousands with it
        why = str(error) if source.files else f"{NO_HISTORY}: {error}"
        unknown = msgspec.structs.replace(verdict, valid="unknown", reason=why)
        return JudgedHistory(source.path, VerdictLine.of(unknown), is_run=True)
    if not source.files:
        why = f"{NO_HISTORY}: {_why_no_history(source.path, record.ended)}"
        verdict = msgspec.structs.replace(verdict, valid="unknown", reason=why)
    return JudgedHistory(
        source.path, VerdictLine.of(_of_failed_run(verdict, record.ended), facts_of(record)), is_run=True
    )


def _why_no_history(run: Place, ended: Ended) -> str:
    """Say why. A directory that may not be listed looks empty to a search for histories, so it is asked itself."""
    try:
        if isinstance(run, Path):
            next((run / HISTORY).iterdir(), None)
    except FileNotFoundError:
        pass
    except OSError as error:
        return f"{run / HISTORY} cannot be listed ({error.strerror})"
    if ended.status == "completed":
        return "the run completed, and its files are not there any more"
    return ended.reason or "it was killed before it recorded anything"


def _of_failed_run(verdict: Verdict, ended: Ended) -> Verdict:
    """A run that failed in the harness shows nothing by its silence, however whole its history is."""
    if ended.status != "harness-failed" or verdict.valid == "unknown":
        return verdict
    return msgspec.structs.replace(verdict, valid="unknown", reason=f"failed in the harness: {ended.reason}")

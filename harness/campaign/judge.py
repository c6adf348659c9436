"""Judges recorded histories: finds them below paths, has PySpark check all of them in one job, writes the verdicts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers.errors import CheckError, JavaMissingError
from checkers.spark import stores
from checkers.spark.pipeline import check
from checkers.spark.sources import histories_among, is_foreign
from checkers.spark.stores import Place, StorePath
from checkers.verdicts.judgement import VerdictLine
from checkers.verdicts.outcome import Outcome, exit_code_of
from checkers.verdicts.partial_verdict import SHOWN
from checkers.verdicts.verdict import Verdict
from harness.campaign.progress import Progress
from harness.errors import HarnessError, JavaError, NamedWronglyError, ResultsError
from harness.java import usable_java
from harness.records.run_record import (
    HISTORY,
    RUN_FILE,
    VERDICTS_FILE,
    Ended,
    RunRecord,
    read_record,
    run_directories,
)
from harness.records.verdict_lines import Written, facts_of, write_lines, write_matrix
from workloads.history import HistoryError

#: The advice of every refusal.
NAME_WHAT: Final = "name runs, a campaign, or files of JSON lines"


class Asked(NamedTuple):
    """How to judge, where somebody wants other than the usual; see :func:`checkers.spark.pipeline.check`."""

    master: str | None = None
    ww_deps: bool | None = None
    shown: int | None = SHOWN
    scratch: Path | None = None


USUAL: Final = Asked()


class Found(NamedTuple):
    """A history at ``path``; of a run (``is_run``) there may be nothing but its ``run.json``."""

    path: Place
    is_run: bool
    has_history: bool = True


class Judged(NamedTuple):
    """A history and what is said of it; of a run (``is_run``) with its judgement, if its ``run.json`` can be read."""

    path: Place
    line: VerdictLine
    is_run: bool = False

    @property
    def outcome(self) -> Outcome:
        """In one word."""
        return self.line.outcome


def check_campaign(directory: Path, progress: Progress) -> list[Judged]:
    """Judge every run below ``directory`` in one Spark job; write ``verdicts.jsonl`` and ``matrix.json`` there."""
    judged = judge_all([directory], progress)
    write_verdicts(directory, judged)
    write_matrix(directory)
    return judged


def judge_all(paths: Sequence[Place], progress: Progress, asked: Asked = USUAL) -> list[Judged]:
    """Judge the histories at ``paths``, all in one Spark job: campaigns, runs, stored histories, JSON lines.

    Raises:
        JavaError: there is no Java for PySpark.
        ResultsError: nothing is there to judge.
        HarnessError: Spark failed.
    """
    by_path = {found.path: found for path in paths for found in _histories_at(path)}
    usable_java()
    readable = [found.path for found in by_path.values() if found.has_history]
    what = "1 history" if len(by_path) == 1 else f"{len(by_path)} histories"
    with spoken(), progress.phase(f"checking {what}", None):
        told = partial(progress.reach, unit="Spark tasks")
        checked = check(readable, progress=told, **asked._asdict())
    verdicts = dict(zip(readable, checked, strict=True))
    return [_judged(found, verdicts.get(found.path)) for found in by_path.values()]


def write_verdicts(directory: Path, judged: Sequence[Judged]) -> Written:
    """Write ``verdicts.jsonl`` in ``directory``; histories below it are named by their place there."""
    return write_verdicts_to(directory / VERDICTS_FILE, judged, below=directory)


def write_verdicts_to(file: Path, judged: Sequence[Judged], *, below: Path | None = None) -> Written:
    """Write a line for each history into ``file``, which may have been there; their names as they were given.

    Histories in the directory ``below`` are named by their place in it. See :func:`write_lines`.
    """
    lines = []
    for one in judged:
        inside = below is not None and one.path.is_relative_to(below)
        name = one.path.relative_to(below).as_posix() if below is not None and inside else str(one.path)
        lines.append(msgspec.structs.replace(one.line, history=name))
    return write_lines(file, lines)


def exit_code(judged: Sequence[Judged]) -> int:
    """1 if a promise was broken or a foreign history is not valid, 2 if any could not be judged, else 0."""
    return exit_code_of(one.outcome for one in judged)


def is_unreadable(one: Judged) -> bool:
    """Whether ``one`` is a history of another tool that could not be read. Runs leave what they leave: unknown."""
    return one.outcome is Outcome.UNKNOWN and not one.is_run and one.line.says_nothing


@contextmanager
def spoken() -> Iterator[None]:
    """Turn what checkers and histories raise into the harness's own errors; their texts say what to do."""
    try:
        yield
    except JavaMissingError as error:
        raise JavaError(str(error)) from error
    except HistoryError as error:
        raise ResultsError(str(error)) from error
    except CheckError as error:
        raise HarnessError(str(error)) from error


def _histories_at(path: Place) -> list[Found]:
    if isinstance(path, StorePath):
        return _histories_in_store(path)
    if not path.exists():
        raise NamedWronglyError(f"{path} does not exist; {NAME_WHAT}")
    if path.is_file():
        return [Found(path, is_run=False)]
    runs = [Found(run, is_run=True, has_history=_has_history(run)) for run in run_directories(path)]
    found = runs or [Found(history, is_run=False) for history in _stored_or_foreign(path)]
    if not found:
        raise NamedWronglyError(f"{path} holds no history; {NAME_WHAT}")
    return found


def _histories_in_store(path: StorePath) -> list[Found]:
    """As in a local directory, from one listing of the store."""
    try:
        files = stores.files_at(path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be listed: {error}") from error
    stored = histories_among(files)
    runs = [file.parent for file in files if file.name == RUN_FILE]
    foreign = [file for file in files if file == path or (file.parent == path and is_foreign(file))]
    found = [Found(run, is_run=True, has_history=run / HISTORY in stored) for run in runs]
    found = found or [Found(history, is_run=False) for history in [*stored, *foreign]]
    if not found:
        raise NamedWronglyError(f"{path} holds no history; {NAME_WHAT}")
    return found


def _stored_or_foreign(directory: Path) -> list[Path]:
    """An imported history, or else every file of JSON lines that lies in ``directory`` itself."""
    if _has_history(directory) or any(directory.glob("*.parquet")):
        return [directory]
    return sorted(path for path in directory.iterdir() if path.is_file() and is_foreign(path))


def _has_history(path: Path) -> bool:
    return any((path / HISTORY).glob("*.parquet"))


def _record_of(run: Place) -> RunRecord:
    if isinstance(run, Path):
        return read_record(run)
    try:
        with tempfile.TemporaryDirectory(prefix="ackproof-run-") as scratch:
            stores.fetch(run / RUN_FILE, Path(scratch))
            return read_record(Path(scratch))
    except OSError as error:
        raise ResultsError(f"{run / RUN_FILE} cannot be read: {error}") from error


def _without_history(path: Place) -> Verdict:
    try:
        why = _record_of(path).ended.reason or "it was killed before it recorded anything"
    except ResultsError as error:
        why = str(error)
    return Verdict(history=str(path), valid="unknown", reason=f"no history: {why}")


def _judged(found: Found, checked: Verdict | None) -> Judged:
    verdict = _without_history(found.path) if checked is None else checked
    if not found.is_run:
        return Judged(found.path, VerdictLine.of(verdict))
    try:
        record = _record_of(found.path)
    except ResultsError as error:  # one damaged file must not take the verdicts of thousands with it
        verdict = msgspec.structs.replace(verdict, valid="unknown", reason=str(error))
        return Judged(found.path, VerdictLine.of(verdict), is_run=True)
    return Judged(found.path, VerdictLine.of(_of_failed_run(verdict, record.ended), facts_of(record)), is_run=True)


def _of_failed_run(verdict: Verdict, ended: Ended) -> Verdict:
    """A run that failed in the harness shows nothing by its silence, however whole its history is."""
    if ended.status != "harness-failed" or verdict.valid == "unknown":
        return verdict
    return msgspec.structs.replace(verdict, valid="unknown", reason=f"failed in the harness: {ended.reason}")

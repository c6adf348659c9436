"""Judges recorded histories: finds them below paths, has PySpark check all of them in one job, writes the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers.errors import CheckError, JavaMissingError
from checkers.judgement import judge as apply_promise
from checkers.pipeline import check
from checkers.verdict import Verdict
from harness.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, HarnessError, JavaError, ResultsError
from harness.java import usable_java
from harness.progress import Progress
from harness.rundir import HISTORY, RUN_FILE, VERDICTS_FILE, read_record, run_directories, write_file
from workloads.history import HistoryError

#: Endings of histories of other tools, where a directory of them is named.
FOREIGN: Final = (".jsonl", ".ndjson")


class Judged(NamedTuple):
    """A history, the verdict on it, and what that means under its settings.

    ``outcome`` is "broken promise", "permitted" (findings that the settings permit), "held", or "unknown"; a history
    without a run (from another tool) has no settings and so no promise, and is "not valid" with any finding. ``reason``
    says why a history could not be judged.
    """

    path: Path
    verdict: Verdict
    outcome: str
    reason: str | None = None


def check_campaign(directory: Path, progress: Progress) -> list[Judged]:
    """Judge every run below ``directory`` in one Spark job and write ``verdicts.jsonl`` there."""
    judged = judge_all([directory], progress)
    write_verdicts(directory, judged)
    return judged


def judge_all(paths: Sequence[Path], progress: Progress) -> list[Judged]:
    """Judge the histories at ``paths``, all in one Spark job: campaigns, runs, stored histories, JSON lines.

    Raises:
        JavaError: there is no Java for PySpark.
        ResultsError: nothing is there to judge.
        HarnessError: Spark failed.
    """
    found = list(dict.fromkeys(history for path in paths for history in _histories_at(path)))
    usable_java()
    readable = [path for path in found if not _is_run(path) or _has_history(path)]
    what = "1 history" if len(found) == 1 else f"{len(found)} histories"
    with spoken(), progress.phase(f"checking {what}", None):
        verdicts = dict(zip(readable, check(readable, progress=progress.reach), strict=True))
    return [_judged(path, verdicts.get(path) or _without_history(path)) for path in found]


def write_verdicts(directory: Path, judged: Sequence[Judged]) -> Path:
    """Write ``verdicts.jsonl`` in ``directory``; histories below it are named by their place there."""
    lines = []
    for one in judged:
        inside = one.path.is_relative_to(directory)
        name = one.path.relative_to(directory).as_posix() if inside else str(one.path)
        lines.append(msgspec.json.encode(msgspec.structs.replace(one.verdict, history=name)) + b"\n")
    write_file(directory / VERDICTS_FILE, b"".join(lines))
    return directory / VERDICTS_FILE


def exit_code(judged: Sequence[Judged]) -> int:
    """1 if a promise was broken or a foreign history is not valid, 2 if any could not be judged, else 0."""
    outcomes = {one.outcome for one in judged}
    if outcomes & {"broken promise", "not valid"}:
        return EXIT_BROKEN
    return EXIT_UNKNOWN if "unknown" in outcomes else EXIT_HELD


def is_unreadable(one: Judged) -> bool:
    """Whether ``one`` is a history of another tool that could not be read. Runs leave what they leave: unknown."""
    exercise = one.verdict.exercise
    return one.outcome == "unknown" and not _is_run(one.path) and not exercise.attempted + exercise.records_read


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


def _histories_at(path: Path) -> list[Path]:
    if not path.exists():
        raise ResultsError(f"{path} does not exist; name runs, a campaign, or files of JSON lines")
    if path.is_file():
        return [path]
    found = run_directories(path) or _stored_or_foreign(path)
    if not found:
        raise ResultsError(f"{path} holds no history; name runs, a campaign, or files of JSON lines")
    return found


def _stored_or_foreign(directory: Path) -> list[Path]:
    """An imported history, or else every file of JSON lines that lies in ``directory`` itself."""
    if _has_history(directory) or any(directory.glob("*.parquet")):
        return [directory]
    own = {VERDICTS_FILE}
    return sorted(path for ending in FOREIGN for path in directory.glob(f"*{ending}") if path.name not in own)


def _is_run(path: Path) -> bool:
    return (path / RUN_FILE).is_file()


def _has_history(path: Path) -> bool:
    return any((path / HISTORY).glob("*.parquet"))


def _without_history(path: Path) -> Verdict:
    try:
        why = read_record(path).ended.reason or "it was killed before it recorded anything"
    except ResultsError as error:
        why = str(error)
    return Verdict(history=str(path), valid="unknown", reason=f"no history: {why}")


def _judged(path: Path, verdict: Verdict) -> Judged:
    if not _is_run(path):
        told = "held" if verdict.valid is True else "not valid" if verdict.valid is False else "unknown"
        return Judged(path, verdict, told, verdict.reason)
    try:
        settings = read_record(path).chosen()
    except ResultsError as error:  # one damaged file must not take the verdicts of thousands with it
        return Judged(path, verdict, "unknown", str(error))
    judgement = apply_promise(settings, verdict)
    if judgement.broken:
        return Judged(path, verdict, "broken promise")
    if not judgement.judged:
        return Judged(path, verdict, "unknown", judgement.reason)
    return Judged(path, verdict, "permitted" if judgement.permitted else "held")

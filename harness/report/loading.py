"""What a campaign's directory holds, read for the report: files only, so a report can be made again any time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from checkers.verdicts.judgement import JudgedRun
from checkers.verdicts.verdict import Verdict
from harness.errors import NamedWronglyError, ResultsError
from harness.records.run_record import (
    CAMPAIGN_FILE,
    HISTORY,
    PLAN_FILE,
    VERDICTS_FILE,
    RunRecord,
    files_of,
    read_record,
    run_directories,
)

_T = TypeVar("_T")

#: How much of the plan the report quotes: a plan is a page, and a page is 4 KB.
PLAN_CHARACTERS_MAX: Final = 20_000


class CampaignFiles:
    """The files of one campaign directory.

    Raises:
        ResultsError: a file is missing or cannot be read; the text says which and what to do.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._verdicts = _verdicts(directory)

    def runs(self) -> Iterator[JudgedRun]:
        """Every run that left a directory, with its verdict; one without is unknown, and says why."""
        for directory in run_directories(self.directory):
            record = read_record(directory)
            yield JudgedRun(
                cell=record.cell,
                family=record.family,
                world=record.world.name,
                run=directory.relative_to(self.directory).as_posix(),
                seed=record.seed,
                settings=record.chosen(),
                verdict=self.verdict(directory.relative_to(self.directory).as_posix()) or _unjudged(record),
            )

    def verdict(self, run: str) -> Verdict | None:
        """The verdict of a run, by its place in the campaign."""
        return self._verdicts.get(_key(run))

    def campaign(self) -> dict[str, Any]:
        """``campaign.json``, empty where there is none (a run made alone)."""
        path = self.directory / CAMPAIGN_FILE
        if not path.is_file():
            return {}
        with files_of(self.directory):
            content = path.read_bytes()
        return _decode(content, path, dict[str, Any], "restore it, or remove it: the report is made without it")

    def plan(self) -> str:
        """The plan as it was given, cut where it is longer than a report should quote."""
        path = self.directory / PLAN_FILE
        if not path.is_file():
            return ""
        with files_of(self.directory):
            return path.read_text(encoding="utf-8", errors="replace")[:PLAN_CHARACTERS_MAX]


def _verdicts(directory: Path) -> dict[tuple[str, ...], Verdict]:
    path = directory / VERDICTS_FILE
    if not any((directory / file).exists() for file in (VERDICTS_FILE, CAMPAIGN_FILE, "runs")):
        raise NamedWronglyError(f"{directory} is no campaign; name a directory below results/")
    if not path.is_file():
        raise ResultsError(
            f"{directory} holds no {VERDICTS_FILE}; judge its histories first: ackproof check {directory}"
        )
    with files_of(directory):
        lines = path.read_bytes().splitlines()
    advice = f"make it again with: ackproof check {directory}"
    verdicts = [_decode(line, path, Verdict, advice) for line in lines if line.strip()]
    return {_key(verdict.history): verdict for verdict in verdicts}


def _key(name: str) -> tuple[str, ...]:
    """A run's place below ``runs/``, whatever the path before it: campaigns may be moved between check and report."""
    parts = [part for part in Path(name).parts if part != HISTORY]
    return tuple(parts[len(parts) - parts[::-1].index("runs") :]) if "runs" in parts else tuple(parts)


def _decode(content: bytes, path: Path, kind: type[_T], advice: str) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path} cannot be read: {error}; {advice}") from error


def _unjudged(record: RunRecord) -> Verdict:
    ended = record.ended
    why = ended.reason or ("it was killed or is still running" if ended.status == "running" else "it was never checked")
    return Verdict(history="", valid="unknown", reason=f"no verdict: {why}")

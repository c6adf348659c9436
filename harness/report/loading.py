"""What a campaign's directory holds, read for the report: files only, so a report can be made again any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from checkers.verdicts.verdict import Verdict
from harness.errors import ResultsError
from harness.records.run_record import CAMPAIGN_FILE, PLAN_FILE, files_of
from harness.records.verdict_lines import read_lines

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
        self._lines = read_lines(directory)

    def verdict(self, run: str) -> Verdict | None:
        """The verdict of a run, by its place in the campaign."""
        return self._lines.get(run)

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


def _decode(content: bytes, path: Path, kind: type[_T], advice: str) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path} cannot be read: {error}; {advice}") from error

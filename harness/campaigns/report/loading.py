"""Reads a campaign's directory for the report: files only, so a report can be made again any time."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from checkers import Matrix, VerdictLine
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from harness.records.files import PLAN_FILE, read_file
from harness.records.searched_scopes import SearchedScope, read_searched_scopes
from harness.records.verdict_lines import read_lines, read_matrix
from harness.records.witness_file import Witnessed, read_witnesses

#: Characters of the plan that the report quotes: a plan is a page, and a page is 4 KB.
PLAN_CHARACTERS_MAX: Final = 20_000
_ADVICE: Final = "restore it, or remove it: the report is made without it"


class CampaignFiles(NamedTuple):
    """The files of one campaign directory.

    Attributes:
        witnesses: whose accounts the page has, in this order.
        lines: those of ``verdicts.jsonl``, by the run's place in the directory.
        campaign: the record in ``campaign.json``; None without that file (a run made alone).
        plan: the plan as it was given, cut where it is longer than a report should quote; empty without a plan.
        searches: exhaustive ones that lie beside the runs.
    """

    directory: Path
    matrix: Matrix
    witnesses: list[Witnessed]
    lines: dict[str, VerdictLine]
    campaign: CampaignRecord | None
    plan: str
    searches: list[SearchedScope]


def read_campaign(directory: Path) -> CampaignFiles:
    """Everything that the report quotes.

    Raises:
        NamedWronglyError: ``directory`` is not a campaign.
        ResultsError: a file is missing or cannot be read; the text says which and what to do.
    """
    lines = read_lines(directory).lines
    campaign = read_campaign_record(directory)
    quoted = (read_file(directory / PLAN_FILE, _ADVICE) or b"").decode(errors="replace")
    return CampaignFiles(
        directory,
        read_matrix(directory),
        read_witnesses(directory),
        lines,
        campaign,
        quoted[:PLAN_CHARACTERS_MAX],
        read_searched_scopes(directory),
    )

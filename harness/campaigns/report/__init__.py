"""The report: the matrix as a table in Markdown and as JUnit's XML, and one HTML page, from the files of a campaign.

Everything here reads files and writes files, so it can be repeated on old campaigns. The accounts are those of the runs
that ``witnesses.json`` names; what their brokers did is in their ``cluster.jsonl``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkers import ANOMALIES, Cell, wedged_clients
from harness.campaigns.report.accounts import Narration, accounts_of, narration_of
from harness.campaigns.report.applications import application_charts, application_sentences
from harness.campaigns.report.certificate import Certificate, as_lines, certificates_of
from harness.campaigns.report.compared import compared_with
from harness.campaigns.report.grid import bound_words, exercised_faults
from harness.campaigns.report.junit import Case, as_junit, cases_of, unfinished_words
from harness.campaigns.report.loading import read_campaign
from harness.campaigns.report.markdown import as_markdown, cases_as_markdown
from harness.campaigns.report.names import fault_name, replica_set
from harness.campaigns.report.outcomes import legend_of, style_of, terminal_colour
from harness.campaigns.report.page import card_table, content_of, page_style, render
from harness.campaigns.report.seen import seen_in
from harness.campaigns.report.setups import setups_of
from harness.campaigns.report.svg import milliseconds
from harness.campaigns.report.trend_chart import trend_chart
from harness.records.files import JUNIT_FILE, MATRIX_TEXT_FILE, REPORT_FILE, run_directories, write_file
from harness.records.verdict_lines import read_lines

__all__ = [
    "Case",
    "Certificate",
    "Narration",
    "application_sentences",
    "as_junit",
    "as_lines",
    "bound_words",
    "card_table",
    "cases_as_markdown",
    "cases_of",
    "certificates_in",
    "exercised_faults",
    "fault_name",
    "legend_of",
    "milliseconds",
    "narration_of",
    "page_style",
    "replica_set",
    "style_of",
    "terminal_colour",
    "trend_chart",
    "write",
]


def write(campaign_directory: Path, other: Path | None = None) -> Path:
    """Write ``matrix.md``, ``junit.xml`` and ``report.html`` from the campaign's files; the answer is the page's path.

    The page holds the campaign against the ``other`` one, if that is given.

    Raises:
        ResultsError: the campaign was not checked, has no witnesses yet, or a file of it cannot be read or written.
        NamedWronglyError: no campaign is there, and no run.
    """
    files = read_campaign(campaign_directory)
    cells, summary = files.matrix.cells, files.matrix.verdict
    accounts = accounts_of(files)
    write_file(campaign_directory / MATRIX_TEXT_FILE, as_markdown(summary, cells, accounts).encode())
    junit = as_junit(cases_of(cells, accounts), unfinished_words(files.campaign, cells))
    write_file(campaign_directory / JUNIT_FILE, junit)
    page = render(
        title=campaign_directory.resolve().name,
        campaign=msgspec.to_builtins(files.campaign),
        plan=files.plan,
        setups=setups_of(run_directories(campaign_directory), files.campaign.versions if files.campaign else {}),
        definitions=_definitions(cells),
        left_out=files.matrix.left_out_sentences(),
        wedged=wedged_clients(line.anomalies for line in files.lines.values()),
        applications=application_sentences(files.lines.values()),
        application_charts=application_charts(files.lines.values()),
        certificates=certificates_of(campaign_directory, files.lines),
        seen=seen_in(cells, files.lines.values()),
        other=compared_with(other, campaign_directory) if other else None,
        **content_of(summary, cells, accounts, files.searches),
    )
    path = campaign_directory / REPORT_FILE
    write_file(path, page.encode())
    return path


def certificates_in(campaign_directory: Path) -> list[Certificate]:
    """The certificates of a campaign's rolling upgrades.

    Raises:
        ResultsError: the campaign was not checked, or a file of it cannot be read.
    """
    return certificates_of(campaign_directory, read_lines(campaign_directory).lines)


def _definitions(cells: Sequence[Cell]) -> dict[str, str]:
    """Specifications of what was found, and of loss in any case, in the order of the checkers' registry."""
    shown = {name for cell in cells for name in (*cell.broken, *cell.permitted)} | {"lost-write"}
    return {name: anomaly.specification for name, anomaly in ANOMALIES.items() if name in shown}

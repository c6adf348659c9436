"""The chart of a finding that a write's own chart does not show: of groups, of transactions, of copies that differ."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from checkers import Finding
from harness.records.files import HISTORY
from harness.report.copies_chart import KEY as KEY_OF_COPIES
from harness.report.copies_chart import OfCopies, copies_chart
from harness.report.group_chart import KEY as KEY_OF_GROUPS
from harness.report.group_chart import OfGroups, group_chart
from harness.report.needed_rows import needed_of
from harness.report.transaction_chart import KEY as KEY_OF_TRANSACTIONS
from harness.report.transaction_chart import OfTransactions, transaction_chart
from nemesis.receipts import Receipt
from workloads.history import read_events


class FindingChart(NamedTuple):
    """A drawing, which may be empty, and the words of the page below it."""

    drawing: Markup = Markup("")
    words: str = ""


def finding_chart(run: Path, finding: Finding, receipts: Sequence[Receipt]) -> FindingChart:
    """The chart of ``finding`` of the run in ``run``; ``receipts`` are of the faults that took effect.

    Raises:
        HistoryError: the history cannot be read.
    """
    if not isinstance(finding, OfGroups | OfTransactions | OfCopies):
        return FindingChart()
    events = read_events(run / HISTORY, needed_of(finding))
    if isinstance(finding, OfGroups):
        return FindingChart(group_chart(events, finding, receipts), KEY_OF_GROUPS)
    if isinstance(finding, OfTransactions):
        return FindingChart(transaction_chart(events, finding, receipts), KEY_OF_TRANSACTIONS)
    return FindingChart(copies_chart(run, events, finding), KEY_OF_COPIES)

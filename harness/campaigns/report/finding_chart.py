"""The chart of a finding that a write's own chart does not show: one renderer for each kind of view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from checkers import CommitsView, CopiesView, Finding, TransactionsView
from harness.campaigns.report import copies_chart, group_chart, transaction_chart
from harness.campaigns.report.renderer import Material, Renderer
from harness.records.files import HISTORY
from nemesis.receipts import Receipt
from workloads.history import read_events

#: By kind of view; a write's own life is drawn with its account.
RENDERERS: Final[Mapping[type, Renderer]] = {
    CommitsView: group_chart.RENDERER,
    TransactionsView: transaction_chart.RENDERER,
    CopiesView: copies_chart.RENDERER,
}


class FindingChart(NamedTuple):
    """A drawing, which may be empty, and the words of the page below it."""

    drawing: Markup = Markup("")
    words: str = ""


def finding_chart(run: Path, finding: Finding, receipts: Sequence[Receipt]) -> FindingChart:
    """The chart of ``finding`` of the run in ``run``; ``receipts`` are of the faults that took effect.

    Raises:
        HistoryError: the history cannot be read.
    """
    view = finding.view()
    renderer = RENDERERS.get(type(view))
    if renderer is None:
        return FindingChart()
    events = read_events(run / HISTORY, renderer.needed(finding.key, view))
    return FindingChart(renderer.draw(finding.key, view, Material(run, events, receipts)), renderer.words)

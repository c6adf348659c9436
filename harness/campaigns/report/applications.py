"""The fate of the inputs of applications under test, a sentence and a chart a cell."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Final

from markupsafe import Markup

from checkers import ApplicationCounts, VerdictLine, latest_receipts
from harness.campaigns.report.application_chart import application_chart

#: Charts of a page; a chart takes some 10 kB.
CHARTS_MAX: Final = 8


def application_sentences(lines: Iterable[VerdictLine]) -> list[str]:
    """Say of each cell with an application what became of its inputs, over all runs."""
    cells: dict[str, ApplicationCounts] = {}
    for line in lines:
        if name := _name_of(line):
            if name in cells:
                cells[name].add(line.application)
            else:
                cells[name] = copy.copy(line.application)
    return [f"{name}: {counts.sentence}" for name, counts in cells.items()]


def application_charts(lines: Iterable[VerdictLine]) -> dict[str, Markup]:
    """The chart of a run of each cell with an application: the first that was not valid, or else the first."""
    shown: dict[str, VerdictLine] = {}
    for line in lines:
        name = _name_of(line)
        if name and (name not in shown or (shown[name].valid is True and line.valid is not True)):
            shown[name] = line
    charts = {
        f"{name}, seed {line.run.seed}": application_chart(
            line.application, [receipt for receipt in latest_receipts(line.faults) if receipt.took_effect]
        )
        for name, line in [*shown.items()][:CHARTS_MAX]
        if line.run is not None
    }
    return {name: chart for name, chart in charts.items() if chart}


def _name_of(line: VerdictLine) -> str:
    """The name of the cell of a run with an application; "" without one."""
    if line.run is None or not line.application.promise:
        return ""
    return f"{line.run.cell} ({line.run.world}), {line.application.promise}"

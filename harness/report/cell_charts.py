"""Charts over all cells: how often runs lost, and how long partitions took no write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from checkers.verdicts.cells import Cell
from checkers.verdicts.matrix import settings_words
from harness.report.loss_chart import specification

PANEL_PX: Final = 380
#: A row of the axis has room for its words, and for a bar of each family.
ROW_PX_MIN: Final = 34
FAMILY_PX: Final = 8
#: Distinguishable with any colour vision, and never red: red means a broken promise. Okabe and Ito's come first.
FAMILIES: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8c8c8c"),
    *("#332288", "#DDCC77", "#7f4a1d", "#999933", "#1c2024"),
)


def loss_rate_chart(cells: Sequence[Cell]) -> dict[str, Any]:
    """The share of judged runs that lost acknowledged writes, with its 95 % interval, by settings and family."""
    rows = [
        _row(cell)
        | {
            "rate": cell.lossy_runs.rate,
            "low": cell.lossy_runs.low,
            "high": cell.lossy_runs.high,
            "runs": f"{cell.runs_lost} of {cell.runs_judged}",
        }
        for cell in cells
        if cell.runs_judged
    ]
    base = _base(rows, "rate")
    percent = alt.Axis(format=".0%", title=None)
    interval = base.mark_rule(strokeWidth=2, opacity=0.55).encode(x=alt.X("low:Q", axis=percent), x2="high:Q")
    point = base.mark_point(filled=True, size=45, opacity=1).encode(x="rate:Q")
    return _faceted(alt.layer(interval, point), rows, cells)


def availability_chart(cells: Sequence[Cell]) -> dict[str, Any]:
    """The longest time in which any partition of any run took no write, by settings and family."""
    rows = [_row(cell) | {"gap": round(cell.longest_gap_us / 1e6, 3)} for cell in cells if cell.longest_gap_us]
    bar = _base(rows, "gap").mark_bar(height=7, cornerRadius=1)
    return _faceted(bar.encode(x=alt.X("gap:Q", axis=alt.Axis(title="seconds", tickCount=6))), rows, cells)


def _row(cell: Cell) -> dict[str, Any]:
    return {"settings": settings_words(cell.label), "family": cell.family, "world": cell.world}


def _base(rows: Sequence[dict[str, Any]], value: str) -> alt.Chart:
    families = list(dict.fromkeys(row["family"] for row in rows))
    shown = ["settings:N", "family:N", "world:N", f"{value}:Q", *(["runs:N"] if rows and "runs" in rows[0] else [])]
    colours = alt.Scale(domain=families, range=[FAMILIES[n % len(FAMILIES)] for n in range(len(families))])
    return alt.Chart().encode(
        y=alt.Y("settings:N", sort=None, title=None, axis=alt.Axis(labelLimit=420, ticks=False)),
        yOffset=alt.YOffset("family:N", sort=families),
        color=alt.Color("family:N", scale=colours, legend=alt.Legend(orient="top", title="faults")),
        tooltip=shown,
    )


def _faceted(chart: Any, rows: Sequence[dict[str, Any]], cells: Sequence[Cell]) -> dict[str, Any]:
    labels, families = {settings_words(cell.label) for cell in cells}, {cell.family for cell in cells}
    row_px = max(ROW_PX_MIN, FAMILY_PX * len(families))
    sized = chart.properties(width=PANEL_PX, height=row_px * len(labels))
    column = alt.Column("world:N", title=None, sort=None, header=alt.Header(labelFontWeight="bold", labelFontSize=12))
    return specification(sized.properties(data=alt.Data(values=list(rows))).facet(column=column, spacing=14))

"""Charts as data, and those over all cells: how often runs lost, and how long partitions took no write.

Vega-Lite specifications without data stand in ``templates/*.vl.json``; a chart names one and adds its rows. A colour
``@ink`` there is the page's own of that name, which depends on who reads it: on paper, by day, at night.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from checkers import Cell, settings_words

Row = dict[str, Any]

#: Names of specifications.
LOSS: Final = "loss"
LOSS_WITHOUT_OFFSETS: Final = "loss-without-offsets"
LOSS_RATE: Final = "loss-rate"
AVAILABILITY: Final = "availability"
LATENCY: Final = "latency"
OVER_TIME: Final = "over-time"
#: A row of a chart over cells has room for its words, and for a bar of each family.
ROW_PX_MIN: Final = 34
FAMILY_PX: Final = 8


def _layer(mark: Row, shown: Sequence[str], **encoding: Row) -> Row:
    tooltip = [{"field": name} for name in ("settings", "family", "world", *shown)]
    return {"mark": mark, "encoding": {**encoding, "tooltip": tooltip}}


_LOW: Final = {"field": "low", "axis": {"format": ".0%", "title": None}}
_RATE: Final = [
    _layer({"type": "rule", "strokeWidth": 2, "opacity": 0.55}, ("rate", "runs"), x=_LOW, x2={"field": "high"}),
    _layer({"type": "point", "filled": True, "size": 45, "opacity": 1}, ("rate", "runs"), x={"field": "rate"}),
]
_GAP: Final = {"field": "gap", "axis": {"title": "seconds", "tickCount": 6}}
_GAPS: Final = [_layer({"type": "bar", "height": 7, "cornerRadius": 1}, ("gap",), x=_GAP)]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart: ``datasets`` and ``params`` are put into the specification named ``template``."""

    template: str
    datasets: dict[str, list[Row]]
    params: list[Row] = []


def loss_rate_chart(cells: Sequence[Cell]) -> Chart:
    """The share of judged runs that lost acknowledged writes, with its 95 % interval, by settings and family."""
    rows = [
        _row(cell, runs=f"{cell.runs_lost} of {cell.runs_judged}")
        | {"rate": cell.lossy_runs.rate, "low": cell.lossy_runs.low, "high": cell.lossy_runs.high}
        for cell in cells
        if cell.runs_judged
    ]
    return Chart(template=LOSS_RATE, datasets={"cells": rows})


def availability_chart(cells: Sequence[Cell]) -> Chart:
    """The longest time (seconds) in which any partition of any run took no write, by settings and family."""
    rows = [_row(cell, gap=round(cell.longest_gap_us / 1e6, 3)) for cell in cells if cell.longest_gap_us]
    return Chart(template=AVAILABILITY, datasets={"cells": rows})


def _row(cell: Cell, **more: object) -> Row:
    return {"settings": settings_words(cell.label), "family": cell.family, "world": cell.world, **more}


def chart_templates(cells: Sequence[Cell]) -> dict[str, Row]:
    """Specifications without data, by name; of a chart of a loss also its upper panel alone."""
    loss, over_cells = _read("loss-chart"), _read("cells-chart")
    row_px = max(ROW_PX_MIN, FAMILY_PX * len({cell.family for cell in cells}))
    panel = over_cells["spec"] | {"height": {"step": row_px, "for": "position"}}
    return {
        LOSS: loss,
        LOSS_WITHOUT_OFFSETS: loss | {"vconcat": loss["vconcat"][:1]},
        LOSS_RATE: over_cells | {"spec": panel | {"layer": _RATE}},
        AVAILABILITY: over_cells | {"spec": panel | {"layer": _GAPS}},
        LATENCY: _read("latency-chart"),
        OVER_TIME: _read("over-time"),
    }


def _read(name: str) -> Row:
    file = resources.files("harness.report") / "templates" / f"{name}.vl.json"
    specification: Row = json.loads(file.read_text(encoding="utf-8"))
    return specification

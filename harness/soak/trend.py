"""``nights.html``: the trend of many nights on one small page without scripts: findings, coverage, speed, recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import vl_convert
from markupsafe import Markup

from checkers import SITUATIONS
from harness.comparison import FindingStatus, Traced, trace
from harness.records.files import write_file
from harness.soak.nights import Night, accumulated
from harness.templates import templates_of

TREND_FILE: Final = "nights.html"
#: Nights that the page shows, the newest; all of them are in what cells add up to.
SHOWN_MAX: Final = 400

Row = dict[str, Any]


def write_trend(directory: Path, nights: Sequence[Night], traced: Sequence[Traced]) -> Path:
    """Write the page into ``directory``, of ``nights`` from the oldest to its own; the answer is its path.

    Raises:
        ResultsError: it cannot be written.
    """
    shown = list(nights)[-SHOWN_MAX:]
    page = (
        templates_of("harness.soak")
        .get_template("nights.html.j2")
        .render(
            nights=[
                _row(number, night, nights) for number, night in enumerate(shown, start=len(nights) - len(shown) + 1)
            ],
            cells=accumulated(nights),
            findings=[one for one in traced if not one.finding.permitted],
            charts=[_svg(title, unit, rows) for title, unit, rows in _charts(nights, shown) if rows],
        )
    )
    write_file(path := directory / TREND_FILE, page.encode())
    return path


def _row(number: int, night: Night, nights: Sequence[Night]) -> Row:
    statuses = _statuses(night, nights)
    return {
        "number": number,
        "name": night.results.name,
        "began": night.began,
        "runs": f"{night.runs:,}",
        "speed": "" if night.runs_per_hour is None else f"{night.runs_per_hour:,.0f}",
        "memory": f"{night.record.memory_bytes / 1e6:,.0f} MB" if night.record else "",
        "disk": f"{night.record.disk_bytes / 1e6:,.0f} MB" if night.record else "",
        **{
            status.name.lower(): statuses[status]
            for status in (FindingStatus.NEW, FindingStatus.KNOWN, FindingStatus.BACK, FindingStatus.GONE)
        },
    }


def _statuses(night: Night, nights: Sequence[Night]) -> dict[FindingStatus, int]:
    earlier = [one.results for one in nights[: list(nights).index(night)]]
    traced = [one for one in trace(earlier, night.results) if not one.finding.permitted]
    return {status: sum(one.status is status for one in traced) for status in FindingStatus}


def _charts(nights: Sequence[Night], shown: Sequence[Night]) -> Iterator[tuple[str, str, list[Row]]]:
    """Title, unit, and rows of what happened each night."""
    numbered = list(enumerate(shown, start=len(nights) - len(shown) + 1))
    statuses = (FindingStatus.NEW, FindingStatus.KNOWN, FindingStatus.BACK)
    found = [
        (n, status.value, count)
        for n, night in numbered
        for status, count in _statuses(night, nights).items()
        if status in statuses
    ]
    yield "Findings that nothing permits", "findings", _rows(found)
    yield "Speed", "runs an hour", _rows((n, "runs", night.runs_per_hour) for n, night in numbered)
    yield (
        "Risky situations met",
        "times a run",
        _rows(
            (n, name, met / max(night.runs, 1))
            for n, night in numbered
            for name in SITUATIONS
            if (met := sum(cell.coverage.get(name) or 0 for cell in night.results.cells.values()))
        ),
    )
    worlds = {cell.world for night in shown for cell in night.results.cells.values()}
    yield (
        "Longest recovery",
        "seconds",
        _rows(
            (n, world, max(times, default=0) / 1e6)
            for n, night in numbered
            for world in sorted(worlds)
            if (times := [cell.recovery_us or 0 for cell in night.results.cells.values() if cell.world == world])
        ),
    )


def _rows(values: Iterator[tuple[int, str, float | None]] | Sequence[tuple[int, str, float]]) -> list[Row]:
    return [{"night": night, "what": what, "value": value} for night, what, value in values if value is not None]


def _svg(title: str, unit: str, rows: Sequence[Row]) -> Markup:
    """A line for each thing over the nights. Names come from this program only: no text of a file is in it."""
    specification = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start"},
        "width": 420,
        "height": 150,
        "data": {"values": list(rows)},
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {
                "field": "night",
                "type": "ordinal",
                "axis": {"title": "night", "labelAngle": 0, "labelOverlap": True},
            },
            "y": {"field": "value", "type": "quantitative", "axis": {"title": unit, "tickCount": 4}},
            "color": {"field": "what", "type": "nominal", "legend": {"title": None, "orient": "bottom", "columns": 2}},
        },
    }
    return Markup(vl_convert.vegalite_to_svg(specification))  # noqa: S704 - a pinned library's own text

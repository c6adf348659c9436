"""``nights.html``: the trend of many nights on one small page without scripts: findings, coverage, speed, recovery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from checkers import SITUATIONS, matrix_of
from harness.campaigns.comparison import (
    CellAnomaly,
    FindingStatus,
    cell_anomalies_of,
    cells_by_status,
    each_accept_command,
)
from harness.campaigns.report import card_table, page_style, trend_chart
from harness.campaigns.soak.nights import Night, accumulated
from harness.ground.templates import templates_of
from harness.records.files import write_file

TREND_FILE: Final = "nights.html"
#: Nights that the page shows, the newest; all of them are in what cells add up to.
SHOWN_MAX: Final = 400

Row = dict[str, Any]
Lines = dict[str, list[tuple[int, float]]]


def write_trend(directory: Path, nights: Sequence[Night], anomalies: Sequence[CellAnomaly]) -> Path:
    """Write the page of ``nights`` into ``directory``, the oldest first; the answer is its path.

    ``anomalies`` are those of the last night, which is the directory's own.

    Raises:
        ResultsError: it cannot be written.
    """
    shown = list(nights)[-SHOWN_MAX:]
    page = (
        templates_of("harness.campaigns.soak")
        .get_template("nights.html.j2")
        .render(
            nights=[
                _row(number, night, nights) for number, night in enumerate(shown, start=len(nights) - len(shown) + 1)
            ],
            cells=accumulated(nights),
            anomalies=anomalies,
            accept=_accepting(str(directory), anomalies, nights[-1]),
            statuses=cells_by_status(anomalies),
            style=page_style(),
            cards=card_table(),
            verdict=matrix_of(list(nights[-1].results.cells.values())).verdict,
            charts=[
                (f"{title}, {unit}", trend_chart(unit, lines)) for title, unit, lines in _charts(nights, shown) if lines
            ],
        )
    )
    write_file(path := directory / TREND_FILE, page.encode())
    return path


def _accepting(directory: str, anomalies: Sequence[CellAnomaly], night: Night) -> dict[int, Sequence[str]]:
    """The commands that accept what a red cell shows, each once, by the number of the row of its last red anomaly."""
    commands: dict[int, Sequence[str]] = {}
    for cell, accepting in each_accept_command(directory, night.results.cells.values()):
        red = dict(cell.red())
        rows = [number for number, shown in enumerate(anomalies) if shown.cell == cell.key and shown.anomaly in red]
        if rows:
            commands[rows[-1]] = accepting
    return commands


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
    earlier = [night_before.results for night_before in nights[: list(nights).index(night)]]
    anomalies = cell_anomalies_of(earlier, night.results)
    return {status: sum(anomaly.status is status for anomaly in anomalies) for status in FindingStatus}


def _charts(nights: Sequence[Night], shown: Sequence[Night]) -> Iterator[tuple[str, str, Lines]]:
    """Title, unit, and lines of what happened each night."""
    numbered = list(enumerate(shown, start=len(nights) - len(shown) + 1))
    statuses = (FindingStatus.NEW, FindingStatus.KNOWN, FindingStatus.BACK)
    counts = [
        (n, status.value, count)
        for n, night in numbered
        for status, count in _statuses(night, nights).items()
        if status in statuses
    ]
    yield "Anomalies that nothing permits", "cell by cell", _lines(counts)
    yield "Speed", "runs an hour", _lines((n, "runs", night.runs_per_hour) for n, night in numbered)
    yield (
        "Risky situations met",
        "times a run",
        _lines(
            (n, name.replace("_", " "), met / max(night.runs, 1))
            for n, night in numbered
            for name in SITUATIONS
            if (met := sum(cell.coverage.get(name) or 0 for cell in night.results.cells.values()))
        ),
    )
    worlds = {cell.world for night in shown for cell in night.results.cells.values()}
    yield (
        "Longest recovery",
        "seconds",
        _lines(
            (n, world, max(times, default=0) / 1e6)
            for n, night in numbered
            for world in sorted(worlds)
            if (times := [cell.recovery_us or 0 for cell in night.results.cells.values() if cell.world == world])
        ),
    )


def _lines(values: Iterable[tuple[int, str, float | None]]) -> dict[str, list[tuple[int, float]]]:
    """The values of each thing, which have a night and a name."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for night, name, value in values:
        if value is not None:
            lines.setdefault(name, []).append((night, value))
    return lines

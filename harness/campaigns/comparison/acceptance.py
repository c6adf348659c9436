"""Acceptances in words: findings that are accepted, and those that were and fail again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from checkers import AcceptanceStatus, AcceptedFinding, Cell, counted
from harness.campaigns.comparison.finding_sentences import LISTED_MAX

_HEADS: Final = {
    AcceptanceStatus.GROWN: "accepted elsewhere, and now in",
    AcceptanceStatus.BACK: "was accepted and gone, and is back in",
    AcceptanceStatus.EXPIRED: "accepted no longer in",
    AcceptanceStatus.ACCEPTED: "accepted in",
}


def accepted_sentences(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each finding that ``accepted.toml`` names, failing ones first, and how many of them are accepted."""
    all_cells = list(cells)
    named = [(finding, cell) for cell in all_cells for finding in cell.accepted]
    order = list(_HEADS)
    named.sort(key=lambda each: order.index(AcceptanceStatus(each[0].status)))
    yield from (_line(finding, cell) for finding, cell in named[:LISTED_MAX])
    if len(named) > LISTED_MAX:
        yield f"... and {len(named) - LISTED_MAX:,} more such findings."
    yield from red_sentences(all_cells)
    accepted = sum(finding.status == AcceptanceStatus.ACCEPTED for finding, _ in named)
    if named:
        excused = f"{counted(sum(cell.excused for cell in all_cells), 'cell')} with no other finding"
        yield f"Accepted: {counted(accepted, 'finding')}; not counted in the exit code: {excused}."


def red_sentences(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each cell with an accepted finding that still fails for others, which no entry names."""
    unnamed = [(cell.key, others) for cell in cells if cell.accepted and (others := [*_unnamed(cell)])]
    for key, others in unnamed[:LISTED_MAX]:
        more = f" and {len(others) - LISTED_MAX:,} more" if len(others) > LISTED_MAX else ""
        yield (
            f"{key} still fails: no entry names {', '.join(others[:LISTED_MAX])}{more}; consequences of an accepted "
            "finding need entries too."
        )
    if len(unnamed) > LISTED_MAX:
        yield f"... and {len(unnamed) - LISTED_MAX:,} more cells still fail."


def _unnamed(cell: Cell) -> Iterator[str]:
    named = {(finding.anomaly, finding.identity) for finding in cell.accepted}
    yield from (_name(*shown) for shown in cell.shown() if shown not in named)


def _name(anomaly: str, identity: str) -> str:
    return " ".join(dict.fromkeys((anomaly, identity)))


def _line(finding: AcceptedFinding, cell: Cell) -> str:
    name = _name(finding.anomaly, finding.identity)
    head = _HEADS[AcceptanceStatus(finding.status)]
    return f"{head} {cell.key}: {name}, until {finding.until} ({finding.owner}: {finding.reason})."

"""Holds the cells of a campaign against the outcomes that its plan expects.

A cell that no entry fits is not stated, and so is one whose entry no unbroken promise can contradict: it is not counted
as expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from checkers import FIGURES, Cell, Outcome, counted
from harness.campaigns.comparison.product_findings import is_marked
from harness.ground.known_defects import product_findings
from harness.plan import ExpectedOutcomes

#: Cells that are named.
NAMED_MAX: Final = 12
#: The outcomes of a cell that was judged and broke no promise: who accepts them all has stated nothing.
_UNBROKEN: Final = {Outcome.HELD.value, Outcome.PERMITTED_LOSS.value, Outcome.NOT_EXERCISED.value}


def states(entry: ExpectedOutcomes) -> bool:
    """True if a cell without a broken promise can be another one than the entry expects."""
    return bool(entry.some or entry.figures) or not entry.outcomes or not set(entry.outcomes) >= _UNBROKEN


def unexpected(expected: Sequence[ExpectedOutcomes], cells: Iterable[Cell]) -> Iterator[str]:
    """A sentence without its full stop for each cell that is not as expected, and for each outcome that did not come.

    Of a cell that no entry fits only what alarms is said: where a plan states something, a broken promise elsewhere is
    no silence.
    """
    fitting: dict[int, list[Cell]] = {}
    for cell in cells:
        number = _fitting(expected, cell)
        if number is None:
            if expected and cell.outcome.alarming:
                yield f"{cell.key}: {cell.outcome}, and no entry expects that of the cell"
            continue
        fitting.setdefault(number, []).append(cell)
        entry = expected[number]
        if cell.outcome not in entry.outcomes:
            yield f"{cell.key}: {cell.outcome}, expected: {' or '.join(entry.outcomes)}"
        elif entry.anomalies and (others := cell.broken.keys() - set(entry.anomalies)):
            yield f"{cell.key}: {', '.join(sorted(others))}, expected: {', '.join(entry.anomalies)}"
        else:
            yield from _unmarked(entry, cell)
        yield from _figures(entry, cell)
    for number, own in fitting.items():
        if (some := expected[number].some) and all(cell.outcome.value != some for cell in own):
            yield f"none of {counted(len(own), 'cell')} is {some}, expected of some: {own[0].key}, ..."


def _unmarked(entry: ExpectedOutcomes, cell: Cell) -> Iterator[str]:
    """A sentence where the cell shows what the expected finding shows, without what marks that."""
    defects = product_findings()[entry.finding].defect if entry.finding else ()
    unlike = [
        " ".join(shown)
        for shown in cell.shown()
        if (mine := [each for each in defects if shown[0] in each.anomalies])
        and not any(is_marked(each, cell, shown) for each in mine)
    ]
    if unlike:
        yield f"{cell.key}: {', '.join(unlike)}, without what marks finding {entry.finding}"


def _fitting(expected: Sequence[ExpectedOutcomes], cell: Cell) -> int | None:
    fits = (index for index, entry in enumerate(expected) if entry.fits(cell.world, cell.family, cell.settings))
    return next(fits, None)


def _stated(expected: Sequence[ExpectedOutcomes], cell: Cell) -> bool:
    number = _fitting(expected, cell)
    return number is not None and states(expected[number])


def _figures(entry: ExpectedOutcomes, cell: Cell) -> Iterator[str]:
    for name, (least, most) in entry.figures.items():
        figure = FIGURES[name](cell)
        if figure is None or not least <= figure <= most:
            said = "not known" if figure is None else f"{figure:,.1f}"
            yield f"{cell.key}: {name} is {said}, expected: {least:,g} to {most:,g}"


def expected_sentences(expected: Sequence[ExpectedOutcomes], cells: Sequence[Cell]) -> Iterator[str]:
    """Say whether what the plan expects has come; nothing where it expects nothing."""
    if not expected:
        return
    lines = list(unexpected(expected, cells))
    stated = sum(_stated(expected, cell) for cell in cells)
    if stated and not lines:
        yield f"As the plan expects: {counted(stated, 'cell')}."
    yield from (f"Not as the plan expects: {line}." for line in lines[:NAMED_MAX])
    if len(lines) > NAMED_MAX:
        yield f"... and {len(lines) - NAMED_MAX:,} more."
    if stated < len(cells):
        yield f"Of {counted(len(cells) - stated, 'cell')} the plan states nothing."

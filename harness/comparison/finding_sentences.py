"""Findings in words: for each cell what is new, known, back and gone, in short lines, and each finding where asked."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from checkers import counted
from harness.comparison.cell_anomalies import CellAnomaly
from harness.comparison.findings import Example, Fate, Traced, smallest

#: Cells with findings that have sentences.
LISTED_MAX: Final = 12
#: How a fate stands before a cell, in the order of sentences.
_BEFORE_CELL: Final = {
    Fate.NEW: "new in",
    Fate.BACK: "back in",
    Fate.KNOWN: "known in",
    Fate.GONE: "gone from",
    Fate.NOT_LOOKED_FOR: "not looked for in",
}
#: Those of anomalies that the latest night does not show.
_SILENT: Final = frozenset({Fate.GONE, Fate.NOT_LOOKED_FOR})


def finding_sentences(kinds: Iterable[CellAnomaly], after: str) -> Iterator[str]:
    """Some lines for each cell and fate: what, the smallest run with its story, the command that shows it again.

    ``after`` is the directory of the latest night.
    """
    together: dict[tuple[Fate, str, str], list[CellAnomaly]] = {}
    for one in sorted(kinds, key=lambda one: list(_BEFORE_CELL).index(one.fate)):
        together.setdefault((one.fate, one.cell, one.why), []).append(one)
    for ones in list(together.values())[:LISTED_MAX]:
        yield _head(ones)
        yield from _silence(ones) if ones[0].fate is Fate.GONE else _again(ones, after)
    if len(together) > LISTED_MAX:
        yield f"... and {len(together) - LISTED_MAX:,} more such cells."


def each_finding(traced: Iterable[Traced]) -> Iterator[str]:
    """A line for each finding that nothing permits."""
    for one in traced:
        if not (finding := one.finding).permitted:
            name = " ".join(dict.fromkeys((finding.anomaly, finding.identity)))
            runs = counted(sum(finding.runs.values()), "run")
            missed = f"; as frequent as before, missed with a chance {_chance(one.missed_by_chance)}"
            silent = missed if one.fate in {Fate.GONE, Fate.NOT_SEEN} else ""
            yield f"{one.fate}: {name}, in {runs}: {_shows(finding.example)}{silent}."


def cells_by_fate(kinds: Sequence[CellAnomaly]) -> str:
    """In how many cells findings are new, known, ...; of none, "none"."""
    cells = {fate: {one.cell for one in kinds if one.fate is fate} for fate in _BEFORE_CELL}
    counts = [f"{words} {counted(len(cells[fate]), 'cell')}" for fate, words in _BEFORE_CELL.items() if cells[fate]]
    return ", ".join(counts) or "none"


def _head(ones: Sequence[CellAnomaly]) -> str:
    """What, how many findings, and how often."""
    first = ones[0]
    fates = [fate for one in ones for fate in one.findings.values()]
    there = first.fate not in _SILENT
    unseen, new = fates.count(Fate.NOT_SEEN), fates.count(Fate.NEW)
    more = [f"{new} of them new"] if new and first.fate is not Fate.NEW else []
    if unseen and there:
        more.append(f"{unseen} more not seen this time")
        fates = [fate for fate in fates if fate is not Fate.NOT_SEEN]
    runs, judged = max(one.runs for one in ones), first.judged
    least = "" if len(fates) == 1 or runs == judged else "at least "
    findings = ", ".join((counted(len(fates), "finding"), *more))
    before = "" if there else " before"
    why = f"; {first.why}" if first.why else ""
    names = ", ".join(one.anomaly for one in ones)
    shown = f"{findings}, in {least}{runs:,} of {counted(judged, 'run')}{before}"
    return f"{_BEFORE_CELL[first.fate]} {first.cell}: {names}; {shown}{why}."


def _again(ones: Sequence[CellAnomaly], after: str) -> Iterator[str]:
    example = smallest((one.example for one in ones), ones[0].cell)
    elsewhere = "" if example.is_of(ones[0].cell) else ", in another cell"
    yield f"  smallest{elsewhere}: {_shows(example)}"
    if ones[0].fate is not Fate.NOT_LOOKED_FOR:
        yield f"  {shlex.join(['ackproof', 'replay', f'{after}/{example.run}'])}"


def _silence(ones: Sequence[CellAnomaly]) -> Iterator[str]:
    """How likely chance alone is silent."""
    chance, runs = _chance(max(one.missed_by_chance for one in ones)), counted(ones[0].looked, "run")
    what = "it" if len(ones) == 1 else "the rarest of them"
    yield f"  as frequent as before, {what} would be missed by {runs} with a chance {chance}"


def _chance(share: float) -> str:
    return "below 0.01 %" if share < 0.0001 else f"of at most {100 * share:.2g} %"


def _shows(example: Example) -> str:
    story = f" of {', '.join(example.stories)}" if example.stories else ""
    return f"{counted(example.faults, 'fault')}{story}, seed {example.seed}"

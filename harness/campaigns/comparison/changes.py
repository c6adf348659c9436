"""Two campaigns side by side, cell by cell, and when the second is worse.

A cell of B is **worse** than that of A, the first that applies:

* it broke a promise or did not come back after healing, and A's did less than that; also where A has no such cell;
* it lost acknowledged writes where A held what its settings promise;
* both may lose, and B's share of runs that lost is larger beyond chance: the 95 % intervals do not meet. Runs have
  seeds of their own; writes of one run do not fail independently, so their share is shown and decides nothing.

It is **better** the other way round, but only where something was put to the test: a cell that B did not run, did not
exercise or could not judge is no better: that is **not known**. Outcomes that differ where loss is permitted and so few
runs do not say which is worse **differ**. Times are maxima, which have no interval: shown, they decide nothing.

An anomaly that no promise permits and that is new in its cell (:mod:`harness.campaigns.comparison.cell_anomalies`)
makes B worse, in whatever cell, unless it is accepted there (``accepted.toml`` of B): what would be worse by nothing
else is **accepted**. Another finding of an anomaly which the cell had in A does not: which of several a few runs show
is chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from checkers import Cell, Outcome, acceptance_words, counted
from harness.campaigns.comparison.cell_anomalies import CellAnomaly, FindingStatus, cell_anomalies_of
from harness.campaigns.comparison.findings import Results
from harness.campaigns.comparison.settings import Differing, differing
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN

#: Outcomes that say what a log does; the others say that too little was done to know.
SAYING: Final = frozenset({Outcome.BROKEN_PROMISE, Outcome.STALLED, Outcome.PERMITTED_LOSS, Outcome.HELD})
DEFECTS: Final = (Outcome.BROKEN_PROMISE, Outcome.STALLED)


class Change(StrEnum):
    """The change of a cell from A to B, the worst first; see the module's text."""

    WORSE = "worse"
    ACCEPTED = "accepted"
    UNTOLD = "not known"
    DIFFERS = "differs"
    BETTER = "better"
    SAME = "same"


class CellChange(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of either campaign, None where one has none; ``why`` is a sentence without its full stop.

    ``key`` names it (:attr:`checkers.Cell.key`). ``settings`` are those that differ although the cell
    has the same name, each as A and B have it; ``system`` is what differs in the log itself, so a planted bug.
    """

    key: str
    before: Cell | None
    after: Cell | None
    change: Change
    why: str
    settings: dict[str, tuple[Any, Any]] = {}
    system: dict[str, tuple[Any, Any]] = {}


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """B held against A: cells in A's order, then B's own; and the anomalies of both that nothing permits.

    ``kinds`` are those anomalies, by cell. ``findings_known`` is false where one of the two has a matrix only: then
    nothing is said of findings.
    """

    before: str
    after: str
    cells: list[CellChange]
    kinds: list[CellAnomaly]
    findings_known: bool

    @property
    def new_defects(self) -> list[CellAnomaly]:
        """Anomalies of cells of B that no promise permits, and that are new there and not accepted."""
        excused = {cell.key for cell in self.cells if cell.after and cell.after.excused}
        return [kind for kind in self.kinds if kind.status is FindingStatus.NEW and kind.cell not in excused]

    def count(self, change: Change) -> int:
        """The number of cells that changed so."""
        return sum(cell.change is change for cell in self.cells)

    @property
    def exit_code(self) -> int:
        """1 where B is worse; else 2 where some cell cannot be compared, or B says nothing of any cell of A; else 0."""
        if self.count(Change.WORSE) or self.new_defects:
            return EXIT_BROKEN
        told = any(cell.before and cell.after and cell.after.outcome in SAYING for cell in self.cells)
        return EXIT_HELD if told and not self.count(Change.UNTOLD) else EXIT_UNKNOWN

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        both = [cell for cell in self.cells if cell.before and cell.after]
        alone = {
            self.before: [cell for cell in self.cells if cell.after is None],
            self.after: [cell for cell in self.cells if cell.before is None],
        }
        cells = [f"{counted(len(both), 'cell')} in both{_changes(both)}" if self.cells else "no cell in either"]
        cells += [f"{len(ones)} only in {name}{_changes(ones)}" for name, ones in alone.items() if ones]
        new = len({anomaly.cell for anomaly in self.new_defects})
        defects = f", new findings that nothing permits in {counted(new, 'cell')}" if new else ""
        head = {
            EXIT_BROKEN: f"{self.after} is worse than {self.before}",
            EXIT_UNKNOWN: f"Whether {self.after} is worse than {self.before} is not known",
            EXIT_HELD: f"{self.after} is not worse than {self.before}",
        }[self.exit_code]
        return f"{head}: {', '.join(cells)}{defects}."


def _changes(cells: Sequence[CellChange]) -> str:
    """The changes of ``cells`` with the number of each, in brackets; "" for no cell."""
    counts = Counter(cell.change for cell in cells)
    words = ", ".join(f"{counts[change]} {change}" for change in Change if counts[change])
    return f" ({words})" if words else ""


def compare_results(before: Results, after: Results) -> Compared:
    """Hold B (``after``) against A (``before``)."""
    keys = dict.fromkeys((*before.cells, *after.cells))
    findings_known = before.findings is not None and after.findings is not None
    return Compared(
        before=before.name,
        after=after.name,
        cells=[_cell_change(key, before.cells.get(key), after.cells.get(key)) for key in keys],
        kinds=cell_anomalies_of([before], after) if findings_known else [],
        findings_known=findings_known,
    )


def _cell_change(key: str, before: Cell | None, after: Cell | None) -> CellChange:
    change, why = _judged(before, after)
    if after is not None and after.excused and change is Change.WORSE:
        change, why = Change.ACCEPTED, f"{why}; {acceptance_words(after)}"
    settings, system = differing(before, after) if before and after else Differing({}, {})
    return CellChange(key=key, before=before, after=after, change=change, why=why, settings=settings, system=system)


def _judged(before: Cell | None, after: Cell | None) -> tuple[Change, str]:
    if after is None:
        return Change.UNTOLD, "B did not run it"
    defect = after.outcome in DEFECTS
    if before is None:
        return (Change.WORSE if defect else Change.DIFFERS), f"A did not run it, in B it is: {after.outcome}"
    words = f"{before.outcome}, then {after.outcome}"
    if after.outcome not in SAYING:
        return (Change.UNTOLD if before.outcome in SAYING else Change.SAME), f"{words}: {after.note}"
    if before.outcome not in SAYING:
        return (Change.WORSE if defect else Change.DIFFERS), words
    return _by_outcome(before, after, words)


def _by_outcome(before: Cell, after: Cell, words: str) -> tuple[Change, str]:
    """Compare two cells that both say what the log does."""
    if before.outcome is not after.outcome and {before.outcome, after.outcome} & set(DEFECTS):
        worse = after.outcome.badness < before.outcome.badness
        return (Change.WORSE if worse else Change.BETTER), words
    if _kept(before) and after.outcome is Outcome.PERMITTED_LOSS:
        return Change.WORSE, f"B lost what A held: {after.promise}"
    return _by_rate(before, after, words)


def _kept(cell: Cell) -> bool:
    """It held, and its settings and faults promise that."""
    return cell.outcome is Outcome.HELD and not cell.loss_permitted


def _by_rate(before: Cell, after: Cell, words: str) -> tuple[Change, str]:
    """Compare two cells where neither broke or kept a promise that the other did not."""
    was, now = before.lossy_runs, after.lossy_runs
    shown = f"{was.count:,} of {was.total:,} runs lost, then {now.count:,} of {now.total:,}"
    if was.total and now.total and (now.low > was.high or now.high < was.low):
        return (Change.WORSE if now.low > was.high else Change.BETTER), f"{shown}: beyond chance"
    if before.outcome is not after.outcome:
        return Change.DIFFERS, f"{words}; {shown}: so few do not say which is worse"
    return Change.SAME, before.outcome

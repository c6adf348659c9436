"""Worlds side by side: the same settings under the same family of faults should have the same outcome everywhere.

The reference broker is worth something only if it does what Apache Kafka does, and a schedule found in virtual time
only if it can be shown on real processes. So where several worlds ran one cell, outcomes that differ are listed with
one of four reasons, the first that applies:

* a promise was broken in one world and not in another: a defect, of that system or of ours;
* one world could not tell, or did not exercise the cell;
* the worlds promise different things, because different faults took effect in them;
* loss is permitted in both and showed in one only: chance, or a weakness that one world's timing does not reach.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkers.verdicts.cells import Cell
from checkers.verdicts.matrix import settings_words
from checkers.verdicts.outcome import Outcome


class DifferingOutcomes(msgspec.Struct, frozen=True):
    """A choice of settings and a family of faults with more than one outcome; ``outcomes`` by world."""

    settings: str
    family: str
    outcomes: dict[str, Outcome]
    why: str


class WorldsCompared(msgspec.Struct, frozen=True):
    """The number of cells that ran in several worlds (``compared``), and those whose outcomes differ."""

    compared: int
    differences: tuple[DifferingOutcomes, ...]


def compare(cells: Sequence[Cell]) -> WorldsCompared:
    """Every choice of settings and family that ran in more than one world, in the order of the campaign."""
    together: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        together.setdefault((settings_words(cell.label), cell.family), []).append(cell)
    several = {key: same for key, same in together.items() if len(same) > 1}
    differences = tuple(
        DifferingOutcomes(settings, family, {cell.world: cell.outcome for cell in same}, _why(same))
        for (settings, family), same in several.items()
        if len({cell.outcome for cell in same}) > 1
    )
    return WorldsCompared(len(several), differences)


def _why(cells: Sequence[Cell]) -> str:
    broken = [cell.world for cell in cells if cell.outcome is Outcome.BROKEN_PROMISE]
    if broken:
        return f"a promise was broken in {_and(broken)} only: a defect there, or of the harness"
    silent = [f"{cell.world} ({cell.note})" for cell in cells if cell.outcome.proves_nothing]
    if silent:
        return f"nothing can be said of {_and(silent)}"
    if len({cell.loss_permitted for cell in cells}) > 1:
        effects = [f"{cell.world}: {_faults(cell)}" for cell in cells]
        return f"other faults took effect, so other things were promised ({'; '.join(effects)})"
    shown = [f"{cell.runs_lost:,} of {cell.runs_judged:,} runs in {cell.world}" for cell in cells]
    return f"loss is permitted, and showed in {_and(shown)}"


def _faults(cell: Cell) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in cell.faults.items()) or "none"


def _and(words: Sequence[str]) -> str:
    return " and ".join(words)

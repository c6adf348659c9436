"""The matrix as rows and columns, and the one number format that all its forms share."""

from __future__ import annotations

from collections.abc import Sequence

from checkers import SITUATIONS, Cell, FamilyExercised, counted, settings_words
from nemesis.plan import AT_STAKE_MIN, EXERCISED_MIN
from workloads import SettingValue

Grid = list[tuple[dict[str, SettingValue], list[Cell | None]]]


def columns_of(cells: Sequence[Cell]) -> list[tuple[str, list[str]]]:
    """Worlds with their families, in the order of the campaign."""
    families: dict[str, dict[str, None]] = {}
    for cell in cells:
        families.setdefault(cell.world, {})[cell.family] = None
    return [(world, list(of_world)) for world, of_world in families.items()]


def grid_of(cells: Sequence[Cell], columns: Sequence[tuple[str, Sequence[str]]]) -> Grid:
    """One row for each choice of settings: its label, and its cell for every world and family, None where not run."""
    labels = {settings_words(cell.label): cell.label for cell in cells}
    by_place = {(settings_words(cell.label), cell.world, cell.family): cell for cell in cells}
    return [
        (label, [by_place.get((words, world, family)) for world, families in columns for family in families])
        for words, label in labels.items()
    ]


def exercised_faults(cell: Cell) -> int:
    """Count the faults that met writes in a cell."""
    return sum(family.exercised for family in cell.exercised.values())


def bound_words(cell: Cell) -> str:
    """The bound of a cell that held, with the number of faults that decides it: ``≤ 39 % after 6 faults``.

    Of a mixture it is the family with the fewest.
    """
    faults = min((family.exercised for family in cell.exercised.values()), default=0)
    return f"≤ {float(f'{cell.bound * 100:.2g}'):g} % after {counted(faults, 'fault')}"


def exercised_words(cell: Cell) -> str:
    """The faults that met writes, by family, and how many writes were at stake in one of them."""
    return "; ".join(
        f"{name}: {family.exercised:,} of {family.took_effect:,} faults met writes{_stake_words(family)}"
        for name, family in cell.exercised.items()
    )


def bound_of_writes(cell: Cell) -> str:
    """The bound in the other unit, of the family with the fewest writes at stake; "" if their number is not known."""
    if cell.bound_writes is None or cell.lost:
        return ""
    writes = min(family.writes_at_stake or 0 for family in cell.exercised.values())
    share = f"{float(f'{cell.bound_writes * 100:.2g}'):g}"
    return f"of {counted(writes, 'write')} at stake: at most {share} % of such writes, if each is a trial of its own"


def situations_met(cells: Sequence[Cell]) -> dict[str, str]:
    """The risky situations that some cell met, or some history does not show, each with its words."""
    return {name: words for name, words in SITUATIONS.items() if any(cell.coverage.get(name) != 0 for cell in cells)}


def minimum_words(cells: Sequence[Cell]) -> str:
    """Say where a plan asks for less or more evidence than is usual, else ""."""
    asked = {(cell.exercised_min, cell.at_stake_min) for cell in cells} - {(EXERCISED_MIN, AT_STAKE_MIN)}
    return "; ".join(
        f"the plan asks for {counted(faults, 'exercised fault')} of each family and {counted(writes, 'write')} at "
        f"stake, usual are {EXERCISED_MIN} and {AT_STAKE_MIN}"
        for faults, writes in sorted(asked)
    )


def _stake_words(family: FamilyExercised) -> str:
    if family.writes_a_fault is None:
        return ""
    least, median = family.writes_a_fault
    return f", at stake in one: {counted(least, 'write')} at least, {median:,} at the median"

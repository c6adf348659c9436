"""The matrix as rows and columns, and the one number format that all its forms share."""

from __future__ import annotations

from collections.abc import Sequence

from checkers import Cell, counted, settings_words
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

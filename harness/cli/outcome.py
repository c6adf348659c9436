"""How a campaign's matrix looks on a terminal, and which exit code it means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers.cells import Cell
from checkers.matrix import Matrix, setting_value
from harness.cli.terminal import State
from harness.errors import ResultsError
from harness.rundir import MATRIX_FILE, files_of

COLOURS: Final = {
    "held": "green",
    "permitted loss": "yellow",
    "broken promise": "bold red",
    "not exercised": "dim",
    "unknown": "magenta",
}


def read_matrix(directory: Path) -> Matrix:
    """``matrix.json`` of the campaign in ``directory``."""
    path = directory / MATRIX_FILE
    try:
        with files_of(directory):
            return msgspec.json.decode(path.read_bytes(), type=Matrix)
    except msgspec.DecodeError as error:
        raise ResultsError(f"{path} cannot be read ({error}); rebuild it with: ackproof report {directory}") from error


def tell(state: State, directory: Path, report: Path, *, json_: bool) -> int:
    """Print the table, the verdict, and the report's path as the last line; the answer is the exit code."""
    matrix = read_matrix(directory)
    if json_:
        told = {"verdict": matrix.verdict, "directory": str(directory), "report": str(report)}
        state.json(told)
        return matrix.verdict.exit_code
    tell_cells(state, matrix.cells)
    state.say(matrix.verdict.sentence)
    state.say(str(report))
    return matrix.verdict.exit_code


def tell_cells(state: State, cells: Sequence[Cell]) -> None:
    """One row for every choice of settings, one column for every world and family."""
    columns = list(dict.fromkeys((cell.world, cell.family) for cell in cells))
    rows: dict[str, dict[tuple[str, str], Cell]] = {}
    for cell in cells:
        rows.setdefault(_label(cell), {})[cell.world, cell.family] = cell
    headers = ["settings", *(f"{world} / {family}" for world, family in columns)]
    state.table(headers, [(label, *(_shown(row.get(column)) for column in columns)) for label, row in rows.items()])


def _label(cell: Cell) -> str:
    return " ".join(f"{name}={setting_value(value)}" for name, value in cell.label.items()) or "the only settings"


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return ""
    lossy = f" {cell.runs_lost}/{cell.runs}" if cell.runs_lost else f" 0/{cell.runs}"
    return f"[{COLOURS[cell.outcome]}]{cell.outcome}{lossy}[/]"

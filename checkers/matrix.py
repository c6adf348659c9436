"""The whole campaign: one sentence, one exit code, and ``matrix.json`` for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkers.cells import OUTCOMES, Cell

#: Raised whenever a field of matrix.json is removed or changes its meaning; new fields do not raise it.
MATRIX_VERSION = 1


class Summary(msgspec.Struct, frozen=True):
    """The verdict on a campaign.

    Attributes:
        sentence: for the last lines of a terminal and the head of the report.
        exit_code: 0 nothing broken, 1 a promise was broken, 2 it could not be told.
        outcomes: number of cells by outcome; every outcome is named.
    """

    sentence: str
    exit_code: int
    outcomes: dict[str, int]


class Matrix(msgspec.Struct, frozen=True):
    """``matrix.json``; documented in results/README.md."""

    version: int
    verdict: Summary
    cells: list[Cell]


def summarise(cells: Sequence[Cell]) -> Summary:
    """The sentence and exit code of all cells. A campaign in which nothing was exercised is unknown, not clean."""
    outcomes = Counter[str](dict.fromkeys(OUTCOMES, 0))
    outcomes.update(cell.outcome for cell in cells)
    head, exit_code = _head(cells, outcomes)
    return Summary(f"{head} {_work(cells)}", exit_code, dict(outcomes))


def write_matrix(cells: Sequence[Cell], path: Path) -> Summary:
    """Write ``matrix.json`` at ``path`` and return the summary that it holds."""
    summary = summarise(cells)
    matrix = Matrix(MATRIX_VERSION, summary, list(cells))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(matrix), indent=1))
    return summary


def settings_words(label: dict[str, object]) -> str:
    """Settings as one line: ``acks=1, min.insync.replicas=2``."""
    return ", ".join(f"{name}={setting_value(value)}" for name, value in label.items()) or "the only settings"


def setting_value(value: object) -> str:
    """A setting's value as it is written in Kafka's files."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _head(cells: Sequence[Cell], outcomes: Counter[str]) -> tuple[str, int]:
    broken = [cell for cell in cells if cell.outcome == "broken promise"]
    if broken:
        more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
        return f"A promise was broken in {len(broken)} of {_cells(len(cells))}: {_accusation(broken[0])}{more}.", 1
    told = outcomes["held"] + outcomes["permitted loss"]
    rest = _rest(outcomes)
    if outcomes["unknown"] or not told:
        return f"Unknown: {told} of {_cells(len(cells))} could be told, and in these no promise was broken{rest}.", 2
    lost = outcomes["permitted loss"]
    permitted = f", {lost} lost acknowledged writes as their settings permit" if lost else ""
    weak = sum(cell.outcome == "held" and cell.loss_permitted for cell in cells)
    spared = f", {weak} lost nothing though they may" if weak else ""
    return f"No promise was broken: {outcomes['held'] - weak} of {_cells(len(cells))} held{spared}{permitted}{rest}.", 0


def _rest(outcomes: Counter[str]) -> str:
    named = [f"{outcomes[name]} {name}" for name in ("unknown", "not exercised") if outcomes[name]]
    return f" ({', '.join(named)})" if named else ""


def _accusation(cell: Cell) -> str:
    findings = ", ".join(f"{count:,} {anomaly}" for anomaly, count in cell.broken.items())
    return f"{settings_words(cell.label)} under {cell.family} ({cell.world}): {findings}"


def _cells(count: int) -> str:
    return f"{count} cell" if count == 1 else f"{count} cells"


def _work(cells: Sequence[Cell]) -> str:
    runs = sum(cell.runs_judged for cell in cells)
    in_fault = sum(cell.acknowledged_in_fault for cell in cells)
    lost = sum(cell.lost for cell in cells)
    judged = "1 run" if runs == 1 else f"{runs:,} runs"
    return f"{judged} judged, {in_fault:,} writes acknowledged during faults, {lost:,} lost."

"""The figures of a cell that a plan may expect something of, by name: numbers that are neither right nor wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from checkers.measures.latency import quantile_us
from checkers.verdicts.cells import Cell


def _latency_ms(cell: Cell, share: float) -> float | None:
    took_us = quantile_us(cell.latency.all, share)
    return None if took_us is None else took_us / 1_000


def _a_run(cell: Cell, count: int | None) -> float | None:
    return None if count is None else count / cell.runs


#: Each is None where no run of the cell shows it.
FIGURES: Final[Mapping[str, Callable[[Cell], float | None]]] = {
    "p50_ms": partial(_latency_ms, share=0.5),
    "p99_ms": partial(_latency_ms, share=0.99),
    "p99.9_ms": partial(_latency_ms, share=0.999),
    "acknowledged_a_run": lambda cell: _a_run(cell, cell.acknowledged),
    "lost_a_run": lambda cell: _a_run(cell, cell.lost),
    "refused_attempts_a_run": lambda cell: _a_run(cell, cell.coverage.get("refused_before_append")),
    "isr_changes_a_run": lambda cell: _a_run(cell, cell.isr_changes),
}

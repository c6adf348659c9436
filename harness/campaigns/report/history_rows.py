"""Picks rows of a history: of a million, a chart needs some thousand.

A chart draws the last few things before a contradiction, and what the finding names. Renderers ask for twice as many
of the last ones, so that the chart itself decides which of them it draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from checkers import EventPlace
from workloads.history import NONE, Columns, Flags, Names

Numbers = npt.NDArray[np.int64]


def of_partition(rows: Columns, names: Names, key: object) -> Flags:
    """The rows of one log partition."""
    here: Flags = rows["key"] == _code(names["key"], str(key))
    return here


def of_events(rows: Columns, events: Iterable[EventPlace]) -> Flags:
    """The rows of some events, and of the operations that these begin."""
    numbers = [event.op_pos for event in events]
    named: Flags = np.isin(rows["index"], numbers) | np.isin(rows["invoke_index"], numbers)
    return named


def first_row(rows: Columns, among: Flags) -> Flags:
    """The row with the least index."""
    return last_rows(-rows["index"], among, 1)


def last_rows(order: Numbers, among: Flags, most: int) -> Flags:
    """The ``most`` rows that are last in this ``order``."""
    some = np.flatnonzero(among)
    marked = np.zeros(len(among), dtype=bool)
    marked[some[np.argsort(order[some], kind="stable")][-most:]] = True
    return marked


def _code(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else NONE - 1

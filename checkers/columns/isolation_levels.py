"""Rows of readers of several isolation levels: what one level sees in order says nothing about the order of another.

A run's readers have one level. At its end others read each log partition with the other one, too. A reader of committed
records steps over aborted ones; a reader of uncommitted records reads them, and the two together look like a skip::

    offset 3  value 40   read by both
    offset 4  value 41   aborted: read by readers of uncommitted records only
    offset 5  value 42   read by both

So the first reader of a log partition that tells its level decides which level most kernels look at, and what the other
level read has kinds of its own. The steps of both are judged, each in the order that its level sees.

A reader that never tells its level is held to read committed records, as established checkers hold all readers.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.columns.ids import Flags, Numbers, one_of, starts_of
from workloads import Function
from workloads.history import COMMITTED, FUNCTION_CODE, GROUPED, NONE, Columns, Kind

#: Added to the kinds of rows, in memory only, that are of the other level.
OTHER: Final = 100
OTHER_READ: Final = OTHER + Kind.READ
OTHER_LISTED: Final = OTHER + Kind.LISTED
#: The kinds of what a reader does. What a process writes has no level, and neither has what a group does.
_READING: Final = (
    Kind.READ, Kind.EMPTY, Kind.LISTED, Kind.DROPPED, Kind.REBALANCED, Kind.WAITED,
)  # fmt: skip
_POLLED: Final = (Kind.READ, Kind.EMPTY)
_DRAIN: Final = FUNCTION_CODE[Function.DRAIN]


def set_levels_apart(columns: Columns) -> None:
    """Give the rows of the other level their kinds. Rows are in order of log partition and event; O(n log n)."""
    partition = columns["partition"]
    reading = one_of(columns["kind"], *_READING) & ~one_of(columns["function"], *GROUPED)
    told = np.flatnonzero((columns["isolation"] != NONE) & reading)
    if not len(told):
        return
    isolation = columns["isolation"] = _by_reader(columns, told, reading)
    first = told[starts_of(partition[told])]
    level = np.full(int(partition.max()) + 1, NONE)
    level[partition[first]] = isolation[first]
    mine = level[partition]
    read = one_of(columns["kind"], *_POLLED) | ((columns["function"] == _DRAIN) & (columns["kind"] == Kind.LISTED))
    silent = (isolation == NONE) & read
    of = columns["isolation"] = np.where(silent & (mine != NONE), COMMITTED, isolation).astype(np.int8)
    other = (of != NONE) & (mine != NONE) & (of != mine) & reading
    if other.any():
        columns["kind"] = np.where(other, columns["kind"] + OTHER, columns["kind"]).astype(np.int8)


def _by_reader(columns: Columns, told: Numbers, reading: Flags) -> Numbers:
    """The level of each row's reader: of rows that do not tell it, what the same process tells of the log partition."""
    isolation, process = columns["isolation"], columns["process"].astype(np.int64)
    silent = np.flatnonzero((isolation == NONE) & reading & (process >= 0))
    if not len(silent):
        return isolation
    span = int(process.max()) + 2
    reader = columns["partition"] * span + process
    readers, first = np.unique(reader[told], return_index=True)
    number = np.minimum(np.searchsorted(readers, reader[silent]), len(readers) - 1)
    matches = readers[number] == reader[silent]
    filled = isolation.copy()
    filled[silent[matches]] = isolation[told[first[number[matches]]]]
    return filled

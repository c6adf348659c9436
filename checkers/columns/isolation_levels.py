"""Rows of readers of several isolation levels: what one level sees in order says nothing about the order of another.

A run's readers have one level. At its end others read each log partition with the other one, too. A reader of committed
records steps over aborted ones; a reader of uncommitted records reads them, and the two together look like a skip::

    offset 3  value 40   read by both
    offset 4  value 41   aborted: read by readers of uncommitted records only
    offset 5  value 42   read by both

So the first reader of a log partition decides which level its kernels look at, and the rows of the other level have
kinds of their own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.columns.ids import starts_of
from workloads.history import NONE, Columns, Kind

#: Kinds of row, in memory only, of the other level: a record that was read, and anything else.
OTHER_READ: Final = 100
OTHER_ROW: Final = 101


def set_levels_apart(columns: Columns) -> None:
    """Give the rows of the other level their kinds. Rows are in order of log partition and event; O(n)."""
    isolation, partition = columns["isolation"], columns["partition"]
    told = np.flatnonzero(isolation != NONE)
    if not len(told):
        return
    first = told[starts_of(partition[told])]
    level = np.full(int(partition.max()) + 1, NONE)
    level[partition[first]] = isolation[first]
    other = (isolation != NONE) & (isolation != level[partition])
    if other.any():
        kinds = np.where(columns["kind"] == Kind.READ, OTHER_READ, OTHER_ROW)
        columns["kind"] = np.where(other, kinds, columns["kind"]).astype(np.int8)

"""Polls that leave a log partition alone: when a consumer last asked without getting anything.

How far a consumer lags behind a partition grows with every poll that brings nothing of it. Such a poll has no row
there, but only the last one before the consumer's next row of the partition matters, so that row carries when it
began.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from workloads.history.schema import FUNCTION_CODE, NONE, OK, Kind
from workloads.history.tables import Columns
from workloads.operations import Function

Numbers = npt.NDArray[np.int64]
_POLLS = (FUNCTION_CODE[Function.POLL], FUNCTION_CODE[Function.TXN])


def with_waits(rows: Columns) -> Columns:
    """The rows with ``waited_us`` filled in, and rows of kind WAITED for polls after the last row of a partition.

    O(n log n). Rows may come in any order.
    """
    polls = np.flatnonzero((rows["type"] == OK) & np.isin(rows["function"], _POLLS) & (rows["invoke_us"] >= 0))
    placed = np.flatnonzero(np.isin(rows["process"], np.unique(rows["process"][polls])) & (rows["key"] > 0))
    if not len(placed):
        return rows
    polls = polls[np.lexsort((rows["index"][polls], rows["process"][polls]))]
    order = np.lexsort((rows["index"][placed], rows["key"][placed], rows["process"][placed]))
    placed = placed[order]
    same = np.zeros(len(placed), dtype=bool)
    same[1:] = (np.diff(rows["process"][placed]) == 0) & (np.diff(rows["key"][placed]) == 0)
    previous = np.where(same, np.concatenate([[NONE], rows["index"][placed][:-1]]), NONE)
    waited = np.where(same, _last_poll(rows, polls, placed, rows["index"][placed] - 1, previous), NONE)
    filled = rows["waited_us"].copy()
    filled[placed] = waited
    ends = placed[np.append(~same[1:], True)]
    ends = ends[rows["kind"][ends] != Kind.DROPPED]
    tails = _last_poll(rows, polls, ends, np.full(len(ends), np.iinfo(np.int64).max), rows["index"][ends])
    return _with_tails({**rows, "waited_us": filled}, ends[tails != NONE], tails[tails != NONE])


def _last_poll(rows: Columns, polls: Numbers, of: Numbers, before: Numbers, after: Numbers) -> Numbers:
    """Begin of the last poll of each row's process with an index in (``after``, ``before``], -1 for none."""
    process, index = rows["process"][polls].astype(np.int64), rows["index"][polls].astype(np.int64)
    rank, starts = np.unique(process, return_index=True)
    span = int(index.max(initial=0)) + 2
    packed = np.searchsorted(rank, process) * span + index
    limit = np.searchsorted(rank, rows["process"][of]) * span + np.minimum(before, span - 1)
    place = np.searchsorted(packed, limit, side="right") - 1
    first = starts[np.searchsorted(rank, rows["process"][of])]
    found = (place >= first) & (index[np.maximum(place, 0)] > after)
    return np.where(found, rows["invoke_us"][polls][np.maximum(place, 0)], NONE)


def _with_tails(rows: Columns, ends: Numbers, waited: Numbers) -> Columns:
    """One row more for each last row of a partition after which its process went on polling."""
    tails = {name: column[ends] for name, column in rows.items()}
    tails["waited_us"] = waited
    tails["kind"] = np.full(len(ends), int(Kind.WAITED), dtype=rows["kind"].dtype)
    for name in ("invoke_index", "invoke_us", "offset"):
        tails[name] = np.full(len(ends), NONE, dtype=rows[name].dtype)
    tails["folded"] = np.zeros(len(ends), dtype=rows["folded"].dtype)
    return {name: np.concatenate([column, tails[name].astype(column.dtype)]) for name, column in rows.items()}

"""The layout that checking wants: all rows of a log partition together, in the order of events.

Invocations that say nothing new are left out, and rows that tell a process's loss of a position are added. Marks
(:data:`workloads.history.MARKS`) come first, in a row group of their own; then whole log partitions, several small ones
to a row group so that neither the footer nor the number of reads grows with the number of partitions; then what touched
no partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from workloads.history.rows import Columns
from workloads.history.schema import FAIL, FUNCTION_CODE, INFO, INVOKE, MARKS, NONE, OK, Kind
from workloads.operations import Function

Numbers = npt.NDArray[np.int64]

#: Rows after which a row group is closed; see docs/decisions on the history's layout for the measurement.
ROWS_A_GROUP: Final = 250_000

_ASSIGNS = (FUNCTION_CODE[Function.ASSIGN], FUNCTION_CODE[Function.SUBSCRIBE])
_POLLS = (FUNCTION_CODE[Function.POLL], FUNCTION_CODE[Function.TXN])


def cluster(columns: Columns) -> Columns:
    """Rows in the clustered order. ``columns`` may come in any order that keeps the records of one poll in place."""
    kept = fold(columns)
    rows = {name: column[kept] for name, column in columns.items()}
    drops = dropped(rows)
    rows = {name: np.concatenate([column, drops[name]]) for name, column in rows.items()}
    rows = with_waits(rows)
    order = np.lexsort((rows["position"], rows["index"], _rank(rows)))
    return {name: column[order] for name, column in rows.items()}


def groups(rows: Columns, rows_a_group: int = ROWS_A_GROUP) -> Iterator[Columns]:
    """Clustered rows cut into row groups; a log partition is never cut."""
    starts = np.flatnonzero(np.diff(_rank(rows), prepend=-1))
    ends = np.append(starts[1:], len(rows["key"]))[: len(starts)]
    begin = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        edge = _is_mark(rows, start) or _is_rest(rows, start)
        if begin < start and (edge or end - begin > rows_a_group or _is_mark(rows, begin)):
            yield {name: column[begin:start] for name, column in rows.items()}
            begin = start
    yield {name: column[begin:] for name, column in rows.items()}


def spread(rows: Columns) -> bool:
    """True if an uncertain operation sent to more than one log partition: its outcome has to be looked for in all."""
    uncertain = (rows["kind"] == Kind.SEND) & (rows["type"] == INFO)
    pairs = np.unique(np.stack([rows["index"][uncertain], rows["key"][uncertain].astype(np.int64)]), axis=1)
    return bool(len(np.unique(pairs[0])) < pairs.shape[1])


def joined(rows: Columns) -> bool:
    """True if an operation that sends also reads, or sends more than once: dependencies cross log partitions then."""
    done = (rows["type"] != INVOKE) & (rows["process"] >= 0)
    sends = rows["index"][done & (rows["kind"] == Kind.SEND)]
    reads = rows["index"][done & (rows["kind"] == Kind.READ)]
    return bool(len(np.unique(sends)) < len(sends) or np.isin(sends, reads).any())


def _rank(rows: Columns) -> Numbers:
    """0 for marks, the code of the log partition, and a number above all codes for rows of no partition."""
    key = rows["key"].astype(np.int64)
    above = key.max(initial=0) + 1
    return np.where(key > 0, key, np.where(np.isin(rows["function"], MARKS), 0, above))


def _is_mark(rows: Columns, row: int) -> bool:
    return bool(rows["key"][row] == 0 and rows["function"][row] in MARKS)


def _is_rest(rows: Columns, row: int) -> bool:
    return bool(rows["key"][row] == 0 and rows["function"][row] not in MARKS)


def fold(columns: Columns) -> npt.NDArray[np.bool_]:
    """Which rows to keep: all but those of invocations that their completion repeats."""
    index, invoke_index = columns["index"], columns["invoke_index"]
    needless = np.zeros(int(index.max(initial=0)) + 1, dtype=bool)
    needless[invoke_index[columns["folded"].astype(bool)]] = True
    kept: npt.NDArray[np.bool_] = ~((columns["type"] == INVOKE) & needless[index])
    return kept


def dropped(rows: Columns) -> Columns:
    """Rows of kind DROPPED: one for each log partition that a process had used and an assignment then left out.

    An assignment counts unless it failed; invocations do not count.
    """
    empty = {name: column[:0] for name, column in rows.items()}
    counts = ~np.isin(rows["type"], (INVOKE, FAIL)) & (rows["process"] >= 0)
    assigns = counts & np.isin(rows["function"], _ASSIGNS)
    if not assigns.any():
        return empty
    used = counts & np.isin(rows["kind"], (Kind.SEND, Kind.READ, Kind.EMPTY)) | (
        (rows["type"] == FAIL) & np.isin(rows["kind"], (Kind.READ, Kind.EMPTY))
    )
    first, keys = _losses(rows, np.flatnonzero(assigns), np.flatnonzero(used))
    derived = {name: column[first] for name, column in rows.items()}
    derived["key"] = keys.astype(rows["key"].dtype)
    for name, value in (("position", 0), ("kind", int(Kind.DROPPED)), ("offset", NONE), ("value", 0)):
        derived[name] = np.full(len(first), value, dtype=rows[name].dtype)
    return derived


def _losses(rows: Columns, assigns: Numbers, used: Numbers) -> tuple[Numbers, Numbers]:
    """For each loss, a row of the assignment that caused it and the key that was lost."""
    found_rows: list[int] = []
    found_keys: list[int] = []
    for process in np.unique(rows["process"][assigns]).tolist():
        mine = assigns[rows["process"][assigns] == process]
        mine = mine[np.argsort(rows["index"][mine], kind="stable")]
        indexes, starts = np.unique(rows["index"][mine], return_index=True)
        touched = used[rows["process"][used] == process]
        epoch = np.searchsorted(indexes, rows["index"][touched])
        pairs = np.unique(np.stack([epoch, rows["key"][touched].astype(np.int64)]), axis=1)
        cuts = np.searchsorted(pairs[0], np.arange(len(indexes) + 1))
        listed = np.split(rows["key"][mine], starts[1:])
        held: set[int] = set()
        for number, row in enumerate(mine[starts].tolist()):
            held.update(pairs[1, cuts[number] : cuts[number + 1]].tolist())
            kept = {key for key in listed[number].tolist() if key > 0}
            for key in sorted(held - kept):
                found_rows.append(row)
                found_keys.append(key)
            held = kept
    return np.array(found_rows, dtype=np.int64), np.array(found_keys, dtype=np.int64)


def with_waits(rows: Columns) -> Columns:
    """The rows with ``waited_us`` filled in, and rows of kind WAITED for polls after the last row of a partition.

    How far a consumer lags behind a partition grows with every poll that brings nothing of it. Such a poll has no row
    there, but only the last one before the consumer's next row of the partition matters, so that row carries when it
    began. O(n log n). Rows may come in any order.
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

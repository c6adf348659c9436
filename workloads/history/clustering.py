"""The layout that checking needs: all rows of a log partition together, in the order of events.

Invocations that say nothing new are left out, and rows that tell a process's loss of a position are added. Marks
(:data:`workloads.history.MARKS`) come first, in a row group of their own; then whole log partitions, several small ones
to a row group so that neither the footer nor the number of reads grows with the number of partitions; then rows of no
partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from workloads.history.rows import Columns
from workloads.history.schema import FAIL, FUNCTION_CODE, GROUPED, INFO, INVOKE, MARKS, NAMELESS, NONE, OK, Kind
from workloads.operations import Function

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NOTHING: Final[Numbers] = np.zeros(0, dtype=np.int64)

#: Rows after which a row group is closed; see docs/decisions on the history's layout for the measurement.
ROWS_A_GROUP: Final = 250_000

_ASSIGNS = tuple(FUNCTION_CODE[name] for name in (Function.ASSIGN, Function.SUBSCRIBE, Function.REBALANCE))
_TRANSACTIONS = (FUNCTION_CODE[Function.TXN], FUNCTION_CODE[Function.STABLE])
_DRAIN = FUNCTION_CODE[Function.DRAIN]
_POLLS = (FUNCTION_CODE[Function.POLL], FUNCTION_CODE[Function.TXN])
#: Columns that tell how long a process waited.
_OF_POLLS = ("key", "index", "process", "type", "function", "invoke_us", "waited_us")


def cluster(columns: Columns) -> Columns:
    """Rows in the clustered order. ``columns`` may come in any order that keeps the records of one poll in place."""
    rows = completed({name: column[:0] for name, column in columns.items()}, columns)
    return ordered(together(rows, tails(rows)))


def completed(before: Columns, columns: Columns, answered: Numbers = NOTHING) -> Columns:
    """The rows of a stretch of a history, without needless invocations and with the rows derived from earlier ones.

    Args:
        before: the rows before this stretch that :func:`remembered` keeps.
        columns: the rows of whole events, as in :func:`cluster`.
        answered: indexes of invocations that a completion after this stretch repeats.
    """
    if not len(columns["index"]):
        return columns
    kept = fold(columns, answered)
    rows = {name: column[kept] for name, column in columns.items()}
    begin = first_index(columns)
    drops = dropped(together(before, rows))
    mine = drops["index"] >= begin
    return with_waits(before, together(rows, {name: column[mine] for name, column in drops.items()}))


def remembered(rows: Columns) -> Columns:
    """The few completed rows on which later ones depend, in order.

    Of each process the last poll and the last assignment, and of each process and log partition the last row and the
    last use. Which rows are left is the same whether it is asked once or again with every stretch.
    """
    rows = {name: column[np.argsort(rows["index"], kind="stable")] for name, column in rows.items()}
    returns = (rows["process"] >= 0) & (rows["process"] < NAMELESS)
    assigns = _assigns(rows) & returns
    last_assign = _last(assigns, rows["process"])
    kept = np.zeros(len(returns), dtype=bool)
    for which in (_used(rows), rows["key"] > 0):
        kept[_last(which & returns, rows["process"], rows["key"])] = True
    kept[_last(_polled(rows) & returns, rows["process"])] = True
    kept |= assigns & np.isin(rows["index"], rows["index"][last_assign])
    return {name: column[kept] for name, column in rows.items()}


def _last(which: Flags, *columns: npt.NDArray[Any]) -> Numbers:
    """The last row among ``which`` for each combination of values of these columns."""
    rows = np.flatnonzero(which)[::-1]
    packed = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        _, number = np.unique(column[rows], return_inverse=True)
        packed = packed * (int(number.max(initial=0)) + 1) + number
    return rows[np.unique(packed, return_index=True)[1]]


def together(*parts: Columns) -> Columns:
    """Rows laid end to end, with the types of the last part, which must have all columns."""
    return {
        name: np.concatenate([part[name] for part in parts], dtype=last.dtype, casting="unsafe")
        for name, last in parts[-1].items()
    }


def ordered(rows: Columns) -> Columns:
    """Rows in the clustered order."""
    order = np.lexsort((rows["position"], rows["index"], _rank(rows)))
    return {name: column[order] for name, column in rows.items()}


def groups(rows: Columns, rows_a_group: int = ROWS_A_GROUP) -> Iterator[Columns]:
    """Clustered rows cut into row groups; a log partition is never cut."""
    starts = np.flatnonzero(np.diff(_rank(rows), prepend=-1))
    ends = np.append(starts[1:], len(rows["key"]))[: len(starts)]
    begin, alone = 0, rows["key"][starts] == 0
    for start, end, edge in zip(starts.tolist(), ends.tolist(), alone.tolist(), strict=True):
        if begin < start and (edge or end - begin > rows_a_group or rows["key"][begin] == 0):
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
    event = rows["index"] - first_index(rows)
    sends = np.bincount(event[done & (rows["kind"] == Kind.SEND)], minlength=int(event.max(initial=-1)) + 1)
    return bool((sends > 1).any() or sends[event[done & (rows["kind"] == Kind.READ)]].any())


class Subjects(NamedTuple):
    """The subjects that only some histories have; kernels need more than the usual columns for each.

    Attributes:
        groups: some operation is a consumer group's.
        transactions: some operation has the facts of a transaction, or of the end of one, or a reader has a level.
        keys: some record has a key of its own, over a compacted topic.
        ages: some final reader says for how long records stay.
    """

    groups: bool = False
    transactions: bool = False
    keys: bool = False
    ages: bool = False

    def __or__(self, other: Subjects) -> Subjects:
        return Subjects(*(mine or theirs for mine, theirs in zip(self, other, strict=True)))


def subjects(rows: Columns) -> Subjects:
    """The subjects of these rows. O(n)."""
    present = np.bincount(rows["function"], minlength=len(FUNCTION_CODE)) > 0
    transactions = bool(present[list(_TRANSACTIONS)].any())
    facts = transactions and bool((np.isin(rows["function"], _TRANSACTIONS) & (rows["detail"] != NONE)).any())
    return Subjects(
        groups=bool(present[list(GROUPED)].any()),
        transactions=facts or bool((rows["isolation"] != NONE).any()),
        keys=bool((rows["record_key"] != NONE).any()),
        ages=bool(present[_DRAIN]) and bool(((rows["function"] == _DRAIN) & (rows["detail"] != NONE)).any()),
    )


def is_rest(rows: Columns) -> Flags:
    """``bool[row]``: it belongs to no log partition and is not a mark."""
    rest: Flags = (rows["key"] == 0) & ~np.isin(rows["function"], MARKS)
    return rest


def _rank(rows: Columns) -> Numbers:
    """``int64[row]``: 0 for a mark, the code of the log partition, or a number above all codes without a partition."""
    key = rows["key"].astype(np.int64)
    return np.where(is_rest(rows), key.max(initial=0) + 1, key)


def fold(columns: Columns, answered: Numbers = NOTHING) -> Flags:
    """Mark the rows to keep: all but those of invocations that a completion, here or in ``answered``, repeats."""
    index = columns["index"]
    begin, end = first_index(columns), int(index.max(initial=-1)) + 1
    repeated = np.concatenate([columns["invoke_index"][columns["folded"].astype(bool)], answered])
    needless = np.zeros(end - begin, dtype=bool)
    needless[repeated[(repeated >= begin) & (repeated < end)] - begin] = True
    kept: Flags = ~((columns["type"] == INVOKE) & needless[index - begin])
    return kept


def first_index(columns: Columns) -> int:
    """The smallest event index of these rows, 0 without rows."""
    return int(columns["index"].min()) if len(columns["index"]) else 0


def _assigns(rows: Columns) -> Flags:
    assigns: Flags = _counts(rows) & np.isin(rows["function"], _ASSIGNS) & (rows["kind"] != Kind.DROPPED)
    return assigns


def _counts(rows: Columns) -> Flags:
    counts: Flags = ~np.isin(rows["type"], (INVOKE, FAIL)) & (rows["process"] >= 0)
    return counts


def _used(rows: Columns) -> Flags:
    used: Flags = _counts(rows) & np.isin(rows["kind"], (Kind.SEND, Kind.READ, Kind.EMPTY)) | (
        (rows["type"] == FAIL) & np.isin(rows["kind"], (Kind.READ, Kind.EMPTY))
    )
    return used


def _polled(rows: Columns) -> Flags:
    polled: Flags = (rows["type"] == OK) & np.isin(rows["function"], _POLLS) & (rows["invoke_us"] >= 0)
    return polled


def dropped(rows: Columns) -> Columns:
    """Rows of kind DROPPED: one for each log partition that a process had used and an assignment then left out.

    An assignment counts unless it failed; invocations do not count.
    """
    assigns = np.flatnonzero(_assigns(rows))
    if not len(assigns):
        return {name: column[:0] for name, column in rows.items()}
    first, keys = _losses(rows, assigns, np.flatnonzero(_used(rows)))
    derived = {name: column[first] for name, column in rows.items()}
    derived["key"] = keys.astype(rows["key"].dtype)
    for name, value in (("position", 0), ("kind", int(Kind.DROPPED)), ("offset", NONE), ("value", 0)):
        derived[name] = np.full(len(first), value, dtype=rows[name].dtype)
    return derived


def _losses(rows: Columns, assigns: Numbers, used: Numbers) -> tuple[Numbers, Numbers]:
    """For each loss, a row of the assignment that caused it and the key that was lost."""
    found_rows: list[int] = []
    found_keys: list[int] = []
    keys = int(rows["key"].max()) + 1
    for process in np.unique(rows["process"][assigns]).tolist():
        mine = assigns[rows["process"][assigns] == process]
        mine = mine[np.argsort(rows["index"][mine], kind="stable")]
        indexes, starts = np.unique(rows["index"][mine], return_index=True)
        touched = used[rows["process"][used] == process]
        epoch = np.searchsorted(indexes, rows["index"][touched])
        pairs = np.unique(epoch * keys + rows["key"][touched])
        cuts = np.searchsorted(pairs, np.arange(len(indexes) + 1) * keys)
        listed = np.split(rows["key"][mine], starts[1:])
        held: set[int] = set()
        for number, row in enumerate(mine[starts].tolist()):
            held.update((pairs[cuts[number] : cuts[number + 1]] % keys).tolist())
            kept = {key for key in listed[number].tolist() if key > 0}
            for key in sorted(held - kept):
                found_rows.append(row)
                found_keys.append(key)
            held = kept
    return np.array(found_rows, dtype=np.int64), np.array(found_keys, dtype=np.int64)


def with_waits(before: Columns, rows: Columns) -> Columns:
    """The rows with ``waited_us`` filled in; those ``before`` are only looked at. O(n log n), in any order.

    A consumer lags further behind a partition with every poll that brings nothing of it. Such a poll has no row there.
    But only the last one before the consumer's next row of the partition matters, so that row has the time of its
    begin.
    """
    seen = together(*({name: part[name] for name in _OF_POLLS} for part in (before, rows)))
    polls, placed = _polls(seen)
    same = _same_place(seen, placed)
    previous = np.where(same, np.concatenate([[NONE], seen["index"][placed][:-1]]), NONE)
    waited = np.where(same, _last_poll(seen, polls, placed, seen["index"][placed] - 1, previous), NONE)
    filled = seen["waited_us"].copy()
    filled[placed] = waited
    return {**rows, "waited_us": filled[len(before["index"]) :]}


def tails(rows: Columns) -> Columns:
    """Rows of kind WAITED for polls after a process's last row of a partition; ``rows`` may be all or remembered."""
    polls, placed = _polls(rows)
    ends = placed[np.append(~_same_place(rows, placed)[1:], True)] if len(placed) else placed
    ends = ends[rows["kind"][ends] != Kind.DROPPED]
    waited = _last_poll(rows, polls, ends, np.full(len(ends), np.iinfo(np.int64).max), rows["index"][ends])
    ends, waited = ends[waited != NONE], waited[waited != NONE]
    tails = {name: column[ends] for name, column in rows.items()}
    tails["waited_us"] = waited
    tails["kind"] = np.full(len(ends), int(Kind.WAITED), dtype=rows["kind"].dtype)
    for name in ("invoke_index", "invoke_us", "offset"):
        tails[name] = np.full(len(ends), NONE, dtype=rows[name].dtype)
    tails["folded"] = np.zeros(len(ends), dtype=rows["folded"].dtype)
    return tails


def _polls(rows: Columns) -> tuple[Numbers, Numbers]:
    """Polls that brought records or might have, and their processes' rows of partitions, both sorted."""
    polls = np.flatnonzero(_polled(rows))
    placed = np.flatnonzero(np.isin(rows["process"], np.unique(rows["process"][polls])) & (rows["key"] > 0))
    polls = polls[np.lexsort((rows["index"][polls], rows["process"][polls]))]
    return polls, placed[np.lexsort((rows["index"][placed], rows["key"][placed], rows["process"][placed]))]


def _same_place(rows: Columns, placed: Numbers) -> Flags:
    """``bool[placed row]``: the row before it is of the same process and log partition."""
    same = np.zeros(len(placed), dtype=bool)
    same[1:] = (np.diff(rows["process"][placed]) == 0) & (np.diff(rows["key"][placed]) == 0)
    return same


def _last_poll(rows: Columns, polls: Numbers, of: Numbers, before: Numbers, after: Numbers) -> Numbers:
    """Begin of the last poll of each row's process with an index in (``after``, ``before``], -1 without such a poll."""
    if not len(of):
        return NOTHING
    process, index = rows["process"][polls].astype(np.int64), rows["index"][polls].astype(np.int64)
    rank, starts = np.unique(process, return_index=True)
    span = int(index.max(initial=0)) + 2
    packed = np.searchsorted(rank, process) * span + index
    limit = np.searchsorted(rank, rows["process"][of]) * span + np.minimum(before, span - 1)
    last = np.searchsorted(packed, limit, side="right") - 1
    first = starts[np.searchsorted(rank, rows["process"][of])]
    is_inside = (last >= first) & (index[np.maximum(last, 0)] > after)
    return np.where(is_inside, rows["invoke_us"][polls][np.maximum(last, 0)], NONE)

"""Dependencies between operations, from the columns of log partitions.

An operation is its completion's event index. It *began* at its invocation's index (-1 if that is not known, which
claims nothing) and *ended* at its own index if it was acknowledged, else never: an uncertain operation may happen at
any time.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from checkers.anomalies.cycles import CycleStep
from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from workloads.history import OK

NEVER: Final = 2**62
#: Most operations that one look at some log partitions calls suspect: a log that is wrong everywhere shows it with
#: fewer.
SUSPECTS_MAX: Final = 20_000


class Operation(NamedTuple):
    """An operation by the index of its event, with its begin and its end."""

    event: int
    began: int
    ended: int


class Dependency(msgspec.Struct, frozen=True):
    """A dependency of operation ``b`` on operation ``a`` of one history, and the step that it is in a cycle."""

    history: int
    a: Operation
    b: Operation
    step: CycleStep


class Dependencies(NamedTuple):
    """By dependency: rows of the earlier and the later micro-operation (int64), and whether it is ww, not wr (bool)."""

    earlier: Numbers
    later: Numbers
    overwrites: Flags

    def where(self, which: Flags) -> Dependencies:
        """The dependencies that ``which`` marks."""
        return Dependencies(self.earlier[which], self.later[which], self.overwrites[which])


def began(log: Log, rows: Numbers) -> Numbers:
    """Event index at which the operations of ``rows`` began (int64, by entry of ``rows``); -1 if not known."""
    begun: Numbers = log.invoke_index[rows]
    return begun


def ended(log: Log, rows: Numbers) -> Numbers:
    """Event index at which ``rows`` were acknowledged (int64, by entry of ``rows``), :data:`NEVER` if they were not."""
    end: Numbers = np.where(log.type[rows] == OK, log.index[rows], NEVER)
    return end


def chain(log: Log) -> Numbers:
    """Rows (int64) that wrote the values whose place is sure, in order of (partition, place)."""
    order = log.order
    sure = order.sure_index[order.entry_value] == order.index[order.entry_offset]
    values = order.entry_value[sure][np.argsort(order.entry_offset[sure], kind="stable")]
    writers: Numbers = log.writer[values]
    return writers[writers >= 0]


def dependencies(log: Log, ww_deps: Flags) -> Dependencies:
    """All ww and wr dependencies between different operations; ``ww_deps`` says of each history whether ww count."""
    writers = chain(log)
    first, second = writers[:-1], writers[1:]
    together = (log.partition[first] == log.partition[second]) & ww_deps[log.partition_history[log.partition[first]]]
    sources = log.writer[log.value_id[log.reads]]
    sourced = sources >= 0
    earlier = np.concatenate([first[together], sources[sourced]])
    later = np.concatenate([second[together], log.reads[sourced]])
    overwrites = np.arange(len(earlier)) < int(together.sum())
    return Dependencies(earlier, later, overwrites).where(_different(log, earlier, later))


def related(log: Log) -> Flags:
    """``bool[history]``: some operation depends on another; overwrites count even where cycles leave them out."""
    sources = log.writer[log.value_id[log.reads]]
    sourced = sources >= 0
    earlier, later = sources[sourced], log.reads[sourced]
    dependent = np.zeros(len(log.complete), dtype=bool)
    dependent[log.partition_history[log.partition[later[_different(log, earlier, later)]]]] = True
    if not dependent.all():  # overwrites take more work
        dependent[log.partition_history[log.partition[dependencies(log, ~dependent).later]]] = True
    return dependent


def _different(log: Log, rows: Numbers, others: Numbers) -> Flags:
    """``bool``, by entry: two rows of one log partition are of different operations."""
    different: Flags = log.index[rows] != log.index[others]
    return different


def tight(log: Log, candidates: Dependencies) -> Flags:
    """``bool[dependency]``: the later operation began before the earlier was acknowledged. Others make no cycle."""
    close: Flags = ended(log, candidates.earlier) > began(log, candidates.later)
    return close


def suspects(log: Log, ww_deps: Flags) -> Numbers:
    """Operations (packed, int64) on a cycle with real time, where no operation that sends does anything else.

    Then the order within a log partition is the only other order. Along it, the earliest moment at which a write can
    have happened is the latest begin so far; a write or a read that was acknowledged before that moment is on a cycle
    with the write that had not begun. A write whose place is not sure has no order but that of its own reads.
    """
    writers = chain(log)
    begin, partition = began(log, writers), log.partition[writers]
    earliest = np.where(ww_deps[log.partition_history[partition]], _running_maximum(partition, begin), begin)
    link = np.full(len(log.partition), -1, dtype=np.int64)  # of row: its place in the chain
    link[writers] = np.arange(len(writers))
    sourced = log.reads[log.writer[log.value_id[log.reads]] >= 0]
    placed = link[log.writer[log.value_id[sourced]]] >= 0
    reads = sourced[placed]
    rows = np.concatenate([writers, reads])
    links = np.concatenate([np.arange(len(writers)), link[log.writer[log.value_id[reads]]]])
    early = ended(log, rows) < earliest[links]
    packed = [_read_before_begun(log, sourced[~placed])]
    room = SUSPECTS_MAX
    for row, last in zip(rows[early].tolist(), links[early].tolist(), strict=True):
        members = _members(log, writers, row, last)
        room -= len(members)
        if room < 0 and len(packed) > 1:
            break
        packed.append(log.operation(members))
    return np.unique(np.concatenate(packed))


def _read_before_begun(log: Log, reads: Numbers) -> Numbers:
    """Operations (packed) of the reads that were acknowledged before their write had begun, and of those writes."""
    writers = log.writer[log.value_id[reads]]
    early = np.flatnonzero(ended(log, reads) < began(log, writers))[:SUSPECTS_MAX]
    return log.operation(np.concatenate([reads[early], writers[early]]))


def _members(log: Log, writers: Numbers, row: int, last: int) -> Numbers:
    """The writes from the nearest one that began after ``row`` had ended, up to place ``last``, and ``row`` itself."""
    end = int(ended(log, np.array([row]))[0])
    low = last
    while int(log.invoke_index[writers[low]]) <= end:
        low -= 1
    return np.append(writers[low : last + 1], row)


def _running_maximum(partition: Numbers, numbers: Numbers) -> Numbers:
    """The running maximum within each log partition; numbers are at least -1."""
    lift = int(numbers.max(initial=0)) + 2
    running: Numbers = np.maximum.accumulate(partition * lift + numbers + 1) - partition * lift - 1
    return running


def among(log: Log, candidates: Dependencies, operations: Numbers) -> list[Dependency]:
    """The dependencies between some operations (packed), spelled out."""
    few = candidates.where(
        np.isin(log.operation(candidates.earlier), operations) & np.isin(log.operation(candidates.later), operations)
    )
    return [
        _step(log, a, b, overwrites=w)
        for a, b, w in zip(few.earlier.tolist(), few.later.tolist(), few.overwrites.tolist(), strict=True)
    ]


def _step(log: Log, earlier: int, later: int, *, overwrites: bool) -> Dependency:
    step = CycleStep(
        type="ww" if overwrites else "wr",
        key=log.key(later),
        value=int(log.value[earlier]),
        a_mop_index=int(log.position[earlier]),
        b_mop_index=int(log.position[later]),
        next_value=int(log.value[later]) if overwrites else UNSET,
    )
    history = int(log.partition_history[log.partition[earlier]])
    return Dependency(history, _operation(log, earlier), _operation(log, later), step)


def _operation(log: Log, row: int) -> Operation:
    """The operation of a row."""
    rows = np.array([row])
    return Operation(int(log.index[row]), int(began(log, rows)[0]), int(ended(log, rows)[0]))

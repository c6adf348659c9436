"""``lost-write``: an acknowledged write is not in the log that consumers read.

A client read at or past the place where the write belongs, and no ok poll ever read the write. Example: ``a@0`` and
``b@1`` are acknowledged; a poll reads ``c@2``; no poll reads ``a`` or ``b``: both are lost. Absence alone proves
nothing, because a reader may be slow. A read past the place does.

Precisely, per log partition: the bound is the largest *first* index of a value that an ok poll read; a value whose
*last* index is at or below the bound, that no ok poll read, and whose last writer must have happened (acknowledged,
or uncertain and proved by a read of something else it sent; a known reader of uncommitted records proves no
transaction) is lost. First index for the bound and last index for the
duty keep duplicates from raising false alarms.

On a drained log the rule is stricter. Where final readers read the partition from its start to the log end offset
asked after healing, an acknowledged value that none of them saw is lost, even if it was the tail of the log, if its
offset was never answered (acks=0), or if a client had read it before it was destroyed. The write must have been
acknowledged before the final reader began, or at an offset below that end. Such findings carry ``"rule": "drained"``.

Where final readers of both isolation levels read to the end, each write must have been seen by those of either level:
one that only readers of uncommitted records see (``other-read``) is lost to all others.

In a compacted log only the last record of each key is due, of those that were acknowledged or read, and no tombstone,
nor what a tombstone may have deleted whose end or place is not known. Another later record of unknown end excuses
nothing: with it or without, the key has a last record. Of a log with retention.ms what is younger is due, from the
begin of its write to the last read of its log partition, a second less for clocks; and nothing before an offset at
which a broker said that the log begins.

False alarms avoided: slow readers, duplicates, uncertain writes that never happened, failed writes, writes that the
drain could not have seen, records that compaction or their age may remove. Not found: a value whose offset is unknown,
on a log that was not drained (see ``unseen``).

Findings: key, value, index, max-read-index, writer, max-read. O(n).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.columns.ids import Flags, Numbers, smallest_of
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace, FinalReads
from checkers.words import written
from workloads.history import INFO, NONE, OK

#: The fate of a lost write that the leader has where readers look, see :mod:`checkers.verdicts.replicas`.
IN_THE_LOG: Final = "in the log"


def mark_of(fate: str) -> str:
    """The mark of a lost write: whether a copy of what is gone is still on some disk is a matter of when one looks."""
    return fate if fate == IN_THE_LOG else ""


class Copy(msgspec.Struct, frozen=True):
    """A copy of a lost write that is left on a node's disk."""

    node: int
    offset: int


class LostWrite(Finding, kw_only=True):
    """A lost write. ``fate`` and ``copies`` say what is left of it on disks: :mod:`checkers.verdicts.replicas`."""

    value: Any
    index: int | None
    max_read_index: int | None = msgspec.field(name="max-read-index")
    writer: EventPlace
    max_read: EventPlace | None = msgspec.field(name="max-read")
    rule: str = ""
    log_end_offset: int | None = msgspec.field(name="log-end-offset", default=None)
    other_read: EventPlace | None = msgspec.field(name="other-read", default=None)
    fate: str = ""
    copies: list[Copy] = msgspec.field(default_factory=list)

    @property
    @override
    def mark(self) -> str:
        return mark_of(self.fate)

    @override
    def words(self) -> str:
        if self.other_read is None:
            return ""
        event = self.other_read.number
        return f"Readers of the other isolation level read {written(self.value)} (operation {event} of the history)."

    @property
    @override
    def aside(self) -> str:
        return f" ({self.fate})" if self.fate else ""


def lost_values(log: Log) -> tuple[Numbers, Numbers]:
    """Value ids (int64) of lost writes: those proved by a later read, and the others, proved by a drain."""
    due = (log.order.last_index >= 0) & ~log.seen & (log.writer >= 0)
    due &= (log.order.last_index <= _bound(log)[log.values.partition]) & ~log.removable
    passed = np.flatnonzero(due)
    passed = passed[log.committed[log.writer[passed]]]
    absent = _absent_after_drain(log, log.final) | _absent_after_drain(log, log.other_final)
    return passed, np.setdiff1d(np.flatnonzero(absent), passed)


def find(log: Log) -> Found:
    """All lost writes, those proved by a later read before those proved by a drain."""
    order, owner = log.order, log.values.partition
    bound = _bound(log)
    passed, drained = lost_values(log)
    lost = np.concatenate([passed, drained])
    readers = log.first_rows(log.all_reads[log.type[log.all_reads] == OK])
    max_reads = _max_reads(log, bound, readers) if len(lost) else readers
    ends = np.maximum(log.final.end, log.other_final.end)

    def describe(number: int) -> LostWrite:
        value = int(lost[number])
        partition, index = int(owner[value]), int(order.first_index[value])
        finding = LostWrite(
            key=log.partition_key[partition],
            value=int(log.values.number[value]),
            index=index if index >= 0 else None,
            max_read_index=int(bound[partition]) if bound[partition] >= 0 else None,
            writer=log.op(int(log.writer[value])),
            max_read=log.op(int(max_reads[partition])) if max_reads[partition] >= 0 else None,
        )
        if number >= len(passed):
            finding.rule, finding.log_end_offset = "drained", int(ends[partition])
        if readers[value] >= 0 and not log.read_ok[value]:
            finding.other_read = log.op(int(readers[value]))
        return finding

    return Found(
        partition=owner[lost],
        describe=describe,
        row=log.writer[lost],
        rank=np.arange(len(lost)),
        value=log.values.number[lost],
    )


def _bound(log: Log) -> Numbers:
    """``int64[log partition]``: the largest first index of a value that an ok poll read, -1 without such a poll."""
    bound = np.full(log.partition_count, NONE, dtype=np.int64)
    np.maximum.at(bound, log.values.partition[log.seen], log.order.first_index[log.seen])
    return bound


def _max_reads(log: Log, bound: Numbers, readers: Numbers) -> Numbers:
    """``int64[log partition]``: a row that read at the bound a value that ends there, or else one that begins there."""
    rows = np.full(log.partition_count, NONE, dtype=np.int64)
    limit = bound[log.values.partition]
    for index in (log.order.first_index, log.order.last_index):
        values = np.flatnonzero((index == limit) & (limit >= 0) & (readers >= 0))[::-1]
        rows[log.values.partition[values]] = readers[values]
    return rows


def _absent_after_drain(log: Log, final: FinalReads) -> Flags:
    """``bool[value]``: it was acknowledged, these final readers must have seen it, and they did not."""
    absent = np.zeros(len(log.values), dtype=bool)
    if not len(final.statements):
        return absent
    began, end = _began(log, final), final.end
    sends = log.sends[log.type[log.sends] == OK]
    partition = log.partition[sends]
    placed_below = (log.offset[sends] >= 0) & (log.offset[sends] < end[partition])
    covered = sends[(log.index[sends] < began[partition]) | placed_below]
    return log.marked(covered) & ~log.marked(final.reads) & ~log.removable


def uncertain_and_gone(log: Log) -> Numbers:
    """Value ids (int64) of sends of unknown end that have a place before an end that final readers reached unseen."""
    sends = log.sends[log.type[log.sends] == INFO]
    offset = log.last_offset[log.value_id[sends]]
    gone = np.zeros(len(log.values), dtype=bool)
    for final in (log.final, log.other_final):
        below = sends[(offset >= 0) & (offset < final.end[log.partition[sends]])]
        gone |= log.marked(below) & ~log.marked(final.reads)
    return np.flatnonzero(gone & ~log.removable)


def _began(log: Log, final: FinalReads) -> Numbers:
    """``int64[log partition]``: the event index at which the last of these final readers began, -1 without one."""
    began = np.full(log.partition_count, NONE, dtype=np.int64)
    readers = np.unique(log.client[final.statements])
    rows = np.flatnonzero(np.isin(log.client, readers))
    index = np.where(log.invoke_index[rows] >= 0, log.invoke_index[rows], log.index[rows])
    earliest = smallest_of(log.client[rows], index)
    owner = np.zeros(len(earliest), dtype=np.int64)
    owner[log.client[rows]] = log.partition[rows]
    np.maximum.at(began, owner[readers], earliest[readers])
    return began


ANOMALY = Anomaly.documented("lost-write", __doc__, LostWrite, find, title="A write that was acknowledged is gone")

"""The committed history of a log partition, as far as it is known, and what the log of a replica lacks of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

import msgspec

from harness.broker.core.invariants import Broken, candidates_are_complete, logs_match
from harness.broker.core.log import Log, MemoryLog
from harness.broker.core.messages import RecordBatch
from harness.broker.core.types import NONE, NodeId


class Committed(msgspec.Struct):
    """The history of one log partition, as far as it is known: what was ever committed, and what was read of it.

    ``end_offset`` is its length, ``last_epoch`` the leader epoch of its last record. That is enough to know all of it:
    a leader epoch has one leader, which only appends, so two logs with the same epoch at an offset hold the same
    records up to there (KIP-101). ``epochs`` are its leader epochs with their first offsets, as a log has them. A copy
    of a cleaned log has later ones, of records that are left: the earliest are kept, and a log that has no record at
    an offset says nothing of it.
    Where retention has dropped that record, its epoch is NONE: nothing is claimed of it.
    ``read`` has the batches that consumers got first, by their first offset.
    Leaders of epochs before ``since_epoch`` commit nothing that is claimed here.
    """

    end_offset: int = 0
    last_epoch: int = NONE
    epochs: Sequence[tuple[int, int]] = ()
    since_epoch: int = NONE
    read: dict[int, RecordBatch] = {}

    def commit(self, log: Log, end: int) -> None:
        """All of ``log`` below ``end`` is committed."""
        last_epoch = epoch_at(log, end - 1)
        if last_epoch != self.last_epoch:
            starts = dict(self.epochs)
            self.epochs = [(epoch, min(start, starts.get(epoch, start))) for epoch, start in log.epochs()]
        self.end_offset, self.last_epoch = end, last_epoch

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the committed record at ``offset``, NONE where none is known."""
        return _epoch_in(self.epochs, offset)

    def contradicted_by(self, batch: RecordBatch) -> tuple[object, object] | None:
        """The record that consumers got first at an offset of ``batch``, and the one there now, if those differ.

        A record that only one of the two has was cleaned away.
        """
        first = self.read.setdefault(batch.base_offset, batch)
        if first.records is batch.records:
            return None
        if first.kept is None and batch.kept is None:
            return None if first.records == batch.records else (first.records, batch.records)
        records = dict(first.placed())
        for offset, record in batch.placed():
            if records.get(offset, record) != record:
                return records[offset], record
        return None

    def lacking_in(self, node: NodeId, log: Log | None) -> Broken | None:
        """The invariant that the log of ``node`` breaks: it lacks the last committed record, and so not only that."""
        end = self.end_offset
        if log is None:
            return candidates_are_complete(node, 0, end)
        broken = candidates_are_complete(node, log.end_offset, end)
        if broken is not None or end <= log.start_offset or self.last_epoch == NONE:
            return broken
        broken = logs_match(node, end - 1, epoch_at(log, end - 1), self.last_epoch)
        return broken if broken is not None and has_record(log, end - 1) else None

    def damaged_in(self, node: NodeId, log: MemoryLog | None, excused: Collection[int]) -> Broken | None:
        """The same of a bad batch, torn or damaged: for everybody who reads the log it ends there.

        ``excused`` are the first offsets of batches that may be bad, since no start had to look at them (rule 25).
        """
        for batch in () if log is None else log.batches:
            if not batch.intact and batch.base_offset < self.end_offset and batch.base_offset not in excused:
                return candidates_are_complete(node, batch.base_offset, self.end_offset)
        return None


def epoch_at(log: Log, offset: int) -> int:
    """The leader epoch of the record at ``offset``, NONE where the log knows none."""
    return _epoch_in(log.epochs(), offset)


def has_record(log: Log, offset: int) -> bool:
    """True if the log has a record at ``offset``: it was not cleaned away."""
    return any(offset in batch.offsets for batch in log.read(offset, log.end_offset, 0))


def _epoch_in(epochs: Sequence[tuple[int, int]], offset: int) -> int:
    """The same in (leader epoch, first offset), ascending in both."""
    if epochs and epochs[-1][1] <= offset:
        return epochs[-1][0]
    index = bisect_right(epochs, offset, key=lambda pair: pair[1]) - 1
    return epochs[index][0] if index >= 0 else NONE

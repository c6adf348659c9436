"""Records that are gone from a compacted log before its cleaner may have removed them.

The times that the cleaner keeps them are settings of the topic, which final readers state (:class:`CleanerTimes`).
Each kernel's docstring is its specification. Both are O(n) in the writes, once for each final reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.expiry import CLOCKS_US
from checkers.columns.ids import Flags, rows_of, stable_order
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.record_keys import RecordKeys
from checkers.words import span, written
from workloads import CleanerTimes
from workloads.history import OK

#: No history lasts longer; a setting may.
_LONGEST_MS: Final = 10**15


class EarlyGone(Finding, kw_only=True):
    """A record that a final reader did not see, ``age_us`` after its write began and before ``kept_us``."""

    record_key: int = msgspec.field(name="record-key")
    value: Any
    offset: int
    age_us: int
    kept_us: int
    writer: EventPlace
    reader: EventPlace

    @override
    def words(self) -> str:
        of_key = f"{written(self.value).capitalize()} of key {self.record_key} of {self.key}"
        told = f"was acknowledged at offset {self.offset} (operation {self.writer.number} of the history)"
        ended = f"{span(self.age_us)} after the write began (operation {self.reader.number})"
        return (
            f"{of_key} {told}. A final reader that came to the end {ended} did not see it, though the log keeps it "
            f"for {span(self.kept_us)} at least."
        )

    @override
    def view(self) -> CopiesView:
        return CopiesView(record_key=self.record_key)


def lost_tombstone(log: Log, keys: RecordKeys) -> Found:
    """``lost-tombstone``: the last record of a key, a tombstone, is gone before its time.

    Example: the tombstone ``b@8`` of key 7 was acknowledged at 3 s, and delete.retention.ms is a day; at 20 s a final
    reader has come to offset 10, and read nothing at 8. A table that was built up to offset 5, and reads on from there,
    keeps key 7.

    A cleaner keeps a tombstone for delete.retention.ms after it first passed over it (KIP-534), which it does not do
    before the tombstone is min.compaction.lag.ms old.

    False alarms avoided: the age counts from the begin of the write to the reader's statement that it reached the end,
    and a second is left for clocks; tombstones whose place is not known, that are not acknowledged, or that are behind
    the reader's end; what that reader saw, of either isolation level; tombstones with a later record of their key,
    which are ``cleaned-early``; topics whose times are not known. How long a tombstone stays after its time is not
    bounded.

    Findings, one a tombstone, of its first reader: key, record-key, value, offset, age_us, kept_us, writer, reader.
    """
    due = keys.tombstone & ~keys.superseded
    return _gone(log, keys, due, lambda times: times.record_ms + times.tombstone_ms)


def cleaned_early(log: Log, keys: RecordKeys) -> Found:
    """``cleaned-early``: a record with a later one of its key is gone before its time.

    Example: ``a@3`` of key 7 was written at 2 s and ``b@8`` at 3 s; min.compaction.lag.ms is an hour; at 20 s a final
    reader has come to offset 10, and read ``b`` but not ``a``. Readers rely on the time to see every change.

    False alarms avoided: as for ``lost-tombstone``. The last record of a key is due for ever, which ``lost-write``
    says.

    Not found: a record that was removed from the newest segment, which no cleaner may touch at any age.

    Findings, one a record, of its first reader: key, record-key, value, offset, age_us, kept_us, writer, reader.
    """
    return _gone(log, keys, keys.superseded, lambda times: times.record_ms)


def _gone(log: Log, keys: RecordKeys, due: Flags, kept_ms: Callable[[CleanerTimes], int]) -> Found:
    """Acknowledged values among ``due``, younger than the cleaner keeps them, that a final reader did not see."""
    sends = log.sends[(log.type[log.sends] == OK) & (log.invoke_us[log.sends] >= 0)]
    sends = sends[due[log.value_id[sends]] & (log.last_offset[log.value_id[sends]] >= 0)]
    reads = np.concatenate([log.final.reads, log.other_final.reads])
    reads = reads[stable_order(log.client[reads])]
    partition, client = log.partition[sends], log.client[reads]
    gone, readers = [sends[:0]], [sends[:0]]
    kept_us = {drain: min(kept_ms(times), _LONGEST_MS) * 1000 for drain, times in sorted(log.cleaner_times.items())}
    for drain, limit_us in kept_us.items():
        mine = sends[rows_of(int(log.partition[drain]), partition)]
        age_us = log.time_us[drain] - log.invoke_us[mine]
        young = mine[(log.last_offset[log.value_id[mine]] < log.offset[drain]) & (age_us < limit_us - CLOCKS_US)]
        seen = reads[rows_of(int(log.client[drain]), client)]
        gone.append(young[~np.isin(log.value_id[young], log.value_id[seen])])
        readers.append(np.full(len(gone[-1]), drain))
    rows, reader = np.concatenate(gone), np.concatenate(readers)
    first = np.unique(log.value_id[rows], return_index=True)[1]  # of its first reader
    rows, reader = rows[first], reader[first]

    def describe(number: int) -> EarlyGone:
        row, drain = int(rows[number]), int(reader[number])
        return EarlyGone(
            key=log.key(row),
            record_key=int(keys.number[keys.of[log.value_id[row]]]),
            value=int(log.value[row]),
            offset=int(log.last_offset[log.value_id[row]]),
            age_us=int(log.time_us[drain] - log.invoke_us[row]),
            kept_us=kept_us[drain],
            writer=log.op(row),
            reader=log.op(drain),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.index[rows])


def _where_there_are(kernel: Callable[[Log, RecordKeys], Found]) -> Callable[[Log], Found]:
    """The kernel over a log that may have no keys, or whose final readers do not know the times of its cleaner."""

    def find(log: Log) -> Found:
        keys = log.keys
        return Found.nothing() if keys is None or not log.cleaner_times else kernel(log, keys)

    return find


#: In the order in which a report lists them.
EARLY_CLEANING: Final = Anomaly.each_documented(
    _where_there_are,
    (
        (
            "lost-tombstone",
            lost_tombstone,
            EarlyGone,
            About.LOG,
            "A tombstone is gone before its time",
            "A tombstone stays for delete.retention.ms after it was first cleaned (KIP-534).",
        ),
        (
            "cleaned-early",
            cleaned_early,
            EarlyGone,
            About.LOG,
            "A compacted log removed a record before its time",
            "A cleaner removes no record that is younger than min.compaction.lag.ms.",
        ),
    ),
)

"""``returned-key``: a deleted key of a compacted log is back.

A final reader's last record of the key, whatever its isolation level, is older than the key's tombstone.

Example: ``a@3`` and a tombstone ``b@8`` of key 7 are acknowledged. After healing, a final reader reads the log
partition from its start to its end, and its last record of key 7 is ``a@3``. A table built from the log has key 7.

Kafka keeps "at least the final state" of every key (design, "Log Compaction"), and a tombstone's final state is that
the key is gone. It comes back where a replica that was away for longer than delete.retention.ms missed the tombstone:
the leader has removed record and tombstone, so the replica fetches neither, and keeps the record.

False alarms avoided: tombstones whose acknowledgement is not known, or that came after the reader began; keys that were
written again later, or may have been, whatever became of that record (``lost-write``); a tombstone that is gone
together with what it deletes; records of aborted transactions; readers that did not reach the end.

Findings: key, record-key, value, offset, tombstone (its value), tombstone-offset, reader. O(n log n) in the records
that final readers read.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.heads import heads_of
from checkers.columns.ids import Numbers, smallest_of
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.columns.record_keys import RecordKeys
from workloads.history import NONE, OK


class ReturnedKey(Finding, kw_only=True):
    """A deleted key that a final reader has again."""

    record_key: int = msgspec.field(name="record-key")
    value: Any
    offset: int
    tombstone: Any
    tombstone_offset: int = msgspec.field(name="tombstone-offset")
    reader: EventPlace

    @override
    def words(self) -> str:
        return (
            f"Key {self.record_key} of {self.key} was deleted by the tombstone at offset "
            f"{self.tombstone_offset}, which was acknowledged. A reader from the start of the log to its end then "
            f"had its older record at offset {self.offset} as the last one: the key is back."
        )

    @override
    def view(self) -> CopiesView:
        return CopiesView(record_key=self.record_key)


def find(log: Log) -> Found:
    """Keys whose last record, for a final reader, is older than an acknowledged tombstone."""
    keys = log.keys
    if keys is None:
        return Found.nothing()
    heads = heads_of(log, keys, np.concatenate([log.final.reads, log.other_final.reads]))
    row_of = _tombstones_behind_all(log, keys)[heads.key]
    began = smallest_of(log.client, log.index)[heads.client]
    older = (log.last_offset[log.value_id[row_of]] > log.offset[heads.row]) & ~keys.tombstone[log.value_id[heads.row]]
    back = np.flatnonzero((row_of != NONE) & older & (log.index[row_of] < began))
    first = np.unique(heads.key[back], return_index=True)[1]
    back = back[first]  # one finding a key, of its first reader

    def describe(number: int) -> ReturnedKey:
        head, tombstone = int(heads.row[back[number]]), int(row_of[back[number]])
        return ReturnedKey(
            key=log.key(head),
            record_key=int(keys.number[heads.key[back[number]]]),
            value=int(log.value[head]),
            offset=int(log.offset[head]),
            tombstone=int(log.value[tombstone]),
            tombstone_offset=int(log.last_offset[log.value_id[tombstone]]),
            reader=log.op(head),
        )

    rows = heads.row[back]
    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.index[rows])


def _tombstones_behind_all(log: Log, keys: RecordKeys) -> Numbers:
    """``int64[key]``: the row of the first acknowledged tombstone behind all its other records, -1 for none.

    A record whose place is not known may be behind any.
    """
    written = np.flatnonzero(keys.possible & ~keys.tombstone)
    furthest = np.full(len(keys.number), NONE, dtype=np.int64)
    offset = np.where(log.last_offset[written] == NONE, np.iinfo(np.int64).max, log.last_offset[written])
    np.maximum.at(furthest, keys.of[written], offset)
    rows = log.sends[log.type[log.sends] == OK]
    rows = rows[keys.tombstone[log.value_id[rows]]]
    rows = rows[log.last_offset[log.value_id[rows]] > furthest[keys.of[log.value_id[rows]]]]
    first = np.full(len(keys.number), NONE, dtype=np.int64)
    order = rows[np.argsort(-log.index[rows], kind="stable")]
    first[keys.of[log.value_id[order]]] = order
    return first


ANOMALY = Anomaly.documented(
    "returned-key",
    __doc__,
    ReturnedKey,
    find,
    title="A deleted key of a compacted log is back",
    rule="A compacted log keeps the last state of each key, and a tombstone's is that the key is gone.",
)

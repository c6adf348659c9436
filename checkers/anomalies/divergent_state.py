"""``divergent-state``: two final readers of a compacted log partition have different last records of one key.

Example: after healing, with broker 0 as leader, a reader reads the log partition to its end, and key 7 is gone. With
broker 2 as leader, another reader's last record of key 7 is ``a@3``. What a table has depends on who leads.

Replicas of a compacted log may differ in their records, because each cleans for itself; they may not differ in the last
record of a key, nor in whether the key exists. A key without a record, and one whose last record is a tombstone, are
both deleted.

Readers are compared with those of the same isolation level, and none about records at or behind the end to which it was
told to read: the key was written again between the two.

False alarms avoided: readers that did not reach the end; a later record of the key behind the end of the reader that
has the record, or a tombstone that may be there, so that a cleaner removed this one for the other; records of aborted
transactions; log partitions that one reader read.

Findings: key, record-key, states (by the process of the reader, the last value, null for a deleted key). O(n log n) in
the records that final readers read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.heads import heads_of
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import FinalReads
from checkers.columns.record_keys import RecordKeys
from checkers.words import written
from workloads.history import NONE


class DivergentState(Finding, kw_only=True):
    """A key whose last record is not the same for all final readers."""

    record_key: int = msgspec.field(name="record-key")
    states: dict[int, Any]

    @override
    def words(self) -> str:
        states = [
            f"process {process} {'no record' if value is None else written(value)}"
            for process, value in sorted(self.states.items())
        ]
        had = f"Of key {self.record_key} of {self.key}, final readers had different last records"
        return f"{had}: {', '.join(states)}. Each read the log to its end, under another leader."

    @override
    def view(self) -> CopiesView:
        return CopiesView(record_key=self.record_key)


def find(log: Log) -> Found:
    """Keys whose state is not the same for all final readers of one level of the log partition."""
    keys = log.keys
    if keys is None:
        return Found.nothing()
    odd = [(final, rows) for final in (log.final, log.other_final) for rows in _contradictions(log, keys, final)]
    first = np.array([rows[0] for _, rows in odd], dtype=np.int64)

    def describe(number: int) -> DivergentState:
        final, rows = odd[number]
        partition = log.partition[rows[0]]
        readers = log.process[final.statements[log.partition[final.statements] == partition]]
        states: dict[int, Any] = dict.fromkeys(sorted(set(readers.tolist())))
        for row in rows.tolist():
            deletes = keys.tombstone[log.value_id[row]]
            states[int(log.process[row])] = None if deletes else int(log.value[row])
        record_key = int(keys.number[keys.of[log.value_id[rows[0]]]])
        return DivergentState(key=log.key(rows[0]), record_key=record_key, states=states)

    return Found(partition=log.partition[first], describe=describe, row=first, rank=log.index[first])


def _contradictions(log: Log, keys: RecordKeys, final: FinalReads) -> Iterator[Numbers]:
    """The rows of the last records of each key (int64) whose state is not the same for all readers of one level."""
    heads = heads_of(log, keys, final.reads)
    value = log.value_id[heads.row]
    state = np.where(keys.tombstone[value], NONE, value)
    _, first = np.unique(log.client[final.statements], return_index=True)
    readers = np.bincount(log.partition[final.statements[first]], minlength=log.partition_count)
    _, start, times = np.unique(heads.key, return_index=True, return_counts=True)
    lowest = np.minimum.reduceat(state, start) if len(start) else start
    highest = np.maximum.reduceat(state, start) if len(start) else start
    missing = times < readers[log.partition[heads.row[start]]]
    odd = np.flatnonzero((lowest != highest) | (missing & (highest != NONE)))
    ends = _Ends(log, keys, final.statements if len(odd) else final.statements[:0])
    for number in odd.tolist():
        mine = slice(start[number], start[number] + times[number])
        if ends.contradict(int(heads.key[start[number]]), heads.row[mine], state[mine]):
            yield heads.row[mine]


class _Ends:
    """The ends to which final readers were told to read, and what they say of a key together."""

    def __init__(self, log: Log, keys: RecordKeys, statements: Numbers) -> None:
        self._log, self._keys = log, keys
        self._end: dict[int, dict[int, int]] = {}
        for row in statements.tolist():
            of_partition = self._end.setdefault(int(log.partition[row]), {})
            client = int(log.client[row])
            of_partition[client] = max(int(log.offset[row]), of_partition.get(client, NONE))

    def contradict(self, key: int, rows: Numbers, states: Numbers) -> bool:
        """True if two readers of the log partition have different states of a key, by its last ``rows``."""
        log = self._log
        heads = {
            int(log.client[row]): (int(log.offset[row]), int(state))
            for row, state in zip(rows.tolist(), states.tolist(), strict=True)
        }
        ends = self._end[int(log.partition[rows[0]])]
        readers = [(end, *heads.get(client, (NONE, NONE))) for client, end in ends.items()]
        return any(self._differ(key, reader, other) for reader, other in combinations(readers, 2))

    def _differ(self, key: int, reader: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        """Compare two readers, by their end, and offset and state of their last record."""
        (end, offset, state), (other_end, other_offset, other_state) = reader, other
        if state == other_state or other_offset >= end or offset >= other_end:
            return False
        if NONE in (offset, other_offset):
            return not self._may_be_behind(key, end if other_offset == NONE else other_end)
        return True

    def _may_be_behind(self, key: int, end: int) -> bool:
        """True if a record of the key is at or behind an end, or a tombstone may be: a cleaner may go by it."""
        keys = self._keys
        values = np.flatnonzero(keys.possible & (keys.of == key))
        offset = self._log.last_offset[values]
        return bool(((offset >= end) | ((offset == NONE) & keys.tombstone[values])).any())


ANOMALY = Anomaly.documented(
    "divergent-state",
    __doc__,
    DivergentState,
    find,
    title="The last record of a key depends on who leads",
    rule="Replicas of a compacted log may differ in their records, but not in the last one of a key.",
)

"""``divergent-state``: two final readers of a compacted log partition have different last records of one key.

Example: after healing, with broker 0 as leader, a reader reads the log partition to its end, and key 7 is gone. With
broker 2 as leader, another reader's last record of key 7 is ``a@3``. What a table has depends on who leads.

Replicas of a compacted log may differ in their records, because each cleans for itself; they may not differ in the last
record of a key, nor in whether the key exists. A key without a record, and one whose last record is a tombstone, are
both deleted.

A reader is not compared with another one about records at or behind the end to which it was told to read: the key was
written again between the two.

False alarms avoided: readers that did not reach the end; a tombstone that may be behind the end of the reader that has
the record; records whose content was damaged; log partitions that one
reader read.

Findings: key, record-key, states (by the process of the reader, the last value, null for a deleted key). O(n log n) in
the records that final readers read.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.record_keys import RecordKeys
from checkers.words import written
from workloads.history import FAIL, NONE, OK


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
    """Keys whose state is not the same for all final readers of the log partition."""
    keys, heads = log.keys, log.heads
    if keys is None or heads is None:
        return Found.nothing()
    value = log.value_id[heads.row]
    state = np.where(keys.tombstone[value], NONE, value)
    _, first = np.unique(log.client[log.drains], return_index=True)
    readers = np.bincount(log.partition[log.drains[first]], minlength=log.partition_count)
    number, start, times = np.unique(heads.key, return_index=True, return_counts=True)
    lowest = np.minimum.reduceat(state, start) if len(start) else start
    highest = np.maximum.reduceat(state, start) if len(start) else start
    partition = log.partition[heads.row[start]]
    missing = times < readers[partition]
    odd = np.flatnonzero((lowest != highest) | (missing & (highest != NONE)))
    ends = _Ends(log, keys, odd)
    contradictions = [
        ends.contradict(
            int(partition[key]),
            int(number[key]),
            heads.row[mine := slice(start[key], start[key] + times[key])],
            state[mine],
        )
        for key in odd.tolist()
    ]
    odd = odd[np.array(contradictions, dtype=bool)]

    def describe(which: int) -> DivergentState:
        key = odd[which]
        mine = slice(int(start[key]), int(start[key] + times[key]))
        states: dict[int, Any] = dict.fromkeys(_final_processes(log, int(partition[key])))
        for row, last in zip(heads.row[mine].tolist(), state[mine].tolist(), strict=True):
            states[int(log.process[row])] = None if last == NONE else int(log.value[row])
        return DivergentState(
            key=log.partition_key[int(partition[key])], record_key=int(keys.number[number[key]]), states=states
        )

    rows = heads.row[start[odd]]
    return Found(partition=partition[odd], describe=describe, row=rows, rank=log.index[rows])


class _Ends:
    """The ends to which final readers were told to read, and what they say of a key together."""

    def __init__(self, log: Log, keys: RecordKeys, asked: Numbers) -> None:
        """``asked`` are what is looked at; where there is nothing, ends are not."""
        self._log, self._keys = log, keys
        self._end: dict[int, dict[int, int]] = {}
        for row in log.drains.tolist() if len(asked) else ():
            of_partition = self._end.setdefault(int(log.partition[row]), {})
            client = int(log.client[row])
            of_partition[client] = max(int(log.offset[row]), of_partition.get(client, NONE))

    def contradict(self, partition: int, key: int, rows: Numbers, states: Numbers) -> bool:
        """True if two readers of the log partition have different states of a key, by its last ``rows``."""
        heads = {
            int(self._log.client[row]): (int(self._log.offset[row]), int(state))
            for row, state in zip(rows.tolist(), states.tolist(), strict=True)
        }
        readers = [(end, *heads.get(client, (NONE, NONE))) for client, end in self._end[partition].items()]
        return any(self._differ(key, *sorted(pair)) for pair in combinations(readers, 2))

    def _differ(self, key: int, first: tuple[int, int, int], second: tuple[int, int, int]) -> bool:
        """Compare two readers, by their end, and offset and state of their last record; the first end is not larger."""
        (end, offset, state), (other_end, other_offset, other_state) = first, second
        if state == other_state or other_offset >= end or offset >= other_end:
            return False
        gone = other_offset == NONE and end < other_end
        return not (gone and self._may_be_deleted(key, end))

    def _may_be_deleted(self, key: int, end: int) -> bool:
        """True if a tombstone of the key may be at or behind an end."""
        log, keys = self._log, self._keys
        failed = log.sends[log.type[log.sends] == FAIL]
        values = (keys.of == key) & keys.tombstone & ~log.marked(failed)
        offset = np.full(len(log.values), NONE, dtype=np.int64)
        for rows in (log.sends[log.type[log.sends] == OK], log.all_reads):
            np.maximum.at(offset, log.value_id[rows], log.offset[rows])
        return bool((values & ((offset == NONE) | (offset >= end))).any())


def _final_processes(log: Log, partition: int) -> list[int]:
    rows = log.drains[log.partition[log.drains] == partition]
    return sorted({int(process) for process in log.process[rows].tolist()})


ANOMALY = Anomaly.documented(
    "divergent-state",
    __doc__,
    DivergentState,
    find,
    title="The last record of a key depends on who leads",
    rule="Replicas of a compacted log may differ in their records, but not in the last one of a key.",
)

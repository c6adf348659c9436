"""``divergent-reads``: of two final readers of a log partition only one read a record that both had to see.

Example: after healing, with broker 0 as leader, a reader of committed records reads ``a@3`` and ``b@5`` to the end at
6. With broker 2 as leader, another one is told the same end, and reads ``a@3`` only. What is committed depends on who
leads: each replica has records and markers of its own, and its own account of aborted transactions.

Readers are compared with those of the same isolation level, below the ends that they were told.

False alarms avoided: readers that did not reach the end; records whose content was damaged; records at or past a
reader's end; values that are in the log twice, where one offset is enough; records with a key of a compacted log, which
a cleaner may remove for one of them (``divergent-state``); records that are older than retention.ms.

Not found: a record that no final reader saw (``lost-write``), or that one read twice (``duplicate``).

Findings, one a value: key, value, offset, isolation (where it is known), readers and others (processes that read it,
and that did not). O(n log n) in the records that final readers read.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.anomalies.view import CopiesView
from checkers.columns.ids import Numbers, one_of
from checkers.columns.isolation_levels import OTHER_READ
from checkers.columns.log import Log
from checkers.columns.log_rows import FinalReads
from checkers.words import process_names, written
from workloads import IsolationLevel
from workloads.history import NONE, OK, Kind


class DivergentRead(Finding, kw_only=True):
    """A record that some final readers read, and others did not."""

    value: Any
    offset: int
    readers: list[int]
    others: list[int]
    isolation: IsolationLevel | None = None

    @override
    def words(self) -> str:
        level = "" if self.isolation is None else f" with isolation.level={self.isolation}"
        return (
            f"{written(self.value).capitalize()} at offset {self.offset} of {self.key} was read by final readers"
            f"{level} ({process_names(self.readers)}), and not by others ({process_names(self.others)}), which read on "
            "to an end behind it. Each read the log from its start."
        )

    @override
    def view(self) -> CopiesView:
        return CopiesView(offset=self.offset, readers=(*self.readers, *self.others))


class _Odd(NamedTuple):
    """The first rows that read values which not all readers have; and all such reads below the ends (int64)."""

    first: Numbers
    reads: Numbers
    final: FinalReads


def find(log: Log) -> Found:
    """Values that one final reader read and another one of its level did not."""
    levels = [_odd(log, final) for final in (log.final, log.other_final)]
    rows = np.concatenate([odd.first for odd in levels])
    split = len(levels[0].first)

    def describe(number: int) -> DivergentRead:
        return _described(log, levels[number >= split], int(rows[number]))

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.index[rows])


def _odd(log: Log, final: FinalReads) -> _Odd:
    ends = _ends(log, final)
    partition, told = _told(log, final, ends)
    rows = final.reads[np.bincount(partition, minlength=log.partition_count)[log.partition[final.reads]] > 1]
    rows = rows[log.offset[rows] < ends[log.client[rows]]]
    if log.keys is not None:
        rows = rows[log.keys.of[log.value_id[rows]] == NONE]
    rows = rows[~log.expired[log.value_id[rows]]]
    if not len(rows):
        return _Odd(rows, rows, final)
    value, last = log.value_id[rows], np.full(len(log.values), NONE, dtype=np.int64)
    np.maximum.at(last, value, log.offset[rows])
    broken, clients = _broken_there(log, final, rows)
    had, client = np.append(value, broken), np.append(log.client[rows], clients)
    asked = ends[client] > last[had]
    pairs = np.unique(had[asked] * len(ends) + client[asked])
    times = np.bincount(pairs // len(ends), minlength=len(log.values))
    first = rows[np.unique(value, return_index=True)[1]]
    value = log.value_id[first]
    return _Odd(first[times[value] < _behind(partition, told, log.partition[first], last[value])], rows, final)


def _broken_there(log: Log, final: FinalReads, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Value ids and clients (int64) of broken records that final readers read where others read these values."""
    if not (log.defect != 0).any():
        return rows[:0], rows[:0]
    readers = np.isin(log.client, log.client[final.statements])
    broken = np.flatnonzero(readers & one_of(log.kind, Kind.READ, OTHER_READ) & (log.type == OK) & (log.defect != 0))
    pairs = [
        (int(log.value_id[row]), int(log.client[other]))
        for other in broken.tolist()
        for row in rows[
            (log.partition[rows] == log.partition[other]) & (log.offset[rows] == log.offset[other])
        ].tolist()
    ]
    values, clients = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return values, clients


def _ends(log: Log, final: FinalReads) -> Numbers:
    """``int64[client]``: the largest end to which it read as a final reader, -1 for any other client."""
    clients = log.client[final.statements]
    ends = np.full(int(clients.max(initial=NONE)) + 1, NONE, dtype=np.int64)
    np.maximum.at(ends, clients, log.offset[final.statements])
    return ends


def _told(log: Log, final: FinalReads, ends: Numbers) -> tuple[Numbers, Numbers]:
    """The final readers by their log partitions and ends, in this order (int64)."""
    clients, first = np.unique(log.client[final.statements], return_index=True)
    partition, told = log.partition[final.statements[first]], ends[clients]
    order = np.lexsort((told, partition))
    return partition[order], told[order]


def _behind(partition: Numbers, told: Numbers, asked: Numbers, offsets: Numbers) -> Numbers:
    """The number (int64) of readers of these log partitions that were told an end behind these offsets."""
    _, rank = np.unique(np.concatenate([told, offsets]), return_inverse=True)
    span = int(rank.max(initial=0)) + 1
    upto = np.searchsorted(partition * span + rank[: len(told)], asked * span + rank[len(told) :], "right")
    behind: Numbers = np.searchsorted(partition, asked, "right") - upto
    return behind


def _described(log: Log, odd: _Odd, row: int) -> DivergentRead:
    partition, value = int(log.partition[row]), int(log.value_id[row])
    reads = odd.reads[log.value_id[odd.reads] == value]
    statements = odd.final.statements
    due = statements[(log.partition[statements] == partition) & (log.offset[statements] > log.offset[reads].max())]
    readers = {int(process) for process in log.process[reads].tolist()}
    return DivergentRead(
        key=log.partition_key[partition],
        value=int(log.values.number[value]),
        offset=int(log.offset[row]),
        readers=sorted(readers),
        others=sorted({int(process) for process in log.process[due].tolist()} - readers),
        isolation=log.isolation_of(row),
    )


ANOMALY = Anomaly.documented(
    "divergent-reads",
    __doc__,
    DivergentRead,
    find,
    title="What readers get depends on who leads",
    rule="Every in-sync replica has the same committed records (rules 4, 7), and the same aborted "
    "transactions (KIP-98).",
)

"""Counts of transactions: how many there were, how they ended, and what was put to the test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from typing_extensions import override

from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from checkers.columns.transactions import aborted_rows
from checkers.measures.measure import Measure
from workloads.history import FAIL, INFO, NONE, OK, UNCOMMITTED


class TransactionCounts(Measure):
    """Counts of one history, or of some of its log partitions; all are 0 where nothing was written in transactions.

    Attributes:
        committed, aborted, unknown: transactions by their end. Each is counted in the log partition of its first write.
        superseded: those whose producer had a successor before it asked for the end.
        aborted_passed: values of aborted transactions that were acknowledged at an offset below the end to which final
            readers read: what must not be seen there, or what readers of uncommitted records must be able to see.
        aborted_seen: values of aborted transactions that readers of uncommitted records read, and that those of
            committed ones had to step over.
        unread_levels: log partitions that final readers of one isolation level read to their end, and those of the
            other level did not; None where no final reader tells its level.
        late: values that producers sent after their successor was told that it is in charge.
        effects: values that members of a pipeline made of records, in transactions that were committed.
        offsets_aborted: log partitions in aborted transactions whose offsets the group had taken.
        offsets_refused: log partitions whose offsets the group refused to take from a member.
    """

    committed: int = 0
    aborted: int = 0
    unknown: int = 0
    superseded: int = 0
    aborted_passed: int = 0
    aborted_seen: int = 0
    unread_levels: int | None = None
    late: int = 0
    effects: int = 0
    offsets_aborted: int = 0
    offsets_refused: int = 0

    @property
    def all(self) -> int:
        """All transactions that ended."""
        return self.committed + self.aborted + self.unknown

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[TransactionCounts]:
        histories = len(phases)
        facts = log.transactions
        if facts is None:
            return [cls() for _ in range(histories)]
        rows = log.sends[facts.own[log.sends]]
        whole = rows[log.position[rows] == 0]
        ends = {kind: _counted(log, whole[log.type[whole] == kind], histories) for kind in (OK, FAIL, INFO)}
        first = [row for row in facts.superseded_us if log.position[row] == 0]
        superseded = _counted(log, np.array(first, dtype=np.int64), histories)
        late = _counted(log, np.array(sorted(facts.late), dtype=np.int64), histories)
        effects = _counted(log, rows[(log.type[rows] == OK) & (facts.source[rows] >= 0)], histories)
        aborted, refused = _offsets(log)
        passed = _counted(log, rows[_passed(log, rows)], histories)
        seen = _counted(log, rows[_seen_uncommitted(log, rows)], histories)
        unread = _unread_levels(log, histories)
        return [
            cls(
                committed=int(ends[OK][history]),
                aborted=int(ends[FAIL][history]),
                unknown=int(ends[INFO][history]),
                superseded=int(superseded[history]),
                aborted_passed=int(passed[history]),
                aborted_seen=int(seen[history]),
                unread_levels=unread[history],
                effects=int(effects[history]),
                offsets_aborted=int(_counted(log, aborted, histories)[history]),
                offsets_refused=int(_counted(log, refused, histories)[history]),
                late=int(late[history]),
            )
            for history in range(histories)
        ]

    @override
    def add(self, other: Self) -> None:
        super().add(other)
        if self.unread_levels is None:
            self.unread_levels = other.unread_levels


def _counted(log: Log, rows: Numbers, histories: int) -> Numbers:
    return np.bincount(log.partition_history[log.partition[rows]], minlength=histories)


def _offsets(log: Log) -> tuple[Numbers, Numbers]:
    """Rows of offsets that a group had taken for a transaction that was aborted, and of those that it refused."""
    groups, facts = log.groups, log.transactions
    if groups is None or facts is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows, handed = groups.in_transactions, groups.handed_over
    aborted = rows[(facts.handed_us[rows] >= 0) & aborted_rows(log.type, facts, rows)]
    return aborted, handed[log.type[handed] == FAIL]


def _seen_uncommitted(log: Log, rows: Numbers) -> Flags:
    """Mark those of these rows of transactions that were aborted and that known readers of uncommitted records read."""
    if log.isolation is None:
        return np.zeros(len(rows), dtype=bool)
    uncommitted = log.all_reads[log.isolation[log.all_reads] == UNCOMMITTED]
    seen: Flags = (log.type[rows] == FAIL) & log.marked(uncommitted)[log.value_id[rows]]
    return seen


def _passed(log: Log, rows: Numbers) -> Flags:
    """Mark those of these rows of transactions that were aborted and that final readers came past (bool)."""
    offset = log.offset[rows]
    passed: Flags = (log.type[rows] == FAIL) & (offset >= 0) & (offset < log.drained_end[log.partition[rows]])
    return passed


def _unread_levels(log: Log, histories: int) -> list[int | None]:
    """By history, the log partitions that were read to their end at one isolation level only."""
    if log.isolation is None:
        return [None] * histories
    statements = np.concatenate([log.final.statements, log.other_final.statements])
    told = log.partition[statements[log.isolation[statements] != NONE]]
    of_one = np.unique(told[(log.final.end[told] == NONE) | (log.other_final.end[told] == NONE)])
    tell = np.bincount(log.partition_history[told], minlength=histories) > 0
    unread = np.bincount(log.partition_history[of_one], minlength=histories)
    return [int(unread[history]) if tell[history] else None for history in range(histories)]

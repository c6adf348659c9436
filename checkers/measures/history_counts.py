"""Counts of what a history did to the log, by history and by log partition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks, inside
from checkers.measures.measure import Measure
from workloads.history import FAIL, INFO, INVOKE, OK


class Exercise(Measure):
    """Counts of what a history did to the log: counts of writes unless the name says otherwise.

    ``acknowledged_in_fault`` counts writes acknowledged between the begin and the end of a fault that took effect.
    ``drained`` is true when the final readers reached, on every partition, the log end offset asked after healing.
    """

    attempted: int = 0
    acknowledged: int = 0
    acknowledged_in_fault: int = 0
    rejected: int = 0
    unknown: int = 0
    records_read: int = 0
    drained: bool = False

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[Exercise]:
        return _exercise(log, phases)


def _exercise(log: Log, phases: Sequence[RunMarks]) -> list[Exercise]:
    """Count everything but ``drained``, which stays false (:func:`drained`). O(n)."""
    histories = len(phases)
    owner = log.partition_history[log.partition[log.sends]]
    kinds = log.type[log.sends]
    by_type = {kind: np.bincount(owner[kinds == kind], minlength=histories) for kind in (OK, FAIL, INFO)}
    pending = np.bincount(log.partition_history[log.partition[_pending(log)]], minlength=histories)
    reads = np.bincount(log.partition_history[log.partition[log.reads]], minlength=histories)
    return [
        Exercise(
            attempted=int(sum(counts[history] for counts in by_type.values()) + pending[history]),
            acknowledged=int(by_type[OK][history]),
            acknowledged_in_fault=_in_fault(log, owner == history, phases[history]),
            rejected=int(by_type[FAIL][history]),
            unknown=int(by_type[INFO][history] + pending[history]),
            records_read=int(reads[history]),
        )
        for history in range(histories)
    ]


def drained(log: Log) -> Flags:
    """``bool[log partition]``: a final reader stated that it had read it to its end."""
    flags = np.zeros(log.partition_count, dtype=bool)
    flags[log.partition[log.drains]] = True
    return flags


def _in_fault(log: Log, mine: Flags, phases: RunMarks) -> int:
    windows = phases.fault_windows()
    if not len(windows):
        return 0
    rows = log.sends[mine]
    return int(inside(log.time_us[rows[log.type[rows] == OK]], windows).sum())


def _pending(log: Log) -> Numbers:
    """Rows of sends that were begun and never answered."""
    begun: Numbers = log.attempts[log.type[log.attempts] == INVOKE]
    if not len(begun):
        return begun
    answered = log.invoke_index[log.sends]
    keys = log.partition[log.sends] << 40 | answered
    pending: Numbers = begun[~np.isin(log.partition[begun] << 40 | log.index[begun], keys[answered >= 0])]
    return pending

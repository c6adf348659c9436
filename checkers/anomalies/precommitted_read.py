"""``precommitted-read``: an operation read a value that it sent itself, before it could have committed.

Example: a transaction sends ``a`` to ``x`` and then polls ``x`` and reads ``a``. Operations of any outcome are held
to it.

Findings, one for each operation and log partition: key, op, value (the first). O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace


class PrecommittedRead(Finding, kw_only=True):
    """An operation and the first of its own values that it read."""

    op: EventPlace
    value: Any


def find(log: Log) -> Found:
    """Operations that read their own writes."""
    sent = log.sends[np.isin(log.operation(log.sends), log.operation(log.all_reads))]
    own = _pairs(log, sent)
    suspects = log.all_reads[np.isin(log.operation(log.all_reads), log.operation(sent))]
    reads = suspects[np.isin(_pairs(log, suspects), own)]
    _, first = np.unique(np.stack([log.partition[reads], log.index[reads]]), axis=1, return_index=True)
    rows = reads[first]

    def describe(number: int) -> PrecommittedRead:
        row = int(rows[number])
        return PrecommittedRead(key=log.key(row), op=log.op(row), value=int(log.value[row]))

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.index[rows])


def _pairs(log: Log, rows: Numbers) -> Numbers:
    """(value, event index) of rows as single numbers; both fit, because there are fewer of each than rows."""
    packed: Numbers = log.value_id[rows] * (int(log.index.max(initial=0)) + 1) + log.index[rows]
    return packed


ANOMALY = Anomaly.documented("precommitted-read", __doc__, PrecommittedRead, find, about=About.READERS)

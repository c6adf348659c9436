"""``G1a``: an ok poll read a value whose write failed.

Example: a send of 2 to ``x`` is answered with a definite failure; later a poll reads ``2@0`` from ``x``. Either the
failure was no failure, or an aborted transaction is visible.

False alarms avoided: uncertain writes may appear at any time; polls that failed or are uncertain are not held to it. A
transaction that failed leaves its records in the log, and a reader that says ``read_uncommitted`` may see them; a send
that failed leaves none. A reader that does not say its level is held to ``read_committed``. Values of transactions with
a known end are held to ``aborted-read``.

Findings, one a read: key, value, writer, reader. O(n).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads import Function
from workloads.history import FAIL, FUNCTION_CODE, OK, UNCOMMITTED

_TXN: Final = FUNCTION_CODE[Function.TXN]


class FailedWriteRead(Finding, kw_only=True):
    """A read that returned a failed write."""

    value: Any
    writer: EventPlace
    reader: EventPlace


def find(log: Log) -> Found:
    """Reads of failed writes, in order."""
    reads = log.all_reads[log.type[log.all_reads] == OK]
    fails = log.sends[log.type[log.sends] == FAIL]
    if log.transactions is not None:
        fails = fails[~log.transactions.own[fails]]
    alone = log.marked(fails[log.function[fails] != _TXN])[log.value_id[reads]]
    in_transactions = log.marked(fails[log.function[fails] == _TXN])[log.value_id[reads]]
    if log.isolation is not None:
        in_transactions &= log.isolation[reads] != UNCOMMITTED
    reads = reads[alone | in_transactions]
    _, first = np.unique(np.stack([log.value_id[reads], log.index[reads]]), axis=1, return_index=True)
    reads = reads[np.sort(first)]
    failed = log.first_rows(fails)

    def describe(number: int) -> FailedWriteRead:
        row = int(reads[number])
        return FailedWriteRead(
            key=log.key(row),
            value=int(log.value[row]),
            writer=log.op(int(failed[log.value_id[row]])),
            reader=log.op(row),
        )

    return Found(partition=log.partition[reads], describe=describe, row=reads)


ANOMALY = Anomaly.documented("G1a", __doc__, FailedWriteRead, find, about=About.READERS)

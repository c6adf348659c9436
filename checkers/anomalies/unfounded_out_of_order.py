"""``unfounded-out-of-order``: a producer was told OUT_OF_ORDER_SEQUENCE_NUMBER, and no acknowledged write is missing.

By KIP-185 this error says that acknowledged records were lost: a properly configured producer and broker get it for
nothing else. Example: producer 0 has the writes 0 and 1 of ``t-0`` acknowledged, and write 2 ends with the error. The
log is read to its end, and has 0 and 1. So the broker forgot what it had taken, or the client sent a batch too early.

This is a finding about a client library or a broker, never about what is in the log: it makes no history invalid and
breaks no promise.

Precisely, per log partition: each write that ended with this error, by the name that any client library gives it, where
final readers read the log partition to its end, and no acknowledged write of any producer is lost there. ``unanswered``
counts the writes of the same producer instance before it, on the same log partition, whose end is not known: where
there are any, the client gave a batch up, and its own numbers have the gap.

False alarms avoided: where an acknowledged write is lost (``lost-write``), the error is right. Where the log was not
read to its end, or its records may go by age or by compaction, nothing is known. A producer that meets the error,
begins its numbers again and delivers the write reports no error, so it is no finding.

Not found: an error that a client library hides behind another name, as librdkafka does with fatal errors.

Findings, one a write: key, value, instance, op, unanswered. Source: KIP-185. O(n).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Allowed, Anomaly, Finding, Found
from checkers.anomalies.lost_write import lost_values
from checkers.columns.ids import Flags
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from checkers.words import counted, written
from workloads import Refusal
from workloads.history import INFO, NONE


class UnfoundedError(Finding, kw_only=True):
    """A write that ended with the error, though nothing that was acknowledged is missing."""

    value: Any
    instance: int | None
    op: EventPlace
    unanswered: int = msgspec.field(default=0)

    @override
    def words(self) -> str:
        told = f"{written(self.value).capitalize()} to {self.key} ended with OUT_OF_ORDER_SEQUENCE_NUMBER"
        gap = (
            f"; {counted(self.unanswered, 'write')} before it of the same producer had no answer"
            if self.unanswered
            else ""
        )
        return f"{told} (operation {self.op.number} of the history), and every acknowledged write was read{gap}."


def find(log: Log) -> Found:
    """The writes that ended with the error where every acknowledged write is there, in order."""
    rows = log.sends[log.refusal[log.sends] == Refusal.OUT_OF_ORDER]
    if not len(rows):
        return Found.nothing()
    rows = rows[_whole(log)[log.partition[rows]]]

    def describe(number: int) -> UnfoundedError:
        row = int(rows[number])
        mine = log.sends[(log.partition[log.sends] == log.partition[row]) & (log.index[log.sends] < log.index[row])]
        mine = mine[(log.instance[mine] == log.instance[row]) & (log.type[mine] == INFO)]
        instance = int(log.instance[row])
        return UnfoundedError(
            key=log.partition_key[int(log.partition[row])],
            value=int(log.values.number[int(log.value_id[row])]),
            instance=None if instance == NONE else instance,
            op=log.op(row),
            unanswered=0 if instance == NONE else int((log.refusal[mine] != Refusal.OUT_OF_ORDER).sum()),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows)


def _whole(log: Log) -> Flags:
    """``bool[log partition]``: it was read to its end, and every acknowledged write had to be seen, and was."""
    whole = np.maximum(log.final.end, log.other_final.end) >= 0
    for values in (*lost_values(log), np.flatnonzero(log.removable)):
        whole[log.values.partition[values]] = False
    return whole


ANOMALY: Final = Anomaly.documented(
    "unfounded-out-of-order",
    __doc__,
    UnfoundedError,
    find,
    Allowed.ALWAYS,
    about=About.CLIENTS,
    title="A producer was told that numbers are missing, and no acknowledged write is",
    rule="OUT_OF_ORDER_SEQUENCE_NUMBER says that acknowledged records were lost (KIP-185).",
)

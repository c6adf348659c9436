"""``duplicate``: one value is at more than one offset of the log.

Example: a send of ``a`` is answered with offset 1, and a poll reads ``b@2 a@3``: ``a`` is there twice. A producer that
tries again without idempotence does this.

False alarms avoided: offsets of sends that failed or are not proved to have happened do not count; reads of one
record by many clients, of either isolation level, are one place.

Findings: key, value, count, offsets. O(n) where offsets are dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.anomalies.view import WriteView
from checkers.columns.ids import starts_of
from checkers.columns.log import Log

#: A value that keeps coming back is shown with this many of its offsets.
OFFSETS_MAX = 100


class Duplicate(Finding, kw_only=True):
    """A value that was seen at ``count`` offsets, some of them in ``offsets``."""

    value: Any
    count: int
    offsets: list[int]

    @override
    def view(self) -> WriteView:
        return WriteView(values=(self.value,), offsets=tuple(self.offsets))


def find(log: Log) -> Found:
    """Values at more than one offset, the most frequent first."""
    order = log.order
    begins = starts_of(order.entry_value)
    counts = np.diff(np.append(begins, len(order.entry_value)))
    several = np.flatnonzero(counts > 1)
    values = order.entry_value[begins[several]]

    def describe(number: int) -> Duplicate:
        begin, count = int(begins[several[number]]), int(counts[several[number]])
        entries = order.entry_offset[begin : begin + min(count, OFFSETS_MAX)]
        return Duplicate(
            key=log.partition_key[int(log.values.partition[values[number]])],
            value=int(log.values.number[values[number]]),
            count=count,
            offsets=order.offsets.number[entries].tolist(),
        )

    return Found(
        partition=log.values.partition[values], describe=describe, row=log.writer[values], rank=-counts[several]
    )


ANOMALY = Anomaly.documented(
    "duplicate",
    __doc__,
    Duplicate,
    find,
    about=About.PRODUCERS,
    title="A record is in the log more than once",
    rule="With enable.idempotence=true a broker knows a batch that is sent again: a record is in the log "
    "once (rule 21).",
)

"""``inconsistent-offsets``: two different values were seen at one offset.

Example: a send of 641 is answered with offset 537, later a send of 645 is, too. The log's history was rewritten, as
when a leader that had acknowledged was replaced by one that did not have the record.

An offset has one value for readers of both isolation levels: one level passes over it, or sees the same.

False alarms avoided: offsets of sends that failed or are not proved to have happened do not count.

Findings: key, offset, index, values, and ``seen``: each client that saw a value there, when, and how. O(n log n) in the
entries.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import msgspec
import numpy as np
from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding, Found
from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads.history import INVOKE, Kind, Origin

#: Witnesses listed for each value.
WITNESSES_MAX = 4
VALUES_MAX = 100


class Sighting(msgspec.Struct, kw_only=True):
    """A client that saw a ``value`` at an offset, when, and how."""

    value: Any
    by: Literal["poll", "send"]
    process: int
    time_us: int
    op: EventPlace


class InconsistentOffset(Finding, kw_only=True):
    """An offset with its values."""

    offset: int
    index: int
    values: list[Any]
    seen: list[Sighting]

    @override
    def told(self, origin: Origin) -> Self:
        told = super().told(origin)  # values of one offset are a set, and codes of foreign ones have no order
        told.values.sort(key=lambda value: (type(value).__name__, value if isinstance(value, int) else str(value)))
        return told

    @property
    @override
    def aside(self) -> str:
        return f", all at offset {self.offset}"


def find(log: Log) -> Found:
    """Offsets with several values, those with the fewest first."""
    order = log.order
    counts = np.bincount(order.entry_offset, minlength=len(order.offsets))
    conflicts = np.flatnonzero(counts > 1)

    def describe(number: int) -> InconsistentOffset:
        offset_id = int(conflicts[number])
        values = np.sort(order.entry_value[order.entry_offset == offset_id])[:VALUES_MAX]
        partition, offset = int(order.offsets.partition[offset_id]), int(order.offsets.number[offset_id])
        return InconsistentOffset(
            key=log.partition_key[partition],
            offset=offset,
            index=int(order.index[offset_id]),
            values=log.values.number[values].tolist(),
            seen=[witness for value in values.tolist() for witness in _witnesses(log, partition, offset, value)],
        )

    return Found(
        partition=order.offsets.partition[conflicts],
        describe=describe,
        row=log.writer[order.at_offset[conflicts]],
        rank=counts[conflicts],
    )


def _witnesses(log: Log, partition: int, offset: int, value: int) -> list[Sighting]:
    begin, end = np.searchsorted(log.partition, [partition, partition + 1])
    stretch = slice(int(begin), int(end))
    here: Numbers = begin + np.flatnonzero(
        (log.offset[stretch] == offset) & (log.value_id[stretch] == value) & (log.type[stretch] != INVOKE)
    )
    return [
        Sighting(
            value=int(log.value[row]),
            by="send" if log.kind[row] == Kind.SEND else "poll",
            process=int(log.process[row]),
            time_us=int(log.time_us[row]),
            op=log.op(row),
        )
        for row in here[:WITNESSES_MAX].tolist()
    ]


ANOMALY = Anomaly.documented("inconsistent-offsets", __doc__, InconsistentOffset, find)

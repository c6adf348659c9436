"""``corrupt-read``: a record was read that is not what was sent.

Its checksum does not match, or it carries the name of another log partition or key, or it cannot be decoded at all.
Example: a poll of ``t-0`` reads at offset 5 a record that says of itself that it was sent to ``t-1``.

False alarms avoided: many readers of one broken record are one finding. A corrupt record has no place in the version
order.

Findings: key, offset, defect, value (-1 if it could not be decoded), reader. O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.ids import one_of
from checkers.columns.isolation_levels import OTHER_READ
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace
from workloads.history import DEFECTS, INVOKE, Kind


class CorruptRead(Finding, kw_only=True):
    """A record whose content is not what was sent."""

    offset: int
    defect: str
    value: Any
    reader: EventPlace


def find(log: Log) -> Found:
    """Broken records, in order of their offsets."""
    rows = np.flatnonzero(one_of(log.kind, Kind.READ, OTHER_READ) & (log.defect > 0) & (log.type != INVOKE))
    what = np.stack([log.partition[rows], log.offset[rows], log.defect[rows].astype(np.int64)])
    _, first = np.unique(what, axis=1, return_index=True)
    rows = rows[first]

    def describe(number: int) -> CorruptRead:
        row = int(rows[number])
        return CorruptRead(
            key=log.key(row),
            offset=int(log.offset[row]),
            defect=str(DEFECTS[log.defect[row]]),
            value=int(log.value[row]),
            reader=log.op(row),
        )

    return Found(partition=log.partition[rows], describe=describe, row=rows, rank=log.offset[rows])


ANOMALY = Anomaly.documented("corrupt-read", __doc__, CorruptRead, find, about=About.READERS)

"""``phantom-read``: a value was read from a log partition to which no client ever tried to write it.

Example: a poll reads ``z@7`` and no send of ``z`` to that partition was even begun. The record was made up, or it
came from another topic or another run.

False alarms avoided: a send whose completion was never recorded counts as an attempt, and so does a failed one.

Findings: key, value, offset, reader. O(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.anomalies.anomaly import About, Anomaly, Finding, Found
from checkers.columns.log import Log
from checkers.columns.log_rows import EventPlace


class PhantomRead(Finding, kw_only=True):
    """A value that no client tried to write."""

    value: Any
    offset: int
    reader: EventPlace


def find(log: Log) -> Found:
    """Values that were read and never written."""
    phantoms = np.flatnonzero(~log.attempted)
    first = log.first_rows(log.all_reads)[phantoms]

    def describe(number: int) -> PhantomRead:
        row = int(first[number])
        return PhantomRead(key=log.key(row), value=int(log.value[row]), offset=int(log.offset[row]), reader=log.op(row))

    return Found(partition=log.values.partition[phantoms], describe=describe, row=first, rank=first)


ANOMALY = Anomaly.documented("phantom-read", __doc__, PhantomRead, find, about=About.READERS)

"""``int-poll-skip``: inside one operation, neighbouring records that were read pass over a value of the log.

Example: one poll returns ``a@1 d@4``, and somebody else saw ``b@2``.

False alarms avoided: holes at which nobody saw a value; partitions that a group rebalance touched inside the operation;
values whose place is not known.

Findings: key, values, delta, skipped (at most 100 values), op. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import skips

NAME = "int-poll-skip"


def find(log: Log) -> Found:
    """Skips inside operations, the widest first."""
    return skips(log, log.inner_reads, inner=True)

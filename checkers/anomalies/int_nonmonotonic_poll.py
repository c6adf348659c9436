"""``int-nonmonotonic-poll``: inside one operation, records were read out of the log's order, or one twice.

Example: one poll returns ``c@3 a@1`` (delta -1 if nobody saw anything in between); two polls of one operation both
return ``c@3`` (delta 0).

False alarms avoided: as for ``int-poll-skip``.

Findings: key, values, delta, op. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import reversals

NAME = "int-nonmonotonic-poll"


def find(log: Log) -> Found:
    """Steps back inside operations, the furthest first."""
    return reversals(log, log.inner_reads, inner=True)

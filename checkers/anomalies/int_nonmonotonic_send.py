"""``int-nonmonotonic-send``: what one operation sent stands in the log in another order.

Example: an operation sends ``c`` and then ``a``; ``a`` is at 1 and ``c`` at 3. A producer that retries with several
requests in flight and without idempotence does this.

False alarms avoided: values whose place is not known.

Findings: key, values, delta, op. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import reversals

NAME = "int-nonmonotonic-send"


def find(log: Log) -> Found:
    """Sends out of order, the furthest first."""
    return reversals(log, log.inner_sends, inner=True)

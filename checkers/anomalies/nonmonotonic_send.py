"""``nonmonotonic-send``: what a producer sent later stands earlier in the log.

Example: a producer's operation sends ``c@3 d@4``, its next one ``a@1 b@2``: from ``d`` to ``a`` it went back (delta
-3). Values of uncertain operations count if somebody saw where they are.

False alarms avoided: failed operations; values whose place is not known; as the reference tool does it, an assignment
that leaves the partition out also forgets the producer's place.

Findings: key, delta, values, ops. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import reversals

NAME = "nonmonotonic-send"


def find(log: Log) -> Found:
    """Producers' steps back, the furthest first."""
    return reversals(log, log.send_steps, inner=False)

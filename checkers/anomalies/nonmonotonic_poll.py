"""``nonmonotonic-poll``: between two polls, a consumer went back in the log, or read a value again.

Example: a consumer's poll ends with ``c@3``, its next begins with ``b@2`` (delta -1).

False alarms avoided: as for ``poll-skip``; a fresh client of the same person is another process and starts anywhere.

Findings: key, delta, values, ops. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import reversals

NAME = "nonmonotonic-poll"


def find(log: Log) -> Found:
    """Steps back between polls, the furthest first."""
    return reversals(log, log.poll_steps, inner=False)

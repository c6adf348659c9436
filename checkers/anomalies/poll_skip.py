"""``poll-skip``: between two polls, a consumer passed over a value of the log.

Example: a consumer's poll ends with ``b@2``, its next begins with ``d@4``, and somebody else saw ``c@3``.

False alarms avoided: holes at which nobody saw a value; assignments that drop the partition in between; failed and
uncertain polls, which are compared but do not move the consumer; values whose place is not known.

A value that stands twice counts where it stands last, so a duplicate may show as a skip, too.

Findings: key, delta, ops, skipped (at most 100 values). O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import skips

NAME = "poll-skip"


def find(log: Log) -> Found:
    """Skips between polls, the widest first."""
    return skips(log, log.poll_steps, inner=False)

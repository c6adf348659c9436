"""``int-send-skip``: between two neighbouring sends of one operation stands somebody else's value.

Example: one operation sends ``a@1`` and ``c@3``, another one's ``b`` is at 2. Kafka does not isolate writers, so this
makes no history invalid; it tells how writers interleave.

Findings: key, values, delta, skipped (at most 100 values), op. O(n).
"""

from __future__ import annotations

from checkers.anomalies.found import Found
from checkers.columns.log import Log
from checkers.columns.steps import skips

NAME = "int-send-skip"


def find(log: Log) -> Found:
    """Interleaved sends, the widest first."""
    return skips(log, log.inner_sends, inner=True)

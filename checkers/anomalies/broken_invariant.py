"""``broken-invariant``: the brokers reached a state that their own rules exclude, whatever clients saw of it.

Example: at 4.2 s the controller takes broker 2 into the in-sync replicas of ``t-0``, although its log ends at offset 90
and 100 records were acknowledged. Broker 2 never leads, so nothing is lost, this time.

Only a simulated world sees all replicas at one moment, and writes down the first such state of a run with its step; a
history without that says nothing about it. What is looked at, and under which settings each invariant holds:
``harness/worlds/simulated/invariants.py``. Where an unclean election or a destroyed disk breaks an invariant by design,
it is not looked at, so no setting permits it.

Findings, at most one a run: key, invariant, time_us, text (what was wrong, on which brokers), op. O(1).
"""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from checkers.anomalies.anomaly import Anomaly, Finding
from checkers.columns.log_rows import EventPlace
from checkers.columns.phases import RunMarks


class InvariantBroken(Finding, kw_only=True):
    """An invariant that did not hold at one moment."""

    invariant: str
    time_us: int
    text: str
    op: EventPlace

    @property
    @override
    def mark(self) -> str:
        return self.invariant


ANOMALY: Final = Anomaly.documented(
    "broken-invariant", __doc__, InvariantBroken, title="The brokers reached a state that their rules exclude"
)


def broken_invariants(phases: RunMarks) -> list[InvariantBroken]:
    """The broken invariants that the world of one history wrote down."""
    return [
        InvariantBroken(
            key=facts.partition,
            invariant=facts.name,
            time_us=facts.time_us,
            text=facts.text,
            op=EventPlace(moment.index),
        )
        for moment, facts in phases.broken_invariants
    ]

"""A scripted record after several attempts: what is known of it."""

from __future__ import annotations

import pytest

from harness.runs.stories.stage.writes import DirectRecord
from harness.worlds.contract import DirectWrite
from workloads import EventType, SendOutcome

WRITE = DirectWrite(partition="t-0", key=b"x", payload=b"", acks=-1, timeout_ms=1)
REFUSED = SendOutcome(EventType.FAIL, error="refused")
LATER_REFUSED = SendOutcome(EventType.FAIL, error="refused again")
UNKNOWN = SendOutcome(EventType.INFO, error="unknown")
LATER_UNKNOWN = SendOutcome(EventType.INFO, error="unknown again")
GOOD = SendOutcome(EventType.OK, offset=1)


@pytest.mark.parametrize(
    ("attempts", "best"),
    [
        ([REFUSED, LATER_REFUSED], LATER_REFUSED),
        ([REFUSED, UNKNOWN], UNKNOWN),
        ([UNKNOWN, REFUSED], UNKNOWN),
        ([UNKNOWN, LATER_UNKNOWN], LATER_UNKNOWN),
        ([UNKNOWN, GOOD, REFUSED, LATER_UNKNOWN], GOOD),
    ],
)
def test_the_best_that_is_known_is_kept_and_of_two_as_good_the_later(
    attempts: list[SendOutcome], best: SendOutcome
) -> None:
    record = DirectRecord(1, 1, WRITE, judged=True)
    for outcome in attempts:
        record.unanswered += 1
        record.take(outcome)
    assert record.outcome == best
    assert record.answered

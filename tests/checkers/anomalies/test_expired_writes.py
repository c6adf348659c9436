"""Logs with retention.ms: what is older may be gone, is named where no client read it, and what is younger is due."""

from __future__ import annotations

import msgspec
import pytest

from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import FaultSeen
from checkers.verdicts.verdict import Verdict
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INFO, OK, Scene
from workloads import Settings
from workloads.operations import CleanerTimes, EventType, Function

SECOND_US = 1_000_000
TIMES = CleanerTimes(record_ms=0, tombstone_ms=0, retention_ms=10_000)


def judged(
    read: tuple[tuple[int, int], ...], at_s: float = 20, times: CleanerTimes | None = TIMES, kind: EventType = OK
) -> Verdict:
    """Values 1, 2 and 3 were written at 1, 5 and 6 s; a final reader had these records ``at_s``."""
    scene = Scene()
    for value in (1, 2, 3):
        scene.send(value, value)
    scene.poll(*read, process=9)
    scene.drain(4, kind=kind)
    begun_s = (1, 1, 5, 5, 6, 6, at_s, at_s, at_s)
    detail = None if times is None else msgspec.json.encode(times).decode()
    return judge_events(
        [
            msgspec.structs.replace(
                event,
                time_us=int(second * SECOND_US) + event.index,
                detail=detail if event.function == Function.DRAIN else event.detail,
            )
            for event, second in zip(scene.events, begun_s, strict=True)
        ]
    )


def test_what_is_older_may_be_gone_and_is_named() -> None:
    verdict = judged(((3, 3),))
    assert verdict.counts == {"expired-write": 2}
    (finding,) = verdict.anomalies["expired-write"]
    assert (finding.key, finding.messages) == ("t-0", [1, 2])
    assert verdict.valid is True


def test_what_was_read_before_it_went_is_not_named() -> None:
    assert judged(((1, 1), (2, 2), (3, 3))).counts == {}


@pytest.mark.parametrize(("at_s", "lost"), [(9.9, [1, 2]), (10.5, [2]), (13.9, [2]), (14.5, [])])
def test_what_is_younger_is_due_up_to_a_second_for_clocks(at_s: float, lost: list[int]) -> None:
    verdict = judged(((3, 3),), at_s)
    assert [finding.value for finding in verdict.anomalies.get("lost-write", [])] == lost


@pytest.mark.parametrize("times", [None, CleanerTimes(record_ms=0, tombstone_ms=0)])
def test_without_retention_every_record_is_due(times: CleanerTimes | None) -> None:
    verdict = judged(((3, 3),), times=times)
    assert {finding.value for finding in verdict.anomalies["lost-write"]} == {1, 2}
    assert "expired-write" not in verdict.counts


def test_a_reader_that_did_not_reach_the_end_says_how_long_records_stay_too() -> None:
    assert "lost-write" not in judged(((3, 3),), kind=INFO).counts
    assert {f.value for f in judged(((3, 3),), times=None, kind=INFO).anomalies["lost-write"]} == {1, 2}


def test_a_clock_that_is_ahead_lets_younger_records_go() -> None:
    expiring = Settings(min_insync_replicas=2, retention_ms=10_000)
    assert promise(expiring, [FaultSeen("clockstep")]).permits_loss
    assert not promise(expiring, [FaultSeen("kill")]).permits_loss
    assert not promise(Settings(min_insync_replicas=2), [FaultSeen("clockstep")]).permits_loss
    assert promise(expiring, []).about("expired-write").permitted

"""Compacted logs: what the cleaner may remove is not missing; a deleted key stays deleted under each leader."""

from __future__ import annotations

import pytest

from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INFO, Scene

#: The kinds of anomaly that only keys can show.
RETURNED, DIVERGENT = "returned-key", "divergent-state"


def judged(scene: Scene) -> Verdict:
    return judge_events(scene.events)


def written() -> Scene:
    """Key 7 is written and deleted; key 8 is written twice."""
    scene = Scene()
    scene.keyed(1, 3, 7)
    scene.keyed(4, 5, 8)
    scene.keyed(2, 8, 7, tombstone=True)
    scene.keyed(5, 9, 8)
    return scene


def final_read(scene: Scene, *records: tuple[int, int], process: int = 9, leader: int | None = None) -> None:
    scene.poll(*records, process=process)
    scene.drain(10, process=process, leader=leader)


def test_superseded_records_and_tombstones_may_be_gone() -> None:
    scene = written()
    final_read(scene, (9, 5))
    verdict = judged(scene)
    assert forbidden(verdict) == []
    assert verdict.valid is True


def test_the_last_record_of_a_key_may_not_be_gone() -> None:
    scene = written()
    final_read(scene, (5, 4), (8, 2))
    assert {f.value for f in judged(scene).anomalies["lost-write"]} == {5}
    assert sorted(judged(scene).anomalies) == ["lost-write", "unseen"]


def test_a_deleted_key_is_back() -> None:
    scene = written()
    final_read(scene, (3, 1), (9, 5))
    verdict = judged(scene)
    (back,) = verdict.anomalies["returned-key"]
    assert (back.record_key, back.value, back.offset) == (7, 1, 3)
    assert (back.tombstone, back.tombstone_offset) == (2, 8)
    assert sorted(verdict.anomalies) == [RETURNED]
    assert verdict.valid is False


def test_what_a_reader_has_depends_on_who_leads() -> None:
    scene = written()
    final_read(scene, (9, 5))
    final_read(scene, (3, 1), (9, 5), process=10)
    verdict = judged(scene)
    (odd,) = verdict.anomalies["divergent-state"]
    assert (odd.record_key, odd.states) == (7, {9: None, 10: 1})
    assert sorted(verdict.anomalies) == [DIVERGENT, RETURNED]


def test_a_last_value_that_one_leader_has_and_another_has_not_is_a_difference() -> None:
    scene = written()
    final_read(scene, (8, 2), (9, 5))
    final_read(scene, (5, 4), (8, 2), process=10)
    assert sorted(judged(scene).anomalies) == ["divergent-state"]
    assert judged(scene).anomalies["divergent-state"][0].states == {9: 5, 10: 4}


@pytest.mark.parametrize("seen", [((3, 1), (8, 2), (9, 5)), ((8, 2), (9, 5)), ((5, 4), (9, 5))])
def test_a_log_that_was_cleaned_less_than_another_is_in_the_same_state(seen: tuple[tuple[int, int], ...]) -> None:
    scene = written()
    final_read(scene, (9, 5))
    final_read(scene, *seen, process=10)
    assert forbidden(judged(scene)) == []


def test_a_deletion_that_nobody_acknowledged_or_that_came_later_brings_no_key_back() -> None:
    uncertain, late = Scene(), Scene()
    uncertain.keyed(1, 3, 7)
    uncertain.keyed(2, None, 7, tombstone=True, kind=INFO)
    final_read(uncertain, (3, 1))
    late.keyed(1, 3, 7)
    late.poll((3, 1), process=9)
    late.keyed(2, 8, 7, tombstone=True)
    late.drain(4)
    assert [forbidden(judged(scene)) for scene in (uncertain, late)] == [[], []]


def test_a_key_that_was_written_again_is_not_back() -> None:
    scene = written()
    scene.keyed(3, 10, 7)
    scene.poll((9, 5), (10, 3), process=9)
    scene.drain(11)
    assert forbidden(judged(scene)) == []


def test_a_reader_that_did_not_come_to_the_end_proves_nothing() -> None:
    scene = written()
    scene.poll((3, 1), process=9)
    scene.drain(None, kind=INFO)
    assert RETURNED not in judged(scene).counts


@pytest.mark.parametrize(("leader", "cleaned"), [(1, 2), (0, 0), (None, 0)])
def test_records_that_were_cleaned_while_a_fault_lasted_put_it_to_the_test_if_its_broker_led_a_final_read(
    leader: int | None, cleaned: int
) -> None:
    scene = Scene()
    scene.phase("break")
    scene.keyed(1, 3, 7)
    scene.fault("begin", targets=[1])
    scene.keyed(2, 8, 7, tombstone=True)
    scene.keyed(3, 9, 8)
    scene.keyed(4, 10, 8)
    scene.fault("end", targets=[1])
    scene.poll((9, 3), process=1)
    final_read(scene, (10, 4), leader=leader)
    (met,) = judged(scene).fault_exercise or []
    assert met.cleaned == cleaned, "the tombstone, and the value that the last reader did not see any more"


def test_a_skip_counts_over_what_has_to_stay() -> None:
    scene = written()
    scene.poll((3, 1), process=1)
    scene.poll((9, 5), process=1)
    scene.poll((5, 4), (8, 2), process=2)
    assert "poll-skip" not in judged(scene).counts
    scene = written()
    scene.keyed(6, 10, 6)
    scene.keyed(7, 11, 5)
    scene.poll((8, 2), (9, 5), (10, 6), (11, 7), process=2)
    scene.poll((3, 1), process=1)
    scene.poll((11, 7), process=1)
    assert "poll-skip" in judged(scene).counts

"""Compacted logs: what the cleaner may remove is not missing; a deleted key stays deleted under each leader."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from checkers.verdicts.promises import promise
from checkers.verdicts.receipts import FaultSeen
from checkers.verdicts.verdict import Verdict
from tests.checkers.findings import forbidden
from tests.checkers.in_memory import judge_events
from tests.checkers.scenes import INFO, OK, Scene
from workloads.operations import CleanerTimes, EventType, Function
from workloads.settings import Settings

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


@pytest.mark.parametrize(
    ("offset", "kind", "skips"), [(None, OK, 0), (2, OK, 1), (None, INFO, 0), (None, EventType.FAIL, 1)]
)
def test_a_tombstone_that_nobody_saw_may_have_deleted_what_another_leader_still_has(
    offset: int | None, kind: EventType, skips: int
) -> None:
    scene = Scene()
    scene.keyed(4, 1, 6)
    scene.keyed(1, 3, 7)
    scene.keyed(2, offset, 7, tombstone=True, kind=kind)
    scene.keyed(3, 5, 8)
    scene.poll((1, 4), (5, 3), process=1)
    scene.poll((1, 4), (3, 1), (5, 3), process=2)
    assert judged(scene).counts.get("int-poll-skip", 0) == skips


# --- records that are gone before their time ---

DAY_MS = 86_400_000
EARLY = ("lost-tombstone", "cleaned-early")


class SlowScene(Scene):
    """A scene whose events are ten seconds apart."""

    def event(self, process: int, kind: EventType, function: Function, **rest: Any) -> int:
        index = super().event(process, kind, function, **rest)
        self.events[index] = msgspec.structs.replace(self.events[index], time_us=10_000_000 * index)
        return index


def cleaned(
    *read: tuple[int, int], record_ms: int = 0, tombstone_ms: int = 0, told: bool = True, process: int = 9
) -> SlowScene:
    """Three keys, and a reader that has come to the end 120 s after the begin.

    Written before: 1 of key 7 (0 s), its tombstone 2 (20 s), the tombstone 3 of key 8 (40 s), 4 of key 6 (60 s), and 5
    of it (80 s).
    """
    scene = SlowScene()
    scene.keyed(1, 3, 7)
    scene.keyed(2, 8, 7, tombstone=True)
    scene.keyed(3, 9, 8, tombstone=True)
    scene.keyed(4, 10, 6)
    scene.keyed(5, 11, 6)
    return final(scene, *read, record_ms=record_ms, tombstone_ms=tombstone_ms, told=told, process=process)


def final(
    scene: SlowScene, *read: tuple[int, int], record_ms: int, tombstone_ms: int, told: bool = True, process: int = 9
) -> SlowScene:
    scene.poll(*read, process=process)
    times = CleanerTimes(record_ms=record_ms, tombstone_ms=tombstone_ms)
    detail = msgspec.json.encode(times).decode() if told else None
    scene.event(process, OK, Function.DRAIN, partitions=("t-0",), offset=12, detail=detail)
    return scene


def gone(scene: Scene) -> dict[str, list[int]]:
    """The values that are gone too early, by anomaly; a skip is what a reader of a cleaned log may do."""
    verdict = judged(scene)
    assert {name for name in forbidden(verdict) if name not in EARLY} == set()
    return {name: [f.value for f in verdict.anomalies[name]] for name in EARLY if name in verdict.anomalies}


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, {}),
        ({"tombstone_ms": DAY_MS, "told": False}, {}),
        ({"tombstone_ms": DAY_MS}, {"lost-tombstone": [2, 3]}),
        ({"tombstone_ms": 95_000}, {"lost-tombstone": [3]}),
        ({"tombstone_ms": 81_000}, {}),
        ({"tombstone_ms": 81_001}, {"lost-tombstone": [3]}),
        ({"record_ms": 50_000, "tombstone_ms": 40_000}, {"lost-tombstone": [3]}),
        ({"record_ms": 61_001}, {"cleaned-early": [4]}),
        ({"record_ms": 61_000}, {}),
        ({"record_ms": DAY_MS}, {"lost-tombstone": [2, 3], "cleaned-early": [1, 4]}),
        ({"record_ms": 2**63 - 1, "tombstone_ms": 2**63 - 1}, {"lost-tombstone": [2, 3], "cleaned-early": [1, 4]}),
    ],
)
def test_each_record_has_an_age_of_its_own(times: dict[str, Any], expected: dict[str, list[int]]) -> None:
    assert gone(cleaned((11, 5), **times)) == expected


def test_a_tombstone_and_records_that_are_there_are_in_time() -> None:
    everything = ((3, 1), (8, 2), (9, 3), (10, 4), (11, 5))
    assert gone(cleaned(*everything, record_ms=DAY_MS, tombstone_ms=DAY_MS)) == {}


def test_what_one_reader_saw_another_one_may_have_missed_too_early() -> None:
    scene = cleaned((8, 2), (9, 3), (11, 5), tombstone_ms=DAY_MS, process=9)
    final(scene, (9, 3), (11, 5), record_ms=0, tombstone_ms=DAY_MS, process=10)
    (finding,) = judged(scene).anomalies["lost-tombstone"]
    assert (finding.value, finding.record_key, finding.offset) == (2, 7, 8)
    assert (finding.age_us, finding.kept_us) == (130_000_000, DAY_MS * 1000)
    assert finding.reader.op_pos == len(scene.events) - 1


def test_a_tombstone_that_was_superseded_is_a_record_like_others() -> None:
    for times, expected in (({"tombstone_ms": DAY_MS}, {}), ({"record_ms": DAY_MS}, {"cleaned-early": [1, 2]})):
        scene = SlowScene()
        scene.keyed(1, 3, 7)
        scene.keyed(2, 8, 7, tombstone=True)
        scene.keyed(3, 11, 7)
        final(scene, (11, 3), **{"record_ms": 0, "tombstone_ms": 0, **times})
        assert gone(scene) == expected


def test_a_tombstone_that_may_not_be_there_is_not_gone() -> None:
    uncertain, behind, placeless = SlowScene(), SlowScene(), SlowScene()
    uncertain.keyed(2, 8, 7, tombstone=True, kind=INFO)
    behind.keyed(2, 12, 7, tombstone=True)
    placeless.keyed(2, None, 7, tombstone=True)
    for scene in (uncertain, behind, placeless):
        scene.keyed(1, 3, 6)
        final(scene, (3, 1), record_ms=DAY_MS, tombstone_ms=DAY_MS)
        assert gone(scene) == {}


def test_the_times_that_another_tool_wrote_are_not_known() -> None:
    scene = cleaned((11, 5), tombstone_ms=DAY_MS)
    scene.events[-1] = msgspec.structs.replace(scene.events[-1], detail='{"kept": "long"}')
    assert gone(scene) == {}


@pytest.mark.parametrize("name", EARLY)
def test_only_a_loss_or_a_clock_that_was_ahead_permits_it(name: str) -> None:
    safe = Settings(min_insync_replicas=2)
    kinds = ("kill", "clockstep")
    permitted = {kind: promise(safe, [FaultSeen(kind)]).about(name).permitted for kind in kinds}
    assert permitted == {"kill": False, "clockstep": True}
    assert not promise(safe, [FaultSeen("clockstep")]).about("returned-key").permitted
    assert promise(Settings(acks=1), [FaultSeen("kill")] * 2).about(name).permitted


def uncleaned(
    *read: tuple[int, int], closes: bool = True, ratio: float | None = 0.01, segment_ms: int = 1_000
) -> list[int]:
    """The old records of a key, written four times, that a reader found too many ten seconds later."""
    scene = SlowScene()
    for value in range(4):
        scene.keyed(value, value, 7)
    if closes:
        scene.keyed(9, 9, 8)
    scene.poll(*read, process=9)
    times = CleanerTimes(record_ms=0, tombstone_ms=DAY_MS, segment_ms=segment_ms, dirty_ratio=ratio)
    detail = msgspec.json.encode(times).decode()
    scene.event(9, OK, Function.DRAIN, partitions=("t-0",), offset=10, detail=detail, node=2)
    verdict = judged(scene)
    assert set(verdict.anomalies) <= {"dead-cleaner"}
    assert verdict.valid
    assert {f.leader for f in verdict.anomalies.get("dead-cleaner", [])} <= {2}
    return [f.old for f in verdict.anomalies.get("dead-cleaner", [])]


ALL_FOUR = ((0, 0), (1, 1), (2, 2), (3, 3), (9, 9))


def test_a_log_with_many_old_records_long_after_its_segments_are_closed_has_a_dead_cleaner() -> None:
    assert uncleaned(*ALL_FOUR) == [3]
    assert uncleaned(ALL_FOUR[3], ALL_FOUR[4]) == [], "cleaned"
    assert uncleaned(*ALL_FOUR, ratio=0.4) == [], "the ratio lets them be"
    assert uncleaned(*ALL_FOUR, ratio=None) == [], "the topic's settings are not known"
    assert uncleaned(*ALL_FOUR, segment_ms=DAY_MS) == [], "the segment may be open"
    assert uncleaned(*ALL_FOUR[:4], closes=False) == [2], "the last one may be of the newest segment"

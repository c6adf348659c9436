"""Measures of the run itself: how much was exercised, and when writing was possible."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from checkers.columns.phases import Mark, RunMarks, inside
from checkers.local import check_one
from nemesis.receipts import to_json
from tests.checkers.in_memory import judge_events
from tests.checkers.receipts import a_receipt
from tests.checkers.scenes import FAIL, INFO, Scene
from workloads.history import HistoryError, HistoryWriter
from workloads.history.schema import FUNCTION_CODE
from workloads.operations import Function


def run() -> Scene:
    """Ten microseconds an event: writes at 20, 40; a fault from 50 to 100 with one write at 70; heal at 110; 130."""
    scene = Scene()
    scene.phase("break")
    scene.send(0, 0)
    scene.send(1, 1)
    scene.fault("begin")
    scene.send(2, 2)
    scene.send(3, None, kind=INFO)
    scene.fault("end")
    scene.phase("heal")
    scene.send(4, 3)
    scene.phase("drain")
    scene.poll((0, 0), (1, 1), (2, 2), (3, 4), process=9)
    scene.drain(4)
    return scene


def test_writes_inside_faults_are_counted_by_their_acknowledgement() -> None:
    verdict = judge_events(run().events)
    exercise = verdict.exercise
    assert (exercise.attempted, exercise.acknowledged, exercise.acknowledged_in_fault) == (5, 4, 1)
    assert (exercise.unknown, exercise.rejected, exercise.records_read, exercise.drained) == (1, 0, 4, True)


def test_receipts_are_handed_on_as_they_stand_in_the_history() -> None:
    faults = judge_events(run().events).faults
    assert [(fault.mark, fault.sequence, fault.took_effect) for fault in faults] == [
        ("begin", 0, True),
        ("end", 0, True),
    ]


def test_a_fault_without_effect_exercises_nothing() -> None:
    scene = Scene()
    scene.fault("begin", took_effect=False)
    scene.send(0, 0)
    scene.fault("end", took_effect=False)
    assert judge_events(scene.events).exercise.acknowledged_in_fault == 0


def test_a_fault_that_never_ended_lasts() -> None:
    scene = Scene()
    scene.fault("begin")
    scene.send(0, 0)
    assert judge_events(scene.events).exercise.acknowledged_in_fault == 1


def test_the_longest_gap_and_the_recovery_are_measured_per_partition() -> None:
    availability = judge_events(run().events).availability["t-0"]
    assert (availability.longest_gap_us, availability.gap_start_us) == (40, 70)
    assert availability.recovery_us == 20


def test_a_partition_that_never_acknowledged_was_away_for_the_whole_phase() -> None:
    scene = Scene()
    scene.phase("break")
    scene.send(0, None, kind=FAIL)
    scene.phase("heal")
    availability = judge_events(scene.events).availability["t-0"]
    assert (availability.longest_gap_us, availability.gap_start_us) == (30, 0)
    assert availability.recovery_us is None


def test_a_history_without_marks_is_measured_between_its_own_attempts() -> None:
    scene = Scene()
    scene.poll()
    scene.send(0, 0)
    scene.poll()
    scene.send(1, 1)
    assert judge_events(scene.events).availability["t-0"].longest_gap_us == 40


def test_overlapping_faults_are_one_window() -> None:
    fault = FUNCTION_CODE[Function.FAULT]
    spans = [("begin", 0, 10), ("begin", 1, 20), ("end", 0, 30), ("end", 1, 40), ("begin", 2, 50), ("end", 2, 60)]
    marks = RunMarks(
        tuple(
            Mark(time_us, fault, 0, -1, to_json(a_receipt(mark=mark, sequence=sequence)))
            for mark, sequence, time_us in spans
        )
    )
    windows = marks.fault_windows()
    assert windows.tolist() == [[10, 40], [50, 60]]
    assert inside(np.array([9, 10, 40, 45, 60]), windows).tolist() == [False, True, True, False, True]


def test_faults_of_another_tool_are_passed_over_and_of_ours_none_is() -> None:
    phase, fault = FUNCTION_CODE[Function.PHASE], FUNCTION_CODE[Function.FAULT]
    foreign = tuple(Mark(1, fault, 0, -1, detail) for detail in ("heal", "{}", '{"mark": "begin"}'))
    assert RunMarks(foreign).receipts == []
    with pytest.raises(HistoryError, match="a receipt of a fault cannot be read"):
        RunMarks((Mark(0, phase, 0, -1, '{"mark": "break"}'), *foreign)).receipts  # noqa: B018


def test_a_run_that_ended_before_its_first_event_has_no_finding(tmp_path: Path) -> None:
    """It is no history of another tool either, whose lack of dependencies would count."""
    with HistoryWriter(tmp_path / "history", "run"):
        pass
    verdict = check_one(tmp_path / "history")
    assert (verdict.valid, verdict.counts, verdict.exercise.drained) == (False, {}, False)

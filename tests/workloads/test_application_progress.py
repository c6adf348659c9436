"""The progress of an application: a point now and then, and never too many."""

from __future__ import annotations

import pytest

from tests.workloads.test_effects import IN, effects_of, outputs, sent
from tests.workloads.test_instances import Clock
from workloads import InputProgress
from workloads import application_progress as module
from workloads.application_progress import ProgressPoints


def test_points_tell_inputs_effects_and_commits_until_they_end() -> None:
    clock, effects, committed = Clock(), effects_of(), dict[str, int]()
    points = ProgressPoints(clock, effects, committed)
    sent(effects, 1, 2)
    effects.read(True, 5, outputs([1]))
    committed[IN] = 1
    clock.advance(600)
    points.end()
    clock.advance(5_000)
    assert points.points == [InputProgress(0, 0, 0, 0), InputProgress(500_000, 2, 1, 1)]


def test_a_long_run_has_points_further_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POINTS_MAX", 8)
    clock = Clock()
    points = ProgressPoints(clock, effects_of(), {})
    clock.advance(60_000)
    assert 4 <= len(points.points) < 8
    assert points.points[0].time_us == 0
    assert points.points[-1].time_us >= 40_000_000

"""A disk that forces nothing is noticed while it does so, and when it forces again."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

import pytest

from harness.ground.machine.disk_watch import DiskWatch
from tests.waiting import wait_until

LIMIT_S = 60


def test_a_disk_serves_unless_it_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answers = Event(), Event()

    def force(_: int) -> None:
        asked.set()
        assert answers.wait(LIMIT_S)

    monkeypatch.setattr(DiskWatch, "pause_s", 0.01)
    monkeypatch.setattr(os, "fsync", force)
    watch = DiskWatch(tmp_path)
    assert watch.serves, "nothing is known yet"
    assert asked.wait(LIMIT_S)
    wait_until(lambda: not watch.serves, "the disk is late", LIMIT_S, 0.005)
    answers.set()
    wait_until(lambda: watch.serves, "the disk serves again", LIMIT_S, 0.005)
    watch.close()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_refuses_is_no_question_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Event()

    def refuse(_: int) -> None:
        asked.set()
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(DiskWatch, "pause_s", 0.01)
    monkeypatch.setattr(DiskWatch, "slow_s", 0.0)
    monkeypatch.setattr(os, "fsync", refuse)
    watch = DiskWatch(tmp_path)
    assert asked.wait(LIMIT_S)
    wait_until(lambda: watch.serves, "the refusal is over (a try that goes on is late at once)", LIMIT_S, 0.005)

"""A disk that forces nothing is noticed while it does so, and when it forces again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from harness.machine.disk_watch import DiskWatch

LIMIT_S = 10


def until(condition: Callable[[], bool]) -> bool:
    limit_s = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < limit_s:
        time.sleep(0.005)
    return condition()


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
    assert until(lambda: not watch.serves)
    answers.set()
    assert until(lambda: watch.serves)
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
    assert until(lambda: watch.serves), "no time at all is too long for a try that goes on"

"""Processors that others have are noticed; nodes that have them themselves are no excuse for their log."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable
from threading import Event

import pytest

from harness.ground.machine import processor_watch, versions
from harness.ground.machine.processor_watch import WORK_S, ProcessorWatch
from tests.waiting import wait_until

LIMIT_S = 60


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float, float], ProcessorWatch]:
    """Watch, where each piece of work takes ``wall_s``, and nodes use ``share`` of ``quota`` of two processors."""

    def make(wall_s: float, share: float, quota: float) -> ProcessorWatch:
        done, clock_s, used_s = Event(), [0.0], [0.0]

        def work() -> None:
            clock_s[0] += wall_s
            used_s[0] += share * min(quota, 2) * wall_s
            if clock_s[0] > 3 * wall_s:
                done.set()

        monkeypatch.setattr(ProcessorWatch, "pause_s", 0.001)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        monkeypatch.setattr(versions, "quota", lambda: quota)
        monkeypatch.setattr(processor_watch, "_work", work)
        monkeypatch.setattr("harness.ground.machine.watch.monotonic", lambda: clock_s[0])
        monkeypatch.setattr("harness.ground.machine.processor_watch.monotonic", lambda: clock_s[0])
        watch = ProcessorWatch(lambda: used_s[0])
        assert done.wait(LIMIT_S)
        return watch

    return make


@pytest.mark.parametrize(
    ("times_slower", "share", "quota", "serves"),
    [
        pytest.param(1, 0.02, math.inf, True, id="nobody else wants them"),
        pytest.param(9, 0.02, math.inf, True, id="a busy machine"),
        pytest.param(12, 0.02, math.inf, False, id="others have them"),
        pytest.param(12, 0.45, math.inf, False, id="others have more than half"),
        pytest.param(12, 0.6, math.inf, True, id="nodes that spin have them"),
        pytest.param(12, 0.6, 0.5, True, id="nodes that spin have half a processor, which is all"),
        pytest.param(12, 0.45, 0.5, False, id="others have more than half of it"),
    ],
)
def test_processors_serve_unless_work_takes_too_long_because_of_others(
    begin: Callable[[float, float, float], ProcessorWatch],
    times_slower: float,
    share: float,
    quota: float,
    serves: bool,
) -> None:
    watch = begin(times_slower * WORK_S, share, quota)
    wait_until(lambda: watch.serves is serves, "the watch has seen it", LIMIT_S, 0.005)
    watch.close()


def test_the_work_of_a_watch_is_seen_in_what_a_process_used() -> None:
    before_s = time.process_time()
    for _ in range(10):
        processor_watch._work()
    assert time.process_time() - before_s >= 5 * WORK_S


def test_the_work_of_a_watch_does_not_wait_again_and_again_for_other_threads_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces: list[int] = []
    hashed = hashlib.pbkdf2_hmac

    def counted(name: str, secret: bytes, salt: bytes, rounds: int) -> bytes:
        pieces.append(rounds)
        return hashed(name, secret, salt, rounds)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    processor_watch._work()
    assert len(pieces) == 2

"""`python -m bench search` against hunts that take known times."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from bench import search_speed
from bench.search_speed import measure_search
from harness.ground.errors import HarnessError

CORES, SCHEDULES = 2, 40
MASTER = "spark://127.0.0.1:7077"
#: Seconds until the first result, the results that come with it, and seconds of each other one.
START_S, TOGETHER, EACH_S = {MASTER: 9.0, CORES: 1.0}, {MASTER: 32, CORES: 4}, {MASTER: 0.09, CORES: 0.06}
DRIVER_S = 0.001


class Hunts:
    """Hunts whose runs take seconds of a clock that only they move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = self.busy_s = 0.0
        monkeypatch.setattr(search_speed, "as_it_is", self.runs)
        monkeypatch.setattr(search_speed, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(search_speed, "_busy_s", lambda: self.busy_s)

    def runs(self, count: int, *, workers: int | str, **_: object) -> Iterator[SimpleNamespace]:
        self.now_s += START_S[workers]
        for number in range(count):
            if number >= TOGETHER[workers]:
                self.now_s += EACH_S[workers]
                self.busy_s += DRIVER_S
            yield SimpleNamespace(seconds=0.05)


def test_a_cluster_is_compared_with_processes_here(monkeypatch: pytest.MonkeyPatch) -> None:
    Hunts(monkeypatch)
    speed = measure_search(MASTER, CORES, SCHEDULES, turns=2)
    assert [hunt.start_s for hunt in (*speed.cluster, *speed.local)] == pytest.approx([9.0, 9.0, 1.0, 1.0])
    assert speed.ratio == pytest.approx(1.5)
    assert speed.driver_limit == pytest.approx(50)
    assert next(speed.lines()) == "processes here first result after   1.0 s, then   60.0 ms a schedule"


def test_a_hunt_of_a_single_wave_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    Hunts(monkeypatch)
    with pytest.raises(HarnessError, match=r"all 32 schedules .* ask for more"):
        measure_search(MASTER, CORES, TOGETHER[MASTER], turns=1)

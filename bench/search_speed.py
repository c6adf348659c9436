"""Measures a hunt on a Spark cluster against the same hunt in processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Final

import msgspec
import psutil

from harness.ground.errors import HarnessError
from harness.ground.machine.spread import Workers
from harness.lab.search import PORTFOLIOS, as_it_is

SEED: Final = 1
#: The first results come together, with those of their block or wave: seconds after which the next ones begin.
PAUSE_S: Final = 0.02


class SpreadHunt(msgspec.Struct, frozen=True, kw_only=True):
    """The times of a hunt.

    ``start_s`` are seconds until the first result, ``each_s`` seconds a schedule from then on. ``run_s`` are seconds of
    a core that the median schedule took where it was performed; ``driver_s`` the processor seconds that this process
    and its Java took for a schedule.
    """

    start_s: float
    each_s: float
    run_s: float
    driver_s: float


class SearchSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Hunts of ``schedules`` runs in ``cores`` processes here, and on as many cores of a cluster, in turns.

    ``driver_limit`` is the number of cores of a cluster that the driver can keep busy: the seconds of a core that a run
    takes over the driver's own for it.
    """

    schedules: int
    cores: int
    local: list[SpreadHunt]
    cluster: list[SpreadHunt]
    ratio: float
    driver_limit: float

    def lines(self) -> Iterator[str]:
        """Lines for people: medians over the turns."""
        for name, hunts in (("processes here", self.local), ("Spark cluster", self.cluster)):
            each_ms = median(hunt.each_s for hunt in hunts) * 1000
            yield f"{name:<14} first result after {hunts[0].start_s:5.1f} s, then {each_ms:6.1f} ms a schedule"
        yield f"time of a schedule, cluster to processes here {self.ratio:8.2f}"
        yield f"driver's own time for a schedule {median(hunt.driver_s for hunt in self.cluster) * 1000:21.2f} ms"
        yield f"cores that the driver can keep busy {self.driver_limit:18.0f}"


def measure_search(master: str, cores: int, schedules: int, turns: int) -> SearchSpeed:
    """Hunt in the broker as it is, ``turns`` times on the ``cores`` of the cluster of ``master`` and in processes here.

    Raises:
        HarnessError: the cluster gives no executor, a job failed, or there are too few schedules.
        JavaError: Java is missing here.
    """
    local, cluster = [], []
    for _ in range(turns):
        cluster.append(_hunted(master, schedules))
        local.append(_hunted(cores, schedules))
    return SearchSpeed(
        schedules=schedules,
        cores=cores,
        local=local,
        cluster=cluster,
        ratio=median(spread.each_s / forked.each_s for spread, forked in zip(cluster, local, strict=True)),
        driver_limit=median(hunt.run_s / hunt.driver_s for hunt in cluster),
    )


def _hunted(workers: Workers, schedules: int) -> SpreadHunt:
    began = time.monotonic()
    runs = as_it_is(schedules, seed=SEED, workers=workers, portfolios=PORTFOLIOS)
    seconds = [next(runs).seconds]
    first, busy_s = time.monotonic(), _busy_s()
    together = 1
    for run in runs:
        if time.monotonic() - first < PAUSE_S:
            together += 1
        seconds.append(run.seconds)
    left = schedules - together
    if not left:
        raise HarnessError(f"all {schedules} schedules were told at once, so there is nothing to time; ask for more")
    return SpreadHunt(
        start_s=first - began,
        each_s=(time.monotonic() - first) / left,
        run_s=median(seconds),
        driver_s=(_busy_s() - busy_s) / left,
    )


def _busy_s() -> float:
    """Processor seconds of this process and of the Java that it started, Spark's part of a driver."""
    this = psutil.Process()
    java = [child for child in this.children() if child.name() == "java"]
    times = [process.cpu_times() for process in (this, *java)]
    return float(sum(each.user + each.system for each in times))

"""Latency of acknowledged writes as histograms that add up, and writes over time in a bounded number of steps.

Both stay small however long a run is, so that they travel from the workers to the verdict and on to the report, which
never looks at a whole history. Writes count by when they began, within the workload phase: a write that was begun while
a leader was dead waits for the next one, and is slow at the time of the fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from checkers.columns.ids import Numbers
from checkers.columns.log import Log
from checkers.columns.phases import DRAINING, HEALED, WORKLOAD_BEGINS, RunMarks, inside
from workloads.history import FAIL, INFO, OK

#: Buckets in which a latency doubles, as in HdrHistogram: a quantile is at most 9 % too high, and never too low.
BUCKETS_A_DOUBLING: Final = 8
#: The largest bucket: two hours in microseconds.
BUCKET_MAX: Final = 33 * BUCKETS_A_DOUBLING
#: Steps of one history over time, at most.
STEPS_MAX: Final = 120
#: The shortest step, in microseconds; longer ones are this doubled.
STEP_US_MIN: Final = 100_000
#: Writes by bucket.
Histogram = dict[int, int]


class Latency(msgspec.Struct, kw_only=True):
    """The latency of acknowledged writes, in :data:`Histogram` by bucket; the workload lasted ``workload_us``.

    ``calm`` are writes that began while no fault was in effect, ``in_fault`` the others.
    """

    calm: Histogram = {}
    in_fault: Histogram = {}
    workload_us: int = 0

    def add(self, other: Latency) -> None:
        """Count the writes of ``other`` too. The caller adds up ``workload_us``, which may overlap."""
        self.calm = added(self.calm, other.calm)
        self.in_fault = added(self.in_fault, other.in_fault)

    @property
    def all(self) -> Histogram:
        """Writes begun at any time."""
        return added(self.calm, self.in_fault)

    @property
    def per_second(self) -> float | None:
        """Writes acknowledged per second of workload; None where that is not known."""
        return sum(self.all.values()) * 1e6 / self.workload_us if self.workload_us else None


class WritesOverTime(msgspec.Struct, kw_only=True):
    """Writes that began in each step of ``step_us`` from ``begun_us`` on, by their outcome.

    ``slowest_us`` is the longest latency of the acknowledged ones of a step, 0 in a step without them. All lists are
    equally long, at most :data:`STEPS_MAX`; they are empty where a history does not say when its workload began and
    ended.
    """

    begun_us: int = 0
    step_us: int = 0
    acknowledged: list[int] = []
    rejected: list[int] = []
    unknown: list[int] = []
    slowest_us: list[int] = []

    def add(self, other: WritesOverTime) -> None:
        """Add the counts of other log partitions of the same history; its steps are the same."""
        if not self.step_us:
            self.begun_us, self.step_us = other.begun_us, other.step_us
        for name in ("acknowledged", "rejected", "unknown"):
            setattr(self, name, _sums(getattr(self, name), getattr(other, name)))
        mine, theirs = self.slowest_us, other.slowest_us
        self.slowest_us = [max(pair) for pair in zip(mine, theirs, strict=True)] if mine and theirs else mine or theirs


def added(mine: Mapping[int, int], theirs: Mapping[int, int]) -> Histogram:
    """Both histograms together, in the order of their buckets."""
    return {bucket: mine.get(bucket, 0) + theirs.get(bucket, 0) for bucket in sorted({*mine, *theirs})}


def quantile_us(histogram: Mapping[int, int], share: float) -> int | None:
    """The latency (microseconds) that ``share`` of the writes did not exceed, rounded up to the end of its bucket.

    None without writes.
    """
    wanted = share * sum(histogram.values())
    reached = 0
    for bucket in sorted(histogram):
        reached += histogram[bucket]
        if reached >= wanted:
            return round(end_us(bucket))
    return None


def end_us(bucket: int) -> float:
    """The longest latency (microseconds) of a bucket."""
    longest: float = 2 ** ((bucket + 1) / BUCKETS_A_DOUBLING)
    return longest


def latencies(log: Log, phases: Sequence[RunMarks]) -> tuple[list[Latency], list[WritesOverTime]]:
    """Measure each history of ``log``, whose ``phases`` are given. O(n log n)."""
    rows = log.sends[log.invoke_us[log.sends] >= 0]
    owner = log.partition_history[log.partition[rows]]
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(phases) + 1))
    pairs = [
        _of_history(log, rows[order[ends[history] : ends[history + 1]]], phase) for history, phase in enumerate(phases)
    ]
    return [latency for latency, _ in pairs], [over_time for _, over_time in pairs]


def _of_history(log: Log, rows: Numbers, phases: RunMarks) -> tuple[Latency, WritesOverTime]:
    begun, ended = _workload(phases)
    if begun is not None and ended is not None:
        invoked = log.invoke_us[rows]
        rows = rows[(invoked >= begun) & (invoked <= ended)]
    acknowledged = rows[log.type[rows] == OK]
    took_us = np.maximum(log.time_us[acknowledged] - log.invoke_us[acknowledged], 1)
    disturbed = inside(log.invoke_us[acknowledged], phases.fault_windows())
    latency = Latency(calm=histogram(took_us[~disturbed]), in_fault=histogram(took_us[disturbed]))
    if begun is None or ended is None or ended <= begun:
        return latency, WritesOverTime()
    latency.workload_us = ended - begun
    step_us = STEP_US_MIN
    while step_us * STEPS_MAX < ended - begun:
        step_us *= 2
    steps = -(-(ended - begun) // step_us)
    step = np.minimum((log.invoke_us[rows] - begun) // step_us, steps - 1)
    counts = [np.bincount(step[log.type[rows] == kind], minlength=steps).tolist() for kind in (OK, FAIL, INFO)]
    slowest = np.zeros(steps, dtype=np.int64)
    np.maximum.at(slowest, step[log.type[rows] == OK], took_us)
    return latency, WritesOverTime(
        begun_us=begun,
        step_us=step_us,
        acknowledged=counts[0],
        rejected=counts[1],
        unknown=counts[2],
        slowest_us=slowest.tolist(),
    )


def _workload(phases: RunMarks) -> tuple[int | None, int | None]:
    """Begin and end of the workload phase on the run's clock; None where the history does not say."""
    healed = phases.phase_us(HEALED)
    return phases.phase_us(WORKLOAD_BEGINS), healed if healed is not None else phases.phase_us(DRAINING)


def histogram(took_us: Numbers) -> Histogram:
    """Count times (microseconds) by bucket; one of less than a microsecond is in the first."""
    buckets = np.minimum(np.floor(np.log2(np.maximum(took_us, 1)) * BUCKETS_A_DOUBLING), BUCKET_MAX).astype(np.int64)
    values, counts = np.unique(buckets, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _sums(mine: Sequence[int], theirs: Sequence[int]) -> list[int]:
    return [sum(pair) for pair in zip(mine, theirs, strict=True)] if mine and theirs else list(mine or theirs)

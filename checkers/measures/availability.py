"""Availability of log partitions to writers: the longest gap of acknowledgements, and the return of writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from checkers.columns.ids import Numbers, starts_of
from checkers.columns.log import Log
from checkers.columns.phases import DRAINING, HEALED, WORKLOAD_BEGINS, RunMarks
from workloads.history import NONE, OK


class Availability(msgspec.Struct, kw_only=True):
    """Availability of one log partition to writers, in microseconds of the run's clock.

    ``longest_gap_us`` is the longest window of the workload phase without an acknowledged write, begun at
    ``gap_start_us``; ``recovery_us`` is the time from the final heal to the next acknowledged write, None without
    such a write.
    """

    longest_gap_us: int
    gap_start_us: int
    recovery_us: int | None = None


class WorkloadTimes(NamedTuple):
    """Begin and end of the workload phase and the time of the final heal (-1: it did not heal); int64, by partition.

    The phase lasts from the moment at which it begins to the final heal (or the drain, or the last attempt). That of a
    history without phases lasts from the first attempt on the log partition to the last.
    """

    begin: Numbers
    end: Numbers
    heal: Numbers


def availability(log: Log, workload: WorkloadTimes) -> list[Availability]:
    """Measure each log partition of ``log``, in order. O(n)."""
    begin, end, heal = workload
    rows = log.sends[log.type[log.sends] == OK]
    partition, time_us = log.partition[rows], log.time_us[rows]
    if np.any((np.diff(time_us) < 0) & (np.diff(partition) == 0)):  # a history of another tool
        order = np.lexsort((time_us, partition))
        partition, time_us = partition[order], time_us[order]
    within = (time_us >= begin[partition]) & (time_us <= end[partition])
    gaps, starts = _longest_gaps(partition[within], time_us[within], begin, end)
    recovery = _first_after(partition, time_us, heal)
    return [
        Availability(
            longest_gap_us=int(gaps[number]),
            gap_start_us=int(starts[number]),
            recovery_us=None if recovery[number] == NONE else int(recovery[number]),
        )
        for number in range(log.partition_count)
    ]


def bounds(log: Log, phases: Sequence[RunMarks]) -> WorkloadTimes:
    """Find the workload phase of each log partition; ``phases`` are of history. O(n)."""
    first = np.full(log.partition_count, np.iinfo(np.int64).max)
    last = np.full(log.partition_count, NONE, dtype=np.int64)
    rows = log.attempts
    begun = np.where(log.invoke_us[rows] >= 0, log.invoke_us[rows], log.time_us[rows])
    np.minimum.at(first, log.partition[rows], begun)
    np.maximum.at(last, log.partition[rows], log.time_us[rows])
    begin, end, heal = np.minimum(first, np.maximum(last, 0)), last, np.full(log.partition_count, NONE, dtype=np.int64)
    for history, phase in enumerate(phases):
        mine = log.partition_history == history
        healed = phase.phase_us(HEALED)
        over = healed if healed is not None else phase.phase_us(DRAINING)
        begins = phase.phase_us(WORKLOAD_BEGINS)
        for target, given in ((begin, begins), (end, over), (heal, over)):
            if given is not None:
                target[mine] = given
    return WorkloadTimes(begin, np.maximum(begin, end), heal)


def _longest_gaps(partition: Numbers, time_us: Numbers, begin: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """The longest stretch without an acknowledgement and where it starts, by log partition; the first of equal ones.

    Acknowledgements are in order of (partition, time), none before ``begin`` or after ``end``.
    """
    before = np.concatenate([time_us[:1], time_us[:-1]])
    heads = starts_of(partition)
    before[heads] = begin[partition[heads]]
    gaps = time_us - before
    where = begin.copy()
    where[partition] = time_us
    longest = end - where
    np.maximum.at(longest, partition, gaps)
    places = np.flatnonzero(gaps == longest[partition])[::-1]
    where[partition[places]] = before[places]
    return longest, where


def _first_after(partition: Numbers, time_us: Numbers, heal: Numbers) -> Numbers:
    """Time from the heal to the next acknowledgement, -1 if no write was acknowledged."""
    recovery = np.full(len(heal), NONE, dtype=np.int64)
    after = np.flatnonzero((time_us >= heal[partition]) & (heal[partition] >= 0))[::-1]
    recovery[partition[after]] = time_us[after] - heal[partition[after]]
    return recovery

"""Real-time lag: the time before a poll for which the log was certainly longer than what the consumer had read.

Not an anomaly but a measure: a consumer that reads old data is lawful, and how old matters. If a client had completed
an operation that showed offset 2 at time 9, and a consumer that holds the log partition and has read up to offset 1
begins a poll at time 12 that does not bring it further, it lags 3. A lower bound: the log may have been longer
earlier.

A consumer's offset is the largest that its ok polls and transactions showed it since it was assigned the partition,
-1 before the first. An assignment keeps the offset of a partition that it lists again and forgets the others; a
subscription forgets all. Every ok poll counts for every partition that the consumer holds; among polls that bring
nothing of a partition, the last one lags most, so one number a row is enough (see
:func:`workloads.history.clustering.with_waits`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from checkers.columns.ids import Flags, Numbers, dense_ids, one_of, starts_of
from checkers.columns.log import Log
from checkers.measures.availability import WorkloadTimes
from checkers.measures.latency import Histogram, added, histogram
from workloads import Function
from workloads.history import FUNCTION_CODE, INFO, NONE, OK, Kind

_ASSIGN = FUNCTION_CODE[Function.ASSIGN]
_SUBSCRIBE = FUNCTION_CODE[Function.SUBSCRIBE]
_POLLS = (FUNCTION_CODE[Function.POLL], FUNCTION_CODE[Function.TXN])
#: No offset yet and not assigned; assigned and nothing read has rank 0, offsets follow.
_NOTHING = -1


class WorstLag(msgspec.Struct, kw_only=True):
    """The largest ``lag``: of the poll of ``process`` that began at ``time``; both in microseconds."""

    time: int
    process: int
    key: str | int
    lag: int


class ConsumerLag(msgspec.Struct, kw_only=True):
    """The lags of polls within the workload phase, by bucket: of those that brought records, and of the last empty one.

    Empty where no consumer polled.
    """

    polls: Histogram = {}

    def add(self, other: ConsumerLag) -> None:
        """Count the polls of ``other`` too."""
        self.polls = added(self.polls, other.polls)


class Lags(NamedTuple):
    """Lag and time of the poll that had it in microseconds, process, partition; int64, one entry a lag, in no order."""

    lag_us: Numbers
    time_us: Numbers
    process: Numbers
    partition: Numbers


def lags(log: Log) -> Lags:
    """The lag of every poll that brought something of a partition, and of the last empty one before it. O(n log n)."""
    rows = log.by_client[one_of(log.kind, *_KINDS)[log.by_client]]
    shows_offset = _shows(log)
    shows = shows_offset[rows]
    ranks = dense_ids(log.partition[rows[shows]], log.offset[rows[shows]], log.partition_count)
    # Masks are made of whole columns, which lie in memory in order, and only then picked.
    polls = (log.type == OK) & one_of(log.function, *_POLLS) & (log.kind != Kind.WAITED)
    held = _held(log, rows, shows & polls[rows], ranks.of[polls[rows[shows]]])
    polled = (polls & (log.invoke_us >= 0))[rows]
    before = np.concatenate([[_NOTHING], held[:-1]]) if len(held) else held
    before[starts_of(log.client[rows])] = _NOTHING
    waited = (log.waited_us >= 0)[rows] & (before > _NOTHING)
    polled &= _last_of_operation(log, rows) & (held > _NOTHING)
    row = np.concatenate([rows[polled], rows[waited]])
    time_us = np.concatenate([log.invoke_us[rows[polled]], log.waited_us[rows[waited]]])
    rank = np.concatenate([held[polled], before[waited]])
    # Rank r of a holder is offset id r - 1; it lags from the moment at which the log has the next larger offset.
    offset = np.where(rank > 0, ranks.number[np.maximum(rank - 1, 0)], NONE) if len(ranks) else np.full(len(rank), NONE)
    shown = np.flatnonzero(shows_offset & one_of(log.type, OK, INFO))
    grown = grown_us(log, shown, log.partition[row], offset + 1)
    return Lags(np.maximum(0, time_us - grown), time_us, log.process[row], log.partition[row])


_KINDS = (Kind.READ, Kind.EMPTY, Kind.SEND, Kind.LISTED, Kind.DROPPED, Kind.WAITED)


def _shows(log: Log) -> Flags:
    """``bool[row]``: it shows an offset."""
    return one_of(log.kind, Kind.READ, Kind.SEND) & (log.offset >= 0)


def _held(log: Log, rows: Numbers, gains: Flags, offset_id: Numbers) -> Numbers:
    """``int64[row]``: after it, its process holds nothing (-1), an assignment (0), or 1 + the largest offset id."""
    listed = (log.kind == Kind.LISTED) & (log.type == OK)
    gain = np.full(len(rows), _NOTHING, dtype=np.int64)
    gain[(listed & (log.function == _ASSIGN))[rows]] = 0
    gain[gains] = offset_id + 1
    begins = ((log.kind == Kind.DROPPED) | listed & (log.function == _SUBSCRIBE))[rows]
    begins[starts_of(log.client[rows])] = True
    stretch = np.cumsum(begins)
    lift = int(gain.max(initial=0)) + 2
    held: Numbers = np.maximum.accumulate(stretch * lift + gain + 1) - stretch * lift - 1
    return held


def _last_of_operation(log: Log, rows: Numbers) -> Flags:
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (log.client[rows[1:]] != log.client[rows[:-1]]) | (log.index[rows[1:]] != log.index[rows[:-1]])
    return last


def grown_us(log: Log, rows: Numbers, partition: Numbers, offset: Numbers) -> Numbers:
    """``int64``: the time of the first of the ascending ``rows`` with that offset or a larger one, or never."""
    both = dense_ids(
        np.concatenate([log.partition[rows], partition]),
        np.concatenate([log.offset[rows], offset]),
        log.partition_count,
    )
    shown, asked = both.of[: len(rows)], both.of[len(rows) :]
    # Ids are ordered by (partition, offset), so a running maximum of ids within a log partition is one of offsets.
    largest = np.maximum.accumulate(shown) if len(shown) else shown
    smaller = np.cumsum(np.bincount(largest + 1, minlength=len(both) + 1))  # by id: how many maxima are below it
    first = smaller[asked]
    grown = first < len(rows)
    grown[grown] = log.partition[rows[first[grown]]] == partition[grown]
    times = np.full(len(asked), np.iinfo(np.int64).max // 2)
    times[grown] = log.time_us[rows[first[grown]]]
    return times


def lags_in_workload(log: Log, every: Lags, workload: WorkloadTimes, histories: int) -> list[ConsumerLag]:
    """Count the lags of each history within its workload phase: final readers begin at the start of a long log."""
    begin_us, end_us = workload.begin[every.partition], workload.end[every.partition]
    within = (every.time_us >= begin_us) & (every.time_us <= end_us)
    owner, lag_us = log.partition_history[every.partition[within]], every.lag_us[within]
    return [ConsumerLag(polls=histogram(lag_us[owner == history])) for history in range(histories)]


def worst(log: Log, every: Lags, histories: int) -> list[WorstLag | None]:
    """The largest lag of each history, of equal ones the first in time; None where no client polled."""
    owner = log.partition_history[every.partition]
    largest_us, earliest_us = np.full(histories, NONE), np.full(histories, np.iinfo(np.int64).max)
    np.maximum.at(largest_us, owner, every.lag_us)
    largest = np.flatnonzero(every.lag_us == largest_us[owner])
    np.minimum.at(earliest_us, owner[largest], every.time_us[largest])
    first = largest[every.time_us[largest] == earliest_us[owner[largest]]]
    worst_of: list[WorstLag | None] = [None] * histories
    last = {int(owner[number]): number for number in first.tolist()}
    for history, number in last.items():
        worst_of[history] = WorstLag(
            time=int(every.time_us[number]),
            process=int(every.process[number]),
            key=log.partition_key[int(every.partition[number])],
            lag=int(every.lag_us[number]),
        )
    return worst_of

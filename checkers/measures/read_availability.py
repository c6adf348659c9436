"""Availability of log partitions to readers: the longest time in which records were there and no reader got one.

A log partition *keeps readers waiting* from the moment at which a client was told of a record, by an acknowledgement
with its offset, that none of them has read, or from their last read before it where that is later. It ends when they
read anything of it. If a write is acknowledged at offset 7 at time 20, and the readers, who have read up to offset 6,
get their next record at time 50, it kept them waiting for 30. A log to which nothing is written keeps no one waiting.

A lower bound: after a truncation offsets are given again, and a reader that was further waits unseen until the log has
passed its place. Writes of transactions say nothing, because readers of committed records may not see them yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from checkers.columns.ids import Flags, Numbers, dense_ids, one_of, starts_of
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks
from checkers.measures.availability import WorkloadTimes
from checkers.measures.lag import grown_us
from workloads import Function
from workloads.history import FUNCTION_CODE, NONE, OK, Kind

_ASSIGN, _REBALANCE, _PROCESS = (
    FUNCTION_CODE[name] for name in (Function.ASSIGN, Function.REBALANCE, Function.PROCESS)
)


class ReadAvailability(msgspec.Struct, kw_only=True):
    """Availability of one log partition to readers within the workload phase, in microseconds of the run's clock.

    ``longest_gap_us`` is the longest time that it kept all readers waiting, begun at ``gap_start_us``; ``by_leader`` is
    the longest that began under each leader, -1 where none is known, and ``by_group`` the longest of the members of
    each consumer group.
    """

    longest_gap_us: int
    gap_start_us: int
    by_leader: dict[int, int] = {}
    by_group: dict[str, int] = {}


class _Waits(NamedTuple):
    """Times that readers waited. ``readers`` is the log partition for all of its readers together; groups follow.

    All are int64. ``of_partition`` and ``group`` are by readers, -1 for no group; the others by wait, in order of time.
    """

    readers: Numbers
    begun_us: Numbers
    lasted_us: Numbers
    of_partition: Numbers
    group: Numbers


def read_availability(log: Log, phases: Sequence[RunMarks], workload: WorkloadTimes) -> list[ReadAvailability | None]:
    """Measure each log partition of ``log``, in order; None where no acknowledgement or no reader tells anything.

    ``phases`` are of history. O(n log n).
    """
    begin, end, _ = workload
    told = log.sends[(log.type[log.sends] == OK) & (log.offset[log.sends] >= 0)]
    if log.transactions is not None:
        told = told[~log.transactions.own[told]]
    is_known = np.zeros(log.partition_count, dtype=bool)
    is_known[log.partition[told]] = True
    is_known &= _has_readers(log, end)
    if not is_known.any():
        return [None] * log.partition_count
    waits = _waits(log, told, begin, end)
    longest = np.zeros(len(waits.of_partition), dtype=np.int64)
    np.maximum.at(longest, waits.readers, waits.lasted_us)
    start = begin[waits.of_partition]
    places = np.flatnonzero((waits.lasted_us == longest[waits.readers]) & (waits.lasted_us > 0))[::-1]
    start[waits.readers[places]] = waits.begun_us[places]
    measured: list[ReadAvailability | None] = [None] * log.partition_count
    for number in np.flatnonzero(is_known).tolist():
        measured[number] = ReadAvailability(longest_gap_us=int(longest[number]), gap_start_us=int(start[number]))
    for readers in range(log.partition_count, len(longest)):
        if (of := measured[int(waits.of_partition[readers])]) is not None:
            of.by_group[log.group_names[int(waits.group[readers])]] = int(longest[readers])
    _add_leaders(log, phases, waits, measured)
    return measured


def _has_readers(log: Log, end: Numbers) -> Flags:
    """``bool[log partition]``: a client was to read it, or read it, before the workload phase was over."""
    assigned = (log.kind == Kind.LISTED) & one_of(log.function, _ASSIGN, _REBALANCE)
    rows = np.flatnonzero((assigned | (log.kind == Kind.READ)) & (log.type == OK) & (log.time_us < end[log.partition]))
    flags = np.zeros(log.partition_count, dtype=bool)
    flags[log.partition[rows]] = True
    return flags


def _waits(log: Log, told: Numbers, begin: Numbers, end: Numbers) -> _Waits:
    """Every wait of the readers of each log partition, and of each group that was assigned it; ``told`` are sends."""
    count = log.partition_count
    members = group = np.zeros(0, dtype=np.int64)
    if log.group is not None:
        members = np.flatnonzero((log.group >= 0) & one_of(log.function, _REBALANCE, _PROCESS))
        group = log.group[members]
    groups = dense_ids(log.partition[members], group, count)
    member_of = np.full(int(log.client.max(initial=-1)) + 1, NONE)
    member_of[log.client[members]] = groups.of
    reads, largest = _polls(log)
    is_grouped = member_of[log.client[reads]] >= 0
    grouped = reads[is_grouped]
    of_partition = np.concatenate([np.arange(count), groups.partition])
    # All readers begin with nothing.
    readers = np.concatenate([
        np.arange(len(of_partition)), log.partition[reads], count + member_of[log.client[grouped]],
    ])  # fmt: skip
    nothing = np.full(len(of_partition), NONE)
    time_us = np.concatenate([nothing, log.time_us[reads], log.time_us[grouped]])
    offset = np.concatenate([nothing, largest, largest[is_grouped]])
    order = np.lexsort((time_us, readers))
    ids = dense_ids(readers, offset, len(of_partition))
    readers, time_us = readers[order], time_us[order]
    # Ids are ordered by (readers, offset), so a running maximum of ids is one of the offsets of the same readers.
    reached = ids.number[np.maximum.accumulate(ids.of[order])]
    partition = of_partition[readers]
    until = end[partition]
    follows = np.flatnonzero(readers[1:] == readers[:-1])
    until[follows] = np.minimum(until[follows], time_us[follows + 1])
    begun = np.maximum.reduce([time_us, grown_us(log, told, partition, reached + 1), begin[partition]])
    group_of = np.concatenate([np.full(count, NONE), groups.number])
    return _Waits(readers, begun, np.maximum(0, until - begun), of_partition, group_of)


def _polls(log: Log) -> tuple[Numbers, Numbers]:
    """By log partition and ok operation that read something of it, its first such row, and the largest offset read.

    No reader waits within an operation, and one poll brings many records.
    """
    reads = log.reads[log.type[log.reads] == OK]
    first = starts_of(log.partition[reads] << 40 | log.index[reads])
    return reads[first], np.maximum.reduceat(log.offset[reads], first) if len(reads) else reads


def _add_leaders(
    log: Log, phases: Sequence[RunMarks], waits: _Waits, measured: Sequence[ReadAvailability | None]
) -> None:
    """Give each wait of all readers the leader that was last seen before it: by an answer, or by a look at a fault."""
    bounds_of = np.searchsorted(waits.readers, np.arange(log.partition_count + 1))
    sends = log.sends[(log.type[log.sends] == OK) & (log.node[log.sends] >= 0)]
    sends_of = np.searchsorted(log.partition[sends], np.arange(log.partition_count + 1))
    for number, availability in enumerate(measured):
        if availability is None:
            continue
        rows = sends[sends_of[number] : sends_of[number + 1]]
        key, history = log.partition_key[number], int(log.partition_history[number])
        looks = [look for fault in phases[history].faults for look in fault.receipt.seen.get(key, ())]
        seen_us = np.concatenate([log.time_us[rows], np.array([look.time_us for look in looks], dtype=np.int64)])
        leader = np.concatenate([
            log.node[rows], np.array([NONE if look.leader is None else look.leader for look in looks], dtype=np.int64),
        ])  # fmt: skip
        order = np.argsort(seen_us, kind="stable")
        mine = slice(bounds_of[number], bounds_of[number + 1])
        begun, lasted = waits.begun_us[mine], waits.lasted_us[mine]
        before = np.searchsorted(seen_us[order], begun, side="right") - 1
        under = np.concatenate([leader[order], [NONE]])[before]  # the last entry is for those before any
        for broker in np.unique(under[lasted > 0]).tolist():
            availability.by_leader[broker] = int(lasted[under == broker].max())

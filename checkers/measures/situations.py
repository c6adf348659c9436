"""Counts of the situations in which a replicated log loses writes when it does something wrong.

Some are seen in the history itself. Others were seen in the cluster only, by the harness while faults were in effect,
and are in the receipts of those (``seen``: by log partition, the first and the last look that found each leader, leader
epoch and size of the ISR). A situation that a history cannot show is None: not known, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from typing_extensions import override

from checkers.columns.ids import Numbers, dense_ids
from checkers.columns.log import Log
from checkers.columns.phases import RunMarks, merged
from checkers.columns.times import Times
from checkers.measures.latency import added
from checkers.measures.measure import Measure
from checkers.measures.writes_met import RECENT_US
from nemesis.receipts import Look
from workloads.history import OK

_FAR = np.iinfo(np.int64).max


class Situations(Measure):
    """Counts of one history, or of some of its log partitions.

    Attributes:
        leader_changed_in_flight: changes of leader, or of its epoch, seen while a fault was in effect, with a send in
            flight that was acknowledged afterwards. In flight means made before the last look at the old leader and
            answered after the first at the new one.
        acknowledged_across_epochs: those sends, each once.
        acknowledged_at_isr: writes acknowledged while a fault was in effect, by the size of the ISR that was seen.
        acknowledged_before_strike: writes acknowledged less than :data:`RECENT_US` before a fault struck, counted for
            each fault, by the size of the ISR that was seen when it struck.
        read_across_truncation: consumers of a log partition that read it before acknowledged writes were truncated, and
            again afterwards. A truncation is seen where a write was acknowledged at an offset no larger than that of
            one acknowledged before it was made; with acks=0 no client learns an offset.
        refused_before_append, refused_after_append: attempts to append that leaders answered with NOT_ENOUGH_REPLICAS,
            or with NOT_ENOUGH_REPLICAS_AFTER_APPEND, by the brokers' own account (:class:`workloads.RefusedAttempts`):
            clients repeat them, and the outcome of a send tells of the last attempt at most.
        isr_changes: times that in-sync replicas became others, by the same account.
    """

    leader_changed_in_flight: int | None = None
    acknowledged_across_epochs: int | None = None
    acknowledged_at_isr: dict[int, int] | None = None
    acknowledged_before_strike: dict[int, int] | None = None
    read_across_truncation: int | None = None
    refused_before_append: int | None = None
    refused_after_append: int | None = None
    isr_changes: int | None = None

    @classmethod
    @override
    def of_each(cls, log: Log, phases: Sequence[RunMarks]) -> list[Situations]:
        return _situations(log, phases)

    @override
    def add(self, other: Situations) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, _sum(getattr(self, name), getattr(other, name)))


def _sum(mine: int | dict[int, int] | None, theirs: int | dict[int, int] | None) -> int | dict[int, int] | None:
    if mine is None or theirs is None:
        return mine if theirs is None else theirs
    if isinstance(mine, int) or isinstance(theirs, int):
        return int(mine) + int(theirs)  # type: ignore[arg-type]
    return added(mine, theirs)


def _situations(log: Log, phases: Sequence[RunMarks]) -> list[Situations]:
    """Count every situation of each history. O(n log n)."""
    acknowledged = log.sends[log.type[log.sends] == OK]
    of_history = [Situations() for _ in phases]
    _add_refusals(log, phases, of_history)
    _add_truncations(log, acknowledged, of_history)
    _add_seen(log, acknowledged, phases, of_history)
    return of_history


def _add_refusals(log: Log, phases: Sequence[RunMarks], of_history: list[Situations]) -> None:
    """Count those of the log partitions that are here: parts of a history each see the account of the whole."""
    for history, phase in enumerate(phases):
        if (attempts := phase.refused_attempts) is None:
            continue
        here = np.flatnonzero(log.partition_history == history).tolist()
        keys = [log.partition_key[partition] for partition in here]
        of_history[history].refused_before_append = sum(attempts.before_append.get(key, 0) for key in keys)
        of_history[history].refused_after_append = sum(attempts.after_append.get(key, 0) for key in keys)
        if attempts.isr_changes is not None:
            of_history[history].isr_changes = sum(attempts.isr_changes.get(key, 0) for key in keys)


def _with_offset(log: Log, acknowledged: Numbers, histories: int) -> Numbers:
    """Count the acknowledgements with an offset, by history."""
    named = acknowledged[log.offset[acknowledged] >= 0]
    return np.bincount(log.partition_history[log.partition[named]], minlength=histories)


def _add_truncations(log: Log, acknowledged: Numbers, of_history: list[Situations]) -> None:
    cut_after, cut_before = _truncated(log, acknowledged)
    first = np.full(int(log.client.max(initial=-1)) + 1, _FAR)
    last = np.full(len(first), -1)
    reads = log.reads[log.type[log.reads] == OK]
    np.minimum.at(first, log.client[reads], log.time_us[reads])
    np.maximum.at(last, log.client[reads], log.time_us[reads])
    partition = np.zeros(len(first), dtype=np.int64)
    partition[log.client] = log.partition
    across = (first <= cut_after[partition]) & (last >= cut_before[partition]) & (cut_after[partition] >= 0)
    histories = np.bincount(log.partition_history[partition[across]], minlength=len(of_history))
    with_offsets = _with_offset(log, acknowledged, len(of_history))
    for history, situations in enumerate(of_history):
        if with_offsets[history]:
            situations.read_across_truncation = int(histories[history])


def _truncated(log: Log, acknowledged: Numbers) -> tuple[Numbers, Numbers]:
    """By log partition, two moments between which acknowledged writes were first truncated, -1 for never."""
    after = np.full(log.partition_count, -1)
    before = after.copy()
    rows = acknowledged[log.offset[acknowledged] >= 0]
    if not len(rows):
        return after, before
    if np.any((np.diff(log.time_us[rows]) < 0) & (np.diff(log.partition[rows]) == 0)):
        rows = rows[np.lexsort((log.time_us[rows], log.partition[rows]))]
    partition, offset, time_us = log.partition[rows], log.offset[rows], log.time_us[rows]
    starts = np.searchsorted(partition, np.arange(log.partition_count))
    ids = dense_ids(partition, offset, log.partition_count).of  # by (partition, offset)
    highest = np.maximum.accumulate(ids)
    begun = np.where(log.invoke_us[rows] >= 0, log.invoke_us[rows], time_us)
    earlier = starts[partition] + Times(partition, time_us, log.partition_count).before(partition, begun) - 1
    shown = np.flatnonzero(earlier >= starts[partition])
    shown = shown[highest[earlier[shown]] >= ids[shown]]
    holder = np.searchsorted(highest, highest[earlier[shown]])
    # The truncation of each log partition that was seen first is written here last, and stays.
    order = np.lexsort((time_us[shown], partition[shown]))[::-1]
    after[partition[shown[order]]] = time_us[holder[order]]
    before[partition[shown[order]]] = time_us[shown[order]]
    return after, before


def _add_seen(log: Log, acknowledged: Numbers, phases: Sequence[RunMarks], of_history: list[Situations]) -> None:
    bounds = np.searchsorted(log.partition[acknowledged], np.arange(log.partition_count + 1))
    partitions = np.searchsorted(log.partition_history, np.arange(len(phases) + 1))
    for history, phase in enumerate(phases):
        watched = [(fault.begun_us, fault.receipt.seen) for fault in phase.faults if fault.receipt.seen]
        if not watched:
            continue
        situations = of_history[history]
        situations.leader_changed_in_flight = situations.acknowledged_across_epochs = 0
        situations.acknowledged_at_isr, situations.acknowledged_before_strike = {}, {}
        for partition in range(partitions[history], partitions[history + 1]):
            key = log.partition_key[partition]
            rows = acknowledged[bounds[partition] : bounds[partition + 1]]
            of_partition = [(begun_us, seen[key]) for begun_us, seen in watched if key in seen]
            situations.add(_of_partition(log, rows, of_partition))


def _of_partition(log: Log, rows: Numbers, watched: Sequence[tuple[int, Sequence[Look]]]) -> Situations:
    """Count the acknowledged ``rows`` of one log partition: ``watched`` has each fault's strike and the looks since."""
    ended = np.sort(log.time_us[rows])
    at_isr: dict[int, int] = {}
    before_strike: dict[int, int] = {}
    for begun_us, looks in watched:
        if looks:
            size = looks[0].isr
            before_strike[size] = before_strike.get(size, 0) + _within(ended, begun_us - RECENT_US, begun_us)
    steps = [step for _, looks in watched for step in pairwise(looks)]
    same = [(before, after) for before, after in steps if before[1:] == after[1:]]
    for size in {before.isr for before, _ in same}:
        windows = merged((before.time_us, after.time_us) for before, after in same if before.isr == size)
        at_isr[size] = sum(_within(ended, begin_us, end_us) for begin_us, end_us in windows.tolist())
    changed = [(before, after) for before, after in steps if before[1:3] != after[1:3]]
    # Faults that overlap look at different times at the same change: the narrowest pair of looks is the best.
    changed.sort(key=lambda step: step[0].time_us - step[1].time_us)
    changes = {(before[1:3], after[1:3]): (before.time_us, after.time_us) for before, after in changed}
    across = [
        (log.invoke_us[rows] < old_us) & (log.invoke_us[rows] >= 0) & (log.time_us[rows] >= new_us)
        for old_us, new_us in changes.values()
    ]
    return Situations(
        leader_changed_in_flight=sum(bool(sends.any()) for sends in across),
        acknowledged_across_epochs=int(np.logical_or.reduce(across).sum()) if across else 0,
        acknowledged_at_isr=at_isr,
        acknowledged_before_strike=before_strike,
    )


def _within(times_us: Numbers, begin_us: int, end_us: int) -> int:
    """Count those of ascending ``times_us`` in [``begin_us``, ``end_us``)."""
    begin, end = np.searchsorted(times_us, [begin_us, end_us])
    return int(end - begin)

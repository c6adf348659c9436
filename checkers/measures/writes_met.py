"""The writes that each fault of a run met: silence about a fault that met no writes proves nothing.

A fault *strikes* at the event of its begin and lasts until that of its end. It *touches* the log partitions that its
receipt names, which have a replica on a broker that was hit; receipts of older versions name none, which means all. Of
these it counts sends that were

* *in flight* when it struck: made before, and acknowledged then or later. Sends without an acknowledgement are not
  counted, because a producer that stopped working has hundreds of them in flight and none at a broker;
* *recent*: acknowledged less than :data:`RECENT_US` before it struck. A follower gets what is new with its next fetch,
  so with acks other than all these *may* not be everywhere yet;
* *recent_alone*: those of them whose ISR was the leader alone when it struck, by the receipt's first look;
* acknowledged while it lasted;
* *cleaned*: acknowledged while it lasted, records of a compacted log that no final reader saw, because a cleaner
  removed them; only where a final reader read the log partition while a broker that was hit led it, since other leaders
  do not show what that broker has;
* *refused* for want of in-sync replicas, by the name of their error, and under way while it lasted. A client that
  retries until its time is over may report only that, so there may have been more.

A send may be counted in several of these, and under several faults. Whether they put a fault to the test depends on the
settings, which are not known here: :mod:`checkers.verdicts.exercised`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from checkers.columns.ids import Flags, Numbers, one_of
from checkers.columns.log import Log
from checkers.columns.phases import FOR_EVER, FaultSpan, RunMarks
from checkers.columns.times import Spans, Times
from workloads import FOR_WANT_OF_REPLICAS
from workloads.history import NONE, OK

#: Kafka's default of replica.fetch.wait.max.ms: an idle follower's fetch waits no longer.
RECENT_US = 500_000


class FaultExercise(msgspec.Struct, kw_only=True):
    """Counts of the sends that the fault with this ``sequence`` met; see the module's text."""

    sequence: int
    in_flight: int = 0
    recent: int = 0
    recent_alone: int = 0
    acknowledged: int = 0
    refused: int = 0
    cleaned: int = 0


def fault_exercise(log: Log, phases: Sequence[RunMarks]) -> list[list[FaultExercise]]:
    """Count for each history, by its faults that took effect, in order of their begins. O(n log n)."""
    exercises: list[list[FaultExercise]] = [[] for _ in phases]
    struck = [(history, fault) for history, phase in enumerate(phases) for fault in phase.faults]
    if not struck:
        return exercises
    number, partition = touched(log, struck)
    pairs = list(zip(number.tolist(), partition.tolist(), strict=True))
    alone = np.array([_alone(struck[strike][1], log.partition_key[key]) for strike, key in pairs], dtype=bool)
    begun_us = np.array([fault.begun_us for _, fault in struck], dtype=np.int64)[number]
    ended_us = np.array([fault.ended_us for _, fault in struck], dtype=np.int64)[number]
    after_us = np.minimum(ended_us, FOR_EVER - 1) + 1
    acknowledged = log.sends[log.type[log.sends] == OK]
    refused = log.sends[one_of(log.refusal[log.sends], *FOR_WANT_OF_REPLICAS)]
    answers = Times(log.partition[acknowledged], log.time_us[acknowledged], log.partition_count)
    recent = answers.between(partition, begun_us - RECENT_US, begun_us)
    counts = {
        "in_flight": spans_of(log, acknowledged).around(partition, begun_us),
        "recent": recent,
        "recent_alone": recent * alone,
        "acknowledged": answers.between(partition, begun_us, after_us),
        "cleaned": _cleaned(log, acknowledged).between(partition, begun_us, after_us) * _read_under(log, struck, pairs),
        "refused": spans_of(log, refused).meeting(partition, begun_us, after_us),
    }
    summed = {name: np.bincount(number, by_pair, len(struck)).astype(np.int64) for name, by_pair in counts.items()}
    for strike, (history, fault) in enumerate(struck):
        of_fault = {name: int(by_fault[strike]) for name, by_fault in summed.items()}
        exercises[history].append(FaultExercise(sequence=fault.receipt.sequence, **of_fault))
    return exercises


def _cleaned(log: Log, acknowledged: Numbers) -> Times:
    """The times at which records were acknowledged that a cleaner may remove, and that no final reader saw."""
    rows = acknowledged[:0]
    if log.removable.any():
        gone = log.removable & ~log.marked(log.final_reads)
        drained = log.drained_end[log.partition[acknowledged]] != NONE
        rows = acknowledged[drained & gone[log.value_id[acknowledged]]]
    return Times(log.partition[rows], log.time_us[rows], log.partition_count)


def _read_under(log: Log, struck: Sequence[tuple[int, FaultSpan]], pairs: Sequence[tuple[int, int]]) -> Flags:
    """``bool[pair]``: a final reader read the log partition while a broker that the fault hit led it."""
    led = set(zip(log.partition[log.drains].tolist(), log.node[log.drains].tolist(), strict=True))
    return np.array([any((key, node) in led for node in struck[strike][1].receipt.targets) for strike, key in pairs])


def _alone(fault: FaultSpan, key: str) -> bool:
    looks = fault.receipt.seen.get(key, [])
    return bool(looks) and looks[0].isr <= 1


def touched(log: Log, struck: Sequence[tuple[int, FaultSpan]]) -> tuple[Numbers, Numbers]:
    """The log partitions that faults touched: pairs (place in ``struck``, partition), int64."""
    first = np.searchsorted(log.partition_history, np.arange(int(log.partition_history.max(initial=0)) + 2))
    numbers, partitions = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for strike, (history, fault) in enumerate(struck):
        mine = np.arange(first[history], first[history + 1]) if history + 1 < len(first) else partitions[0]
        names = fault.receipt.touched
        if names is not None:
            named = set(names)
            mine = np.array(
                [partition for partition in mine.tolist() if log.partition_key[partition] in named], np.int64
            )
        numbers.append(np.full(len(mine), strike))
        partitions.append(mine)
    return np.concatenate(numbers), np.concatenate(partitions)


def spans_of(log: Log, rows: Numbers) -> Spans:
    """Spans from the invocation to the end of these sends; without a known invocation a send was never under way."""
    ended = log.time_us[rows]
    begun = np.where(log.invoke_us[rows] >= 0, log.invoke_us[rows], ended)
    return Spans(log.partition[rows], np.minimum(begun, ended), ended, log.partition_count)

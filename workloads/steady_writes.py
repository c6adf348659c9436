"""Writes and their times: evenly spaced, over all log partitions and keys. Other workloads are made of these."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, count, cycle
from typing import Final, NamedTuple

from workloads.plan import WorkloadPlan

#: Steps of the sequence R2 in both directions: powers of the root of x^3 = x + 1.
_R2: Final = (0.7548776662466927, 0.5698402909980532)


class DueWrite(NamedTuple):
    """One write to be made: ``due_us`` after the workload began, by the ``producer``-th producer."""

    due_us: int
    producer: int
    partition: int
    key: bytes
    payload_bytes: int
    tombstone: bool = False


def steady(plan: WorkloadPlan) -> Iterator[DueWrite]:
    """Evenly spaced writes, the producers in turn.

    Each producer goes through all log partitions, begins at another one than its neighbours, and changes its key after
    every round, so that every producer writes to every partition under every key. With `skew` some are written to more
    often than others.
    """
    interval_us = 1_000_000 / plan.writes_per_second
    keys = [f"key-{number}".encode() for number in range(plan.keys)]
    partitions = len(plan.log_partitions)
    places = _skewed(partitions, plan.keys, plan.skew) if plan.skew else _in_turn(partitions, plan.keys, plan.producers)
    for number, (partition, key) in enumerate(places):
        due_us = int(number * interval_us)
        yield DueWrite(due_us, number % plan.producers, partition, keys[key], plan.payload_bytes)


def _in_turn(partitions: int, keys: int, producers: int) -> Iterator[tuple[int, int]]:
    """The log partition and the key of each write, for one producer after the other."""
    for key in cycle(range(keys)):
        for turn in range(partitions):
            for producer in range(producers):
                yield (turn + producer) % partitions, key


def _skewed(partitions: int, keys: int, skew: float) -> Iterator[tuple[int, int]]:
    """The same by Zipf's law, without chance: points that fill a square evenly (the sequence R2) choose both."""
    shares = [list(accumulate((number + 1) ** -skew for number in range(count))) for count in (partitions, keys)]
    for number in count(1):
        chosen = [bisect_right(share, number * step % 1.0 * share[-1]) for share, step in zip(shares, _R2, strict=True)]
        yield min(chosen[0], partitions - 1), min(chosen[1], keys - 1)

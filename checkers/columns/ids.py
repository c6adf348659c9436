"""Small dense numbers for things that come as pairs (log partition, number). Everything else is built on these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: A table may have this many places for each number looked up; beyond it sorting is cheaper in memory.
_PLACES_A_NUMBER: Final = 4


@dataclass(frozen=True, slots=True)
class Ids:
    """The different pairs (partition, number), numbered from 0 in that order.

    Attributes:
        of: int64, for each input pair its id.
        partition, number: int64, by id, the pair.
    """

    of: Numbers
    partition: Numbers
    number: Numbers

    def __len__(self) -> int:
        return len(self.number)


def dense_ids(partition: Numbers, number: Numbers, count: int) -> Ids:
    """Ids of the different pairs (partition, number), int64 arrays of one length; ``count`` bounds the first.

    O(n) with a table where numbers are dense in their log partition, as offsets and counters are; O(n log n) otherwise.
    """
    if not len(number):
        return Ids(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, np.iinfo(np.int64).min)
    starts = starts_of(partition)  # rows of a log partition are mostly neighbours
    np.minimum.at(low, partition[starts], np.minimum.reduceat(number, starts))
    np.maximum.at(high, partition[starts], np.maximum.reduceat(number, starts))
    used = high >= low
    # As floats first: two numbers near the ends of 64 bits are further apart than 64 bits can say.
    span = np.where(used, high.astype(float) - low.astype(float) + 1, 0.0)
    if span.sum() <= _PLACES_A_NUMBER * len(number) + 1024:
        return _by_table(partition, number, low, np.where(used, high - np.where(used, low, 0) + 1, 0))
    return _by_sorting(partition, number)


def _by_table(partition: Numbers, number: Numbers, low: Numbers, span: Numbers) -> Ids:
    base = np.cumsum(span) - span
    shift = base - low
    slots = number + shift[partition]
    taken = np.zeros(int(span.sum()), dtype=bool)
    taken[slots] = True
    places = np.flatnonzero(taken)
    ids = np.cumsum(taken) - 1
    sizes = np.diff(np.searchsorted(places, np.append(base, len(taken))))
    of_partition = np.repeat(np.arange(len(base)), sizes)
    return Ids(ids[slots], of_partition, places - shift[of_partition])


def _by_sorting(partition: Numbers, number: Numbers) -> Ids:
    """Sort pairs packed as single numbers: once where 64 bits hold them, else once more before, for their ranks."""
    low = int(number.min())
    span = int(number.max()) - low + 1
    if span * (int(partition.max()) + 1) <= np.iinfo(np.int64).max:
        packed, of = np.unique(partition * span + (number - low), return_inverse=True)
        return Ids(of, packed // span, packed % span + low)
    distinct, rank = np.unique(number, return_inverse=True)
    packed, of = np.unique(partition * len(distinct) + rank, return_inverse=True)
    return Ids(of, packed // len(distinct), distinct[packed % len(distinct)])


def stable_order(ids: Numbers) -> Numbers:
    """The order (int64: places in ``ids``) that sorts by id (from 0 on) and leaves equal ids in their order.

    O(n) for ids of 16 bits, which NumPy sorts by their digits; else one sort of packed numbers, which is several times
    as fast as a stable argsort.
    """
    if int(ids.max(initial=0)) <= np.iinfo(np.uint16).max:
        return np.argsort(ids.astype(np.uint16), kind="stable")
    bits = max(1, len(ids).bit_length())
    packed = (ids << bits) | np.arange(len(ids), dtype=np.int64)
    packed.sort()
    return packed & ((1 << bits) - 1)


def rows_of(number: int, ascending: Numbers) -> slice:
    """The places of a number among ascending ones."""
    begin, end = np.searchsorted(ascending, (number, number + 1)).tolist()
    return slice(begin, end)


def smallest_of(ids: Numbers, numbers: Numbers) -> Numbers:
    """By id, the smallest of its numbers (int64); more than any for an id without one."""
    smallest = np.full(int(ids.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(smallest, ids, numbers)
    return smallest


def distinct_pairs(first: Numbers, second: Numbers, seconds: int) -> tuple[Numbers, Numbers]:
    """The different pairs of two int64 arrays of dense ids, ordered; ``seconds`` bounds the second numbers.

    O(n) where each first number has only one second one, as a value has one offset; O(n log n) otherwise.
    """
    only = np.full(int(first.max(initial=-1)) + 1, -1)
    only[first] = second
    if np.array_equal(only[first], second):
        paired = np.flatnonzero(only >= 0)
        return paired, only[paired]
    packed = first * max(1, seconds) + second
    packed.sort()
    keep = np.ones(len(packed), dtype=bool)
    np.not_equal(packed[1:], packed[:-1], out=keep[1:])
    packed = packed[keep]
    return packed // max(1, seconds), packed % max(1, seconds)


def one_of(codes: npt.NDArray[Any], *wanted: int) -> Flags:
    """Mark the codes (int8) that are one of the ``wanted`` (bool); ten times as fast as ``np.isin``."""
    table = np.zeros(256, dtype=bool)
    table[list(wanted)] = True
    return table.take(codes.view(np.uint8))


def starts_of(ids: npt.NDArray[Any]) -> Numbers:
    """Find the begin of each stretch of equal ids: int64, places in ``ids``."""
    return np.flatnonzero(np.concatenate([np.ones(min(1, len(ids)), bool), ids[1:] != ids[:-1]]))

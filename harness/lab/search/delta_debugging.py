"""Delta debugging: smaller lists that still show something, without knowledge of what is reduced.

A predicate ``shows`` is asked of candidates, and is true of what is given. It need not be monotonic: what is left is
1-minimal, so that no single item can be taken away, not the smallest there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def reduced(items: Sequence[Item], shows: Callable[[tuple[Item, ...]], bool]) -> tuple[Item, ...]:
    """A part of ``items``, in their order, that ``shows`` still; without any single item it does not.

    Delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002): halves, then
    quarters, ..., first each part alone, then all but it. At best O(log n) questions, at worst O(n²).
    """
    left, parts = tuple(items), 2
    while left:
        parts = min(parts, len(left))
        for candidate, parts_then in _candidates(left, parts):
            if shows(candidate):
                left, parts = candidate, parts_then
                break
        else:
            if parts == len(left):
                return left
            parts *= 2
    return left


def _candidates(items: tuple[Item, ...], parts: int) -> Iterator[tuple[tuple[Item, ...], int]]:
    """Each part alone, and then all but it, with the number of parts to go on with."""
    edges = [len(items) * number // parts for number in range(parts + 1)]
    cuts = [*pairwise(edges)]
    if parts > 2:  # of two parts each is all but the other
        yield from ((items[begin:end], 2) for begin, end in cuts)
    yield from ((items[:begin] + items[end:], max(parts - 1, 2)) for begin, end in cuts)

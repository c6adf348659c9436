"""The yardstick of a machine: fixed work in pure Python and a fixed sort, printed with each figure.

A figure of one machine says little of another. Its ratio to work that anyone can repeat says more.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np

#: Additions of the loop, numbers of the sort, and measurements of each; their median counts.
ADDITIONS: Final = 5_000_000
NUMBERS: Final = 2_000_000
TURNS: Final = 5
_SEED: Final = 20_261_129


class Yardstick(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one core for the loop and for the sort, each the median of some turns."""

    loop_s: float
    sort_s: float

    def lines(self) -> Iterator[str]:
        """A line for people."""
        yield (
            f"yardstick: {ADDITIONS:,} additions in Python {self.loop_s:.3f} s, "
            f"{NUMBERS:,} numbers sorted {self.sort_s:.3f} s"
        )


def measure_yardstick() -> Yardstick:
    """Do the fixed work in turns, on this core."""
    numbers = np.random.default_rng(_SEED).integers(0, 1 << 62, NUMBERS)
    loops, sorts = [], []
    for _ in range(TURNS):
        loops.append(_seconds_of(_loop))
        sorts.append(_seconds_of(lambda: np.sort(numbers, kind="stable")))
    return Yardstick(loop_s=statistics.median(loops), sort_s=statistics.median(sorts))


def _loop() -> int:
    total = 0
    for number in range(ADDITIONS):
        total += number & 7
    return total


def _seconds_of(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began

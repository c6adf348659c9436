"""Proportions with their 95 % intervals: the evidence in a count.

0 of n gives the rule of three, an upper bound of 3/n (Hanley and Lippman-Hand 1983); k of n gives the exact interval
of Clopper and Pearson (1934), which is never too narrow for independent trials. Both assume independent trials: runs
with their own seeds are; writes of one run are not, because one change of leader loses several at once.
"""

from __future__ import annotations

from typing import Literal

import msgspec

CONFIDENCE = 0.95


class Proportion(msgspec.Struct, frozen=True):
    """``count`` of ``total`` with its 95 % interval [``low``, ``high``]; nothing is known (0 to 1) where total is 0."""

    count: int
    total: int
    low: float
    high: float
    method: Literal["rule of three", "Clopper-Pearson", "none"]

    @property
    def rate(self) -> float:
        """The share count / total, 0 where total is 0."""
        return self.count / self.total if self.total else 0.0


def proportion(count: int, total: int) -> Proportion:
    """The proportion ``count`` of ``total`` and its interval.

    Raises:
        ValueError: if not 0 <= count <= total.
    """
    if not 0 <= count <= total:
        raise ValueError(f"a proportion needs 0 <= count <= total, not {count} of {total}")
    if total == 0:
        return Proportion(count, total, 0.0, 1.0, "none")
    if count == 0:
        return Proportion(count, total, 0.0, min(1.0, 3 / total), "rule of three")
    from scipy.special import betaincinv  # noqa: PLC0415 - takes a third of a second, which only losing cells pay

    tail = (1 - CONFIDENCE) / 2
    low = float(betaincinv(count, total - count + 1, tail))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, 1 - tail))
    return Proportion(count, total, low, high, "Clopper-Pearson")

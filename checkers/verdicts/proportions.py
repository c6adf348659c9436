"""How much a count proves: 95 % intervals of a proportion, without SciPy.

0 of n gives the rule of three, an upper bound of 3/n (Hanley and Lippman-Hand 1983); k of n gives the exact interval
of Clopper and Pearson (1934), which is never too narrow for independent trials. Both assume independent trials: runs
with their own seeds are; writes of one run are not, because one change of leader loses several at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import msgspec

CONFIDENCE = 0.95
#: Halving [0, 1] this often ends below the spacing of floating point numbers near 1.
_HALVINGS = 60
#: The continued fraction converges in O(sqrt(n)) terms (Numerical Recipes 6.4); this is enough for n of 10^9.
_TERMS_MAX = 100_000

Method = Literal["rule of three", "Clopper-Pearson", "none"]


class Proportion(msgspec.Struct, frozen=True):
    """``count`` of ``total`` with its 95 % interval [``low``, ``high``]; nothing is known (0 to 1) where total is 0."""

    count: int
    total: int
    low: float
    high: float
    method: Method

    @property
    def rate(self) -> float:
        """count / total, 0 where total is 0."""
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
    tail = (1 - CONFIDENCE) / 2
    low = _solve(lambda p: incomplete_beta(count, total - count + 1, p), tail)
    high = 1.0 if count == total else _solve(lambda p: incomplete_beta(count + 1, total - count, p), 1 - tail)
    return Proportion(count, total, low, high, "Clopper-Pearson")


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function: P(at least a successes of a+b-1 trials of chance x) for whole a, b."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _continued_fraction(a, b, x) / a


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Lentz's method for the continued fraction of the incomplete beta function (DLMF 8.17.22)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS_MAX):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return value


def _solve(rising: Callable[[float], float], wanted: float) -> float:
    """The p in [0, 1] at which ``rising`` reaches ``wanted``."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low + high) / 2

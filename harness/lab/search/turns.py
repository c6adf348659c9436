"""The turns of a hunt: every portfolio has one early, and then each has its share of the time.

The order follows from the portfolios alone. So it is the same for every seed, and for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace
from itertools import count, islice
from typing import NamedTuple

from harness.lab.search.portfolios import Portfolio


class Turn(NamedTuple):
    """Run ``number`` of a portfolio."""

    portfolio: Portfolio
    number: int


def turns_of(portfolios: Sequence[Portfolio], first: int = 0) -> Iterator[Turn]:
    """Turn after turn; the iterator never ends by itself. Each portfolio begins with its run ``first``.

    First each has one turn, the cheapest run first. Then who has had the least of its share is next: a portfolio whose
    run has half the price has two.
    """
    in_order = sorted(portfolios, key=lambda portfolio: portfolio.price)
    numbers = [count(first) for _ in in_order]
    had = [(0.0, rank) for rank in range(len(in_order))]
    heapify(had)
    while True:
        spent, rank = had[0]
        portfolio = in_order[rank]
        yield Turn(portfolio, next(numbers[rank]))
        heapreplace(had, (spent + portfolio.price / portfolio.share, rank))


def blocks_of(turns: Iterator[Turn], sizes: Iterator[int]) -> Iterator[list[Turn]]:
    """All turns, in blocks of these sizes."""
    return (list(islice(turns, size)) for size in sizes)

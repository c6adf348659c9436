"""From millions of dependencies of one history to the few operations that may be on a cycle.

Give every operation the earliest moment at which it can have happened: it began, and everything it depends on had
happened. That is a maximum that spreads along tight dependencies (others cannot raise it), and because it only spreads
among operations that were under way at the same time, a handful of rounds settles it. Then

* an operation that was acknowledged before its earliest moment is on a cycle with real time, and the others on that
  cycle have moments after its acknowledgement and not after its own;
* around a cycle of ww and wr alone all moments are equal, so such cycles lie inside groups of equal moments, and what
  has no successor or no predecessor in its group is not on one.

Complexity: O(dependencies x rounds). Rounds are bounded; a history that has not settled by then keeps more suspects,
never fewer.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.cycles.edges import Dependencies, Dependency, among, began, dependencies, ended, suspects

#: Moments spread among concurrent operations only, so as many rounds as clients are enough; this is far more.
ROUNDS_MAX: Final = 200


def trim(earlier: Numbers, later: Numbers, began: Numbers, ended: Numbers) -> Flags:
    """``bool[operation]``, numbered from 0: it may be on a cycle.

    ``earlier`` and ``later`` are operations, by dependency; ``began`` and ``ended`` event indexes, by operation; all
    int64. Tight dependencies decide whether there is a cycle; the consequences of an operation on one need its other
    dependencies, too.
    """
    moments, settled = earliest_moments(earlier, later, began)
    late = (moments > ended) | ~settled
    suspect = late | inside(moments, np.minimum(ended, moments)[late], moments[late])
    level = moments[earlier] == moments[later]
    return suspect | on_both_sides(earlier[level], later[level], len(began))


def inside(moments: Numbers, low: Numbers, high: Numbers) -> Flags:
    """Mark the moments that lie above some ``low`` and not above its ``high``."""
    edges = np.sort(np.concatenate([low + 1, high + 1]))
    opened = np.searchsorted(np.sort(low + 1), edges, side="right")
    closed = np.searchsorted(np.sort(high + 1), edges, side="right")
    edge = np.searchsorted(edges, moments, side="right") - 1
    inside: Flags = (edge >= 0) & ((opened - closed)[edge] > 0) if len(edges) else np.zeros(len(moments), bool)
    return inside


def earliest_moments(earlier: Numbers, later: Numbers, began: Numbers) -> tuple[Numbers, Flags]:
    """By operation, the earliest moment (int64), and a mark where it had settled (bool); ``began`` is their begin."""
    moments = began.copy()
    for _ in range(ROUNDS_MAX):
        spread = moments.copy()
        np.maximum.at(spread, later, moments[earlier])
        if (spread == moments).all():
            return moments, np.ones(len(began), dtype=bool)
        moments = spread
    spread = moments.copy()
    np.maximum.at(spread, later, moments[earlier])
    return spread, spread == moments


def on_both_sides(earlier: Numbers, later: Numbers, operations: int) -> Flags:
    """Mark operations with a predecessor and a successor, again and again until no more fall away."""
    alive = np.ones(operations, dtype=bool)
    for _ in range(ROUNDS_MAX):
        kept = alive[earlier] & alive[later]
        earlier, later = earlier[kept], later[kept]
        leads, follows = np.zeros(operations, dtype=bool), np.zeros(operations, dtype=bool)
        leads[earlier], follows[later] = True, True
        now = leads & follows
        if (now == alive).all():
            break
        alive = now
    return alive


def core_steps(log: Log, *, ww_deps: Flags, joined: Flags, whole: Flags) -> list[Dependency]:
    """The few dependencies of a batch that may be on a cycle, spelled out. The flags are of history.

    A history with transactions that is not whole here is left to :mod:`checkers.cycles.shuffled`.
    """
    owner = log.partition_history[log.partition]
    alone = suspects(log, ww_deps)
    alone = alone[~joined[alone >> 40]]
    together = joined & whole
    if not len(alone) and not together[owner].any():
        return []
    edges = dependencies(log, ww_deps)
    linked = edges.where(together[owner[edges.earlier]])
    return among(log, edges, np.union1d(alone, trimmed(log, linked)))


def trimmed(log: Log, edges: Dependencies) -> Numbers:
    """Operations (packed) of these dependencies that may be on a cycle."""
    if not len(edges.earlier):
        return np.zeros(0, np.int64)
    rows = np.concatenate([edges.earlier, edges.later])
    operations, first, number = np.unique(log.operation(rows), return_index=True, return_inverse=True)
    earlier, later = np.split(number, 2)
    kept = trim(earlier, later, began(log, rows[first]), ended(log, rows[first]))
    suspect: Numbers = operations[kept]
    return suspect

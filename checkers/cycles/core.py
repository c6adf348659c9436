"""The few dependencies of some histories that may be on a cycle, from everything that is known of them in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from checkers.columns.ids import Flags, Numbers
from checkers.columns.log import Log
from checkers.cycles.edges import Dependencies, among, began, dependencies, ended, suspects
from checkers.cycles.trimming import trim


def core_steps(log: Log, *, ww_deps: Flags, joined: Flags, whole: Flags) -> list[dict[str, Any]]:
    """Dependencies between suspects, spelled out. The flags are of history.

    A history with transactions of which only a part is here is left to :mod:`checkers.cycles.shuffled`.
    """
    owner = log.segment_history[log.segment]
    alone = suspects(log, ww_deps)
    found_alone = alone[~joined[alone >> 40]]
    together = joined & whole
    if not len(found_alone) and not together[owner].any():
        return []
    found = dependencies(log, ww_deps)
    linked = found.where(together[owner[found.earlier]])
    return among(log, found, np.union1d(found_alone, trimmed(log, linked)))


def trimmed(log: Log, found: Dependencies) -> Numbers:
    """Operations (packed) of these dependencies that may be on a cycle."""
    if not len(found.earlier):
        return np.zeros(0, np.int64)
    rows = np.concatenate([found.earlier, found.later])
    operations, first, number = np.unique(log.operation(rows), return_index=True, return_inverse=True)
    earlier, later = np.split(number, 2)
    kept = trim(earlier, later, began(log, rows[first]), ended(log, rows[first]))
    suspect: Numbers = operations[kept]
    return suspect

"""What a kernel hands back: how many anomalies, of which log partition each, and how to describe one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from checkers.columns.ids import Numbers

Finding = dict[str, Any]


@dataclass(kw_only=True)
class Found:
    """Anomalies of one kind. Descriptions are made only for those that are shown.

    ``segment`` has one entry an anomaly; ``describe(i)`` makes the i-th finding; ``rank`` puts the most telling first
    (small is first), by default as they stand; ``weight`` is how much each adds to the count, by default 1.
    """

    segment: Numbers
    describe: Callable[[int], Finding]
    rank: Numbers | None = None
    weight: Numbers | None = None

    def counts(self, segment_history: Numbers, histories: int) -> Numbers:
        """How many anomalies each history has."""
        owner = segment_history[self.segment]
        weights = np.ones(len(owner)) if self.weight is None else self.weight
        return np.bincount(owner, weights=weights, minlength=histories).astype(np.int64)

    def shown(self, segment_history: Numbers, limit: int | None) -> dict[int, list[Finding]]:
        """Findings by history, at most ``limit`` of each, the most telling first."""
        owner = segment_history[self.segment]
        rank = np.zeros(len(owner), np.int64) if self.rank is None else self.rank
        order = np.lexsort((rank, owner))
        shown: dict[int, list[Finding]] = {}
        for place in order.tolist():
            mine = shown.setdefault(int(owner[place]), [])
            if limit is None or len(mine) < limit:
                mine.append(self.describe(place))
        return shown

"""Readers of a cell: how long log partitions kept them waiting, and their lag, over all of its runs."""

from __future__ import annotations

import msgspec

from checkers.measures.lag import ConsumerLag
from checkers.verdicts.verdict import Verdict


class CellReaders(msgspec.Struct, kw_only=True):
    """The worst of all runs, in microseconds, as :class:`checkers.measures.read_availability.ReadAvailability` has it.

    ``longest_gap_us`` is None where no run tells; ``by_leader`` and ``by_group`` are the longest by broker, -1 for an
    unknown one, and by consumer group. ``lag`` has the lags of their polls.
    """

    longest_gap_us: int | None = None
    by_leader: dict[int, int] = {}
    by_group: dict[str, int] = {}
    lag: ConsumerLag = msgspec.field(default_factory=ConsumerLag)

    def add(self, verdict: Verdict) -> None:
        """Take one run into account."""
        self.lag.add(verdict.consumer_lag)
        for partition in verdict.read_availability.values():
            self.longest_gap_us = max(self.longest_gap_us or 0, partition.longest_gap_us)
            for leader, gap_us in partition.by_leader.items():
                self.by_leader[leader] = max(gap_us, self.by_leader.get(leader, 0))
            for group, gap_us in partition.by_group.items():
                self.by_group[group] = max(gap_us, self.by_group.get(group, 0))

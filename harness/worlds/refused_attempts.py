"""Counts the attempts to append that leaders refused for want of in-sync replicas, from what brokers say of them.

Clients do not count them: a client repeats a refused attempt until its time is over, and its libraries' counters mix
these refusals with every other error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.observations import NotEnoughReplicas
from workloads import LogPartition, RefusedAttempts


class RefusalCounter:
    """Counts facts about these log partitions."""

    def __init__(self, partitions: Iterable[LogPartition]) -> None:
        self._partitions = frozenset(map(str, partitions))
        self._counts: Counter[NotEnoughReplicas] = Counter()

    def add(self, *facts: NotEnoughReplicas) -> None:
        """Count these, but not those of internal topics."""
        self._counts.update(fact for fact in facts if fact.partition in self._partitions)

    def attempts(self) -> RefusedAttempts:
        """All attempts so far."""
        return RefusedAttempts(
            before_append=self._by_partition(appended=False), after_append=self._by_partition(appended=True)
        )

    def _by_partition(self, *, appended: bool) -> dict[str, int]:
        counts = ((fact.partition, count) for fact, count in self._counts.items() if fact.appended is appended)
        return dict(sorted(counts))

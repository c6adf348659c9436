"""Counts the attempts that leaders refused for want of in-sync replicas, and how often these changed, as brokers say.

Clients do not count them: a client repeats a refused attempt until its time is over, and its libraries' counters mix
these refusals with every other error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from harness.ground.observations import Brokers, IsrChanged, NotEnoughReplicas
from workloads import LogPartition, RefusedAttempts


class RefusalCounter:
    """Counts facts about these log partitions."""

    def __init__(self, partitions: Iterable[LogPartition]) -> None:
        self._partitions = frozenset(map(str, partitions))
        self._counts: Counter[NotEnoughReplicas] = Counter()
        self._isrs: dict[str, dict[int, Brokers]] = {}

    def add(self, *facts: NotEnoughReplicas | IsrChanged) -> None:
        """Count these, but not those of internal topics.

        A change that leader and controller both tell of has one partition epoch.
        """
        for fact in facts:
            if fact.partition not in self._partitions:
                continue
            if isinstance(fact, NotEnoughReplicas):
                self._counts[fact] += 1
            elif fact.isr is not None and fact.partition_epoch is not None:
                self._isrs.setdefault(fact.partition, {})[fact.partition_epoch] = tuple(sorted(fact.isr))

    def attempts(self) -> RefusedAttempts:
        """All attempts so far."""
        return RefusedAttempts(
            before_append=self._by_partition(appended=False),
            after_append=self._by_partition(appended=True),
            isr_changes={partition: _changes(isrs) for partition, isrs in sorted(self._isrs.items())},
        )

    def _by_partition(self, *, appended: bool) -> dict[str, int]:
        counts = ((fact.partition, count) for fact, count in self._counts.items() if fact.appended is appended)
        return dict(sorted(counts))


def _changes(isrs: Mapping[int, Brokers]) -> int:
    """Count the sets that differ from the one before; that of a topic's creation, partition epoch 0, is no change."""
    told = [isr for _, isr in sorted(isrs.items())]
    return (0 not in isrs) + sum(before != after for before, after in pairwise(told))

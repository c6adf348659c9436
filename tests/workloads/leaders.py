"""Leaders that go where they are told, but for those of brokers that cannot lead."""

from __future__ import annotations

from collections.abc import Collection


class ObedientLeaders:
    def __init__(self, brokers: tuple[int, ...] = (), cannot: Collection[int] = ()) -> None:
        self.brokers = brokers
        self.moved: list[tuple[tuple[str, ...], int]] = []
        self._cannot = cannot

    def lead(self, partitions: Collection[str], broker: int) -> frozenset[str]:
        self.moved.append((tuple(partitions), broker))
        return frozenset() if broker in self._cannot else frozenset(partitions)

    def coordinate(self, broker: int) -> bool:
        return broker not in self._cannot

"""The leaders of the cluster under test, which closings of a workload move (:class:`workloads.driver.Leaders`)."""

from __future__ import annotations

from collections.abc import Collection

from harness.broker.core.types import OFFSETS_TOPIC
from nemesis.cluster import Target
from workloads import LogPartition


class TargetLeaders:
    """The leaders of a target; where no leader can be moved, no broker can be made one."""

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that can be made leaders."""
        return () if self._target.leadership is None else self._target.view().brokers

    def lead(self, partitions: Collection[str], broker: int) -> frozenset[str]:
        """Make ``broker`` the leader of these log partitions; those that it leads then."""
        states = self._target.view().partitions
        for name in partitions:
            if name in states and states[name].leader != broker:
                self._led(name, broker)
        states = self._target.view().partitions
        return frozenset(name for name in partitions if name in states and states[name].leader == broker)

    def coordinate(self, broker: int) -> bool:
        """Make ``broker`` the leader of each log of groups; True if it leads one then."""
        names = [name for name in self._target.view().internal if LogPartition.named(name).topic == OFFSETS_TOPIC]
        led = [self._led(name, broker) for name in names]  # all of them
        return any(led)

    def _led(self, name: str, broker: int) -> bool:
        """Move the leader of one log partition; True if ``broker`` leads it then."""
        leadership = self._target.leadership
        return leadership is not None and leadership.move_leader(name, broker).get("leader") == broker

"""The group coordinators of one broker: one for each log partition of :data:`OFFSETS_TOPIC` that it has led."""

from __future__ import annotations

from collections.abc import Callable

from harness.broker.core import messages
from harness.broker.core.effects import Context
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group
from harness.broker.core.types import OFFSETS_TOPIC, ErrorCode, Outside, TopicPartition, serving_partition


class GroupCoordinators:
    """Hands requests to the coordinator of their group. ``make`` is the class of a coordinator."""

    _context: Context
    _write: Outside[Callable[[messages.Produce], None]]
    _make: Outside[type[GroupCoordinator]]
    _by_log: dict[TopicPartition, GroupCoordinator]

    def __init__(
        self, context: Context, write: Callable[[messages.Produce], None], make: type[GroupCoordinator]
    ) -> None:
        self._context = context
        self._write = write
        self._make = make
        self._by_log = {}

    def on(self, log: TopicPartition) -> GroupCoordinator:
        """The coordinator of the groups of this log partition."""
        made = self._by_log.get(log)
        if made is None:
            made = self._by_log[log] = self._make(self._context, self._write, log)
        return made

    def of(self, group: str) -> GroupCoordinator:
        """The coordinator of this group."""
        state = self._context.image.topics.get(OFFSETS_TOPIC)
        partitions = 1 if state is None else len(state.partitions)
        return self.on(TopicPartition(OFFSETS_TOPIC, serving_partition(group, partitions)))

    def ready(self) -> list[GroupCoordinator]:
        """The coordinators that coordinate now."""
        return [each for each in self._by_log.values() if each.ready() is not None]

    def ask(self, message: messages.GroupRequest) -> None:
        """Have a request answered."""
        self.of(message.group).ask(message)

    def described(self) -> tuple[ErrorCode, dict[str, Group]]:
        """All groups that this broker knows as their coordinator; none while it reads one of its logs."""
        all_groups: dict[str, Group] = {}
        for coordinator in self._by_log.values():
            error, groups = coordinator.described()
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return error, {}
            all_groups |= groups
        return ErrorCode.NONE, all_groups

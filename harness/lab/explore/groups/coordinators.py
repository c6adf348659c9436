"""The group coordinator as a node of a search, and what rules see of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from typing_extensions import override

from harness.broker.core.coordinated import commits_in, groups_loaded
from harness.broker.core.effects import Deliver
from harness.broker.core.groups.consumer import GroupRecord
from harness.broker.core.groups.group import UnderWay
from harness.broker.core.invariants import Broken
from harness.broker.core.messages import NOT_COMMITTED, Message
from harness.broker.core.types import NONE, TopicPartition
from harness.lab.explore.coordinator_node import TOPIC, CoordinatorNode
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.groups.members import GROUP, MemberNode
from harness.lab.explore.normal_form import group_of, let_member_be_silent, settle_groups


class GroupCopy(NamedTuple):
    """The coordinator as rules see it: what is committed of the group, and of a classic one its generation.

    ``remembered`` has the offset of each log partition, NONE without one; the coordinator knows nothing before it has
    read its log. ``clients`` wait for an answer.
    """

    leader_epoch: int
    record: GroupRecord | None
    remembered: tuple[int, ...]
    clients: tuple[int, ...]
    generation: int = NONE
    names: tuple[str, ...] = ()

    def holders(self, partition: int, clients: Sequence[MemberNode]) -> list[str]:
        """The members that may read this partition, or still have to give it up."""
        if self.generation != NONE:
            present = [each for each in clients if each.name in self.names and each.epoch == self.generation]
            return [each.name for each in present if partition in each.owns]
        members = {} if self.record is None else self.record.members
        return [name for name, member in members.items() if TopicPartition(TOPIC, partition) in member.held]


class GroupCoordinatorNode(CoordinatorNode):
    """The coordinator of groups."""

    @override
    def _settle_coordinator(self) -> dict[int, int]:
        return settle_groups(self.process)

    @override
    def _after_us(self, event: NodeEvent) -> int:
        """No time passes; a member may have been silent for a session."""
        if event.kind == "fence":
            let_member_be_silent(self.process, GROUP, f"m{event.peer}")
        return 0

    @override
    def _under_way(self) -> dict[str, UnderWay | None] | None:
        coordinators = self.process.group_coordinators
        return {name: each.next for name, each in coordinators[0].described()[1].items()} if coordinators else None

    @override
    def _broken(self, before: Any, message: Message | None, sent: Sequence[Deliver]) -> Iterator[Broken | None]:
        for coordinator in self.process.group_coordinators:
            if before is None:
                yield from groups_loaded(coordinator)
            for name, group in coordinator.described()[1].items():
                if group.next is not (before or {}).get(name):
                    yield from commits_in(name, group)

    @override
    def part(self) -> GroupCopy:
        group = group_of(self.process, GROUP)
        if group is None:
            return GroupCopy(self.leader_epoch, None, (), ())
        partitions = len(self.process.image.topics[TOPIC].partitions)
        remembered = tuple(
            group.offsets.of(TopicPartition(TOPIC, number), NOT_COMMITTED).offset for number in range(partitions)
        )
        clients = {waiting.client for waiting in group.waiting}
        if group.next is not None and group.next.answer is not None:
            clients.add(group.next.client)
        if group.classic is None:
            return GroupCopy(self.leader_epoch, group.record, remembered, tuple(sorted(clients)))
        calls = [call for member in group.classic.members.values() for call in (member.join, member.sync)]
        clients |= {call.client for call in calls if call is not None}
        classic = (group.classic.generation, tuple(group.classic.members))
        return GroupCopy(self.leader_epoch, group.record, remembered, tuple(sorted(clients)), *classic)

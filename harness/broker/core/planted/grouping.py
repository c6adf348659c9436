"""Wrong forms of groups: of who may commit, of what a member may get, and of what a new coordinator knows."""

from __future__ import annotations

from harness.broker.core.groups.classic import ClassicRecord
from harness.broker.core.groups.consumer import GroupRecord
from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group
from harness.broker.core.messages import NOT_COMMITTED, CommittedOffset, GroupRequest, RecordBatch
from harness.broker.core.types import NO_ERROR, ErrorCode, TopicPartition


class TakesAnyCommit(GroupCoordinator):
    """A commit is taken whatever its member and its epoch (rule 44): one that was given up takes the group back."""

    def _commit_error(self, group: Group, message: GroupRequest) -> ErrorCode:  # noqa: ARG002
        return NO_ERROR


class AssignsUnrevoked(GroupCoordinator):
    """A member gets its target at once, while another one still has log partitions of it (rule 43)."""

    def _taken(self, record: GroupRecord, name: str) -> set[TopicPartition]:  # noqa: ARG002
        return set()


class LoadsFirstCommits(GroupCoordinator):
    """A new coordinator knows the first commit of each log partition, not the last one (rule 45)."""

    def _load_offset(
        self, group: Group, partition: TopicPartition, offset: CommittedOffset, batch: RecordBatch
    ) -> None:
        if group.offsets.of(partition, NOT_COMMITTED) == NOT_COMMITTED:
            super()._load_offset(group, partition, offset, batch)


class LoadsNoMembers(GroupCoordinator):
    """A new coordinator knows no member of a group, and counts its epochs from the start (rule 45)."""

    def _load_members(self, group: Group, record: GroupRecord | ClassicRecord) -> None:
        """Pass the record of the members over."""

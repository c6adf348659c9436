"""Wrong forms of offsets in transactions (rule 46): of when they count, who commits them, and who waits for them."""

from __future__ import annotations

from collections.abc import Iterable

from harness.broker.core.groups.coordinator import GroupCoordinator
from harness.broker.core.groups.group import Group
from harness.broker.core.messages import CommittedOffset, RecordBatch, TxnOffsetCommit
from harness.broker.core.replica import Replica
from harness.broker.core.types import NO_ERROR, NONE, OFFSETS_TOPIC, ErrorCode, TopicPartition


class CountsPendingOffsets(GroupCoordinator):
    """Offsets of a transaction count once they are on the log, and not with its marker (rule 46)."""

    def _keep(
        self,
        group: Group,
        offsets: dict[TopicPartition, CommittedOffset],
        log_offset: int,
        producer_id: int,  # noqa: ARG002
    ) -> None:
        super()._keep(group, offsets, log_offset, NONE)


class CountsAbortedOffsets(GroupCoordinator):
    """A marker that aborts a transaction lets its offsets count, as one that commits it does (rule 46)."""

    def _decide(self, producer_id: int, *, commit: bool) -> None:  # noqa: ARG002
        super()._decide(producer_id, commit=True)


class KeepsPendingOffsets(GroupCoordinator):
    """A marker that aborts a transaction leaves its offsets pending (rule 46): a later one lets them count."""

    def _decide(self, producer_id: int, *, commit: bool) -> None:
        if commit:
            super()._decide(producer_id, commit=commit)


class TakesOffsetsOfAnyMember(GroupCoordinator):
    """Offsets are taken with a transaction whatever the member and its epoch (rule 46): two members do a record."""

    def _transactional_error(self, group: Group, message: TxnOffsetCommit) -> ErrorCode:  # noqa: ARG002
        return NO_ERROR


class AnswersUnstableOffsets(GroupCoordinator):
    """A question for stable offsets is answered with what the group remembers while others are pending (rule 46)."""

    def _unstable(self, group: Group, asked: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:  # noqa: ARG002
        return ()


class TakesOffsetsOfAnyEpoch(Replica):
    """Offsets of a transaction are taken whatever the epoch of their producer (rule 46): of one that has ended, too.

    Such offsets are pending until the next transaction of the producer ends, and count with it.
    """

    def _judge(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        offsets = self.partition.topic == OFFSETS_TOPIC and batch.transactional and batch.marker is None
        return (NO_ERROR, None) if offsets else super()._judge(batch)

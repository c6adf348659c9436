"""Wrong followers: how they truncate, and what they keep."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from harness.broker.core.effects import Context
from harness.broker.core.fetcher import Fetcher, Followed, FollowState
from harness.broker.core.messages import EpochEnd, FetchPartition, RecordBatch
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, ErrorCode, NodeId, TopicPartition

#: The value of flush.messages with which no record is flushed.
NEVER: Final = 2**63 - 1


class TruncatesToHighWatermark(Replica):
    """A replica that begins to follow cuts its log at its own high watermark, which lags (rules 16, 17): S14, S39."""

    def _follow(self) -> None:
        super()._follow()
        if self.leader != NONE:
            self.truncate_to(self.high_watermark)


class TruncatesOneTooMany(Replica):
    """A follower whose log departs from the leader's drops the last common record too (rule 17)."""

    def truncate_to_epoch_end(self, end: EpochEnd) -> bool:
        return super().truncate_to_epoch_end(EpochEnd(end.leader_epoch, max(end.end_offset - 1, NONE)))


class FlushesOnLeaderOnly(Replica):
    """Followers answer for records that they have not flushed (rule 24): S11 and S36 with flush.messages=1."""

    def replicate(self, batches: tuple[RecordBatch, ...], leader_high_watermark: int) -> None:
        flush_messages, self._flush_messages = self._flush_messages, NEVER
        super().replicate(batches, leader_high_watermark)
        self._flush_messages = flush_messages


class ComparesWithNewLeaderOnly(Fetcher):
    """Logs are compared when another broker leads, and not in a new epoch of the same one (rule 19, KAFKA-7164): S17.

    Only where a question goes before the fetches (truncation kip-101 to kip-320): later, each fetch compares.
    """

    _left: dict[TopicPartition, int]

    def __init__(self, leader: NodeId, context: Context) -> None:
        super().__init__(leader, context)
        self._left = {}

    def unfollow(self, partition: TopicPartition) -> None:
        if partition in self._followed and self._followed[partition].step == FollowState.FETCH:
            self._left[partition] = self._context.now_us
        super().unfollow(partition)

    def follow(self, replica: Replica) -> None:
        super().follow(replica)
        if self._left.pop(replica.partition, NONE) == self._context.now_us:  # Left and followed again in one step.
            self._followed[replica.partition].go(FollowState.FETCH)


class TakesHighWatermarkBeforeTruncation(Fetcher):
    """A follower takes over the leader's high watermark, and truncates a little later (rule 8, KAFKA-14704).

    Meanwhile its high watermark covers records that were not committed, and consumers near it read them. In Kafka other
    threads read between the two; a step of this core has no between, so the truncation comes with the next fetch.
    """

    _late: dict[TopicPartition, tuple[int, EpochEnd]]

    def __init__(self, leader: NodeId, context: Context) -> None:
        super().__init__(leader, context)
        self._late = {}

    def _on_diverging(self, followed: Followed, end: EpochEnd, leader_high_watermark: int) -> None:
        replica = followed.replica
        replica.replicate((), leader_high_watermark)
        self._late[replica.partition] = replica.leader_epoch, end
        followed.go(FollowState.FETCH, self._backoff_us())

    def _request(self, replica: Replica) -> FetchPartition:
        leader_epoch, end = self._late.pop(replica.partition, (NONE, None))
        if end is not None and leader_epoch == replica.leader_epoch:
            replica.truncate_to_epoch_end(end)
        return super()._request(replica)


class RetriesWithoutEpoch(Fetcher):
    """A follower whose fetch is fenced does not wait for the controller, but asks again without its epoch (rule 17)."""

    _fenced: dict[TopicPartition, int]

    def __init__(self, leader: NodeId, context: Context) -> None:
        super().__init__(leader, context)
        self._fenced = {}

    def _on_error(self, followed: Followed, error: ErrorCode) -> None:
        if error != ErrorCode.FENCED_LEADER_EPOCH:
            super()._on_error(followed, error)
            return
        self._fenced[followed.replica.partition] = followed.replica.leader_epoch
        followed.go(FollowState.FETCH, self._backoff_us())

    def _request(self, replica: Replica) -> FetchPartition:
        request = super()._request(replica)
        fenced = self._fenced.get(replica.partition) == replica.leader_epoch
        return replace(request, current_leader_epoch=NONE) if fenced else request

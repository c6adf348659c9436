"""Wrong leaders: when a leader appends, commits, answers, and what it remembers of producers and followers."""

from __future__ import annotations

from harness.broker.core.effects import Context
from harness.broker.core.follower import Follower
from harness.broker.core.log import Log
from harness.broker.core.messages import RecordBatch
from harness.broker.core.producers import Producers
from harness.broker.core.replica import Appended, Replica
from harness.broker.core.types import ErrorCode, NodeId, TopicPartition


class AppendsBelowMinIsr(Replica):
    """Min.insync.replicas is not looked at before the append (rule 3); the look after it remains (rule 4): S06."""

    def append(self, batch: RecordBatch, acks: int) -> Appended:  # noqa: ARG002
        return super().append(batch, acks=1)


class RefusesAfterAppend(Replica):
    """A record that is on the log of too small an ISR is refused as if it had not been appended (rule 4): S21.

    Its client may say for certain that it failed. The answer is the broker's, so that every client takes it so.
    """

    def commits(self) -> ErrorCode:
        error = super().commits()
        return ErrorCode.NOT_ENOUGH_REPLICAS if error == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND else error


class CommitsLargestLogEnd(Replica):
    """The high watermark is the largest log end of the ISR instead of the smallest (rule 7).

    What only the leader has is acknowledged and read: S01.
    """

    def append(self, batch: RecordBatch, acks: int) -> Appended:
        appended = super().append(batch, acks)
        self.advance_high_watermark()
        return appended

    def advance_high_watermark(self) -> bool:
        moved = self.leading and self.log.end_offset > self.high_watermark
        if moved:
            self.high_watermark = self.log.end_offset
        return moved


class CommitsWithTwo(Replica):
    """The high watermark waits for the leader and one follower, however many are in sync (rule 7)."""

    def advance_high_watermark(self) -> bool:
        ends = [follower.end_offset for follower in self.followers.values() if follower.node in self.isr]
        offset = min(self.log.end_offset, max(ends, default=self.log.end_offset))
        moved = self.leading and len(self.isr) >= self.min_isr and offset > self.high_watermark
        if moved:
            self.high_watermark = offset
        return moved


class ForgetsEpochStart(Replica):
    """A new leader remembers where its epoch starts only once it writes something in it (rule 19, KAFKA-7415)."""

    def _remember_epoch(self, start_offset: int) -> None:
        pass


class KeepsFollowerProgress(Replica):
    """A broker that leads again counts what its followers had when it led before, in whatever epoch (rule 6)."""

    _earlier: dict[NodeId, Follower]

    def __init__(self, partition: TopicPartition, log: Log, context: Context) -> None:
        super().__init__(partition, log, context)
        self._earlier = {}

    def _follow(self) -> None:
        self._earlier = self.followers or self._earlier
        super()._follow()

    def _known_followers(self) -> dict[NodeId, Follower]:
        return self.followers or self._earlier


class RemembersOneBatch(Replica):
    """Only the last batch of an idempotent producer is known again, instead of five (rule 21): S22 with five in flight.

    An earlier one that is sent again is out of order.
    """

    def _judge(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        error, duplicate = super()._judge(batch)
        if duplicate is not None and any(
            other.producer_id == batch.producer_id and other.base_offset > duplicate.base_offset
            for other in self.log.producers.batches()
        ):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None
        return error, duplicate


class ForgetsProducersOnElection(Replica):
    """A new leader knows no producer that wrote to the one before (rule 21): S22, and the leader dies."""

    _since_election: Producers

    def __init__(self, partition: TopicPartition, log: Log, context: Context) -> None:
        super().__init__(partition, log, context)
        self._since_election = Producers()

    def _lead(self) -> None:
        super()._lead()
        self._since_election = Producers()

    def _store(self, batch: RecordBatch) -> None:
        super()._store(batch)
        self._since_election.record(batch)

    def _judge(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        return self._since_election.validate(batch)

"""Wrong answers of a leader to its clients and followers."""

from __future__ import annotations

from msgspec.structs import replace

from harness.broker.core.messages import Fetch, FetchedPartition, FetchPartition
from harness.broker.core.replica import Replica
from harness.broker.core.request_handler import ParkedProduce, RequestHandler
from harness.broker.core.types import NONE, OFFSETS_TOPIC, ErrorCode


class AcknowledgesAfterAppend(RequestHandler):
    """acks=all is answered as soon as the leader has the record (rule 2). The story of S01 loses it."""

    def _answer_or_park(self, produce: ParkedProduce, replica: Replica, timeout_ms: int) -> None:  # noqa: ARG002
        self._acknowledge(produce, replica, ErrorCode.NONE)


class CommitsOffsetsAfterAppend(RequestHandler):
    """A commit of a consumer group's offsets is answered as soon as its coordinator has the record (KAFKA-20634)."""

    def _answer_or_park(self, produce: ParkedProduce, replica: Replica, timeout_ms: int) -> None:
        if produce.partition.topic == OFFSETS_TOPIC:
            self._acknowledge(produce, replica, ErrorCode.NONE)
        else:
            super()._answer_or_park(produce, replica, timeout_ms)


class AcceptsFetchesOfAnyEpoch(RequestHandler):
    """A leader answers followers that missed an election as if they had not (rules 6, 17, KIP-320): S17."""

    def _look(self, wanted: FetchPartition, message: Fetch, replica: Replica | None) -> FetchedPartition:
        return super()._look(replace(wanted, current_leader_epoch=NONE), message, replica)


class CountsDivergingFetches(RequestHandler):
    """A fetch from a log that departs from the leader's counts as progress (rule 6, KAFKA-13141)."""

    def _counts(self, answer: FetchedPartition) -> bool:
        return not answer.error

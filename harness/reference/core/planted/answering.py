"""Wrong answers of a leader to its clients and followers, and a disk that is read again wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from harness.reference.core.controller import Controller
from harness.reference.core.log import MemoryLog
from harness.reference.core.messages import Fetch, FetchedPartition, FetchPartition, RecordBatch
from harness.reference.core.replica import Replica
from harness.reference.core.request_handler import ParkedProduce, RequestHandler
from harness.reference.core.types import NONE, BrokerConfig, ErrorCode, Image

#: Kafka's name of the topic in which coordinators keep the offsets that consumer groups commit.
OFFSETS_TOPIC: Final = "__consumer_offsets"


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


class SkipsBadBatches(MemoryLog):
    """Recovery leaves out a bad batch and keeps what is behind it, instead of ending the log there (rule 25): S35."""

    def recover(self) -> None:
        while self._bad(self.batches[-1:]):
            self.truncate_to(self.batches[-1].base_offset)
        bad = self._bad(self.batches)
        self.batches[:] = [batch for batch in self.batches if batch not in bad]
        self._bases[:] = [batch.base_offset for batch in self.batches]
        self._closed = False

    def _bad(self, batches: Sequence[RecordBatch]) -> list[RecordBatch]:
        return [batch for batch in batches if not batch.intact and self.reads_again(batch.base_offset)]


class CheckpointsLogEnd(MemoryLog):
    """The log end is written down as the high watermark (rule 25): after a restart it covers what nobody committed."""

    def checkpoint_high_watermark(self, offset: int) -> None:  # noqa: ARG002
        super().checkpoint_high_watermark(self.end_offset)


class ForgetsProducerIds(Controller):
    """A controller that starts again hands out producer ids from the first one on (rule 21)."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Image | None = None,
        next_producer_id: int = 0,  # noqa: ARG002
        *,
        observe: bool = True,
    ) -> None:
        super().__init__(config, image, observe=observe)

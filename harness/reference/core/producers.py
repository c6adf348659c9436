"""Producer state: which batches of an idempotent producer are known (rule 21).

Each replica keeps it from the batches themselves, leader and follower alike, so that a new leader recognises a retry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from harness.reference.core.messages import RecordBatch
from harness.reference.core.types import NONE, ErrorCode

#: Batches remembered per producer, and thus the largest useful max.in.flight.requests.per.connection (KIP-98).
BATCHES_KEPT = 5
#: Sequences wrap to 0 after this one.
LAST_SEQUENCE = 2**31 - 1
#: Producers remembered per partition; the one silent for longest is forgotten (Kafka forgets after a day instead).
PRODUCERS_KEPT = 10_000


class KnownBatch(NamedTuple):
    """One batch of a producer: its sequences (inclusive) and where it is."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    next_offset: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[KnownBatch] = deque(maxlen=BATCHES_KEPT)


def last_sequence(batch: RecordBatch) -> int:
    """The sequence of the batch's last record, wrapped."""
    return (batch.base_sequence + batch.count - 1) & LAST_SEQUENCE


class Producers:
    """The producers of one partition."""

    __slots__ = ("_producers",)

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def judge(self, batch: RecordBatch) -> tuple[ErrorCode, KnownBatch | None]:
        """May ``batch`` be appended? A duplicate is no error and comes with the batch that it repeats.

        An unknown producer may start with any sequence (KIP-360).
        """
        known = self._producers.get(batch.producer_id)
        if known is None:
            return ErrorCode.NONE, None
        if batch.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        if batch.producer_epoch > known.epoch:
            accepted = batch.base_sequence == 0
            return (ErrorCode.NONE if accepted else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), None
        last = last_sequence(batch)
        for earlier in known.batches:
            if earlier.first_sequence == batch.base_sequence and earlier.last_sequence == last:
                return ErrorCode.NONE, earlier
        if batch.base_sequence != (known.batches[-1].last_sequence + 1) & LAST_SEQUENCE:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None
        return ErrorCode.NONE, None

    def record(self, batch: RecordBatch) -> None:
        """Remember an appended batch; one without a producer id leaves no trace."""
        producer_id = batch.producer_id
        if producer_id == NONE:
            return
        known = self._producers.pop(producer_id, None)
        if known is None or known.epoch != batch.producer_epoch:
            known = _Producer(batch.producer_epoch)
        self._producers[producer_id] = known
        known.batches.append(
            KnownBatch(batch.base_sequence, last_sequence(batch), batch.base_offset, batch.next_offset)
        )
        if len(self._producers) > PRODUCERS_KEPT:
            del self._producers[next(iter(self._producers))]

    def rebuild(self, batches: Iterable[RecordBatch]) -> None:
        """Forget everything and learn it again from the log: at the start and after truncation."""
        self._producers.clear()
        for batch in batches:
            self.record(batch)

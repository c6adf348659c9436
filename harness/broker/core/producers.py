"""Producer state: which batches of an idempotent producer are known (rule 21).

It is part of the log, as in Kafka: each replica has it from the batches themselves, leader and follower alike, so that
a new leader recognises a retry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from harness.broker.core.messages import Marker, RecordBatch
from harness.broker.core.transactions import PartitionTransactions
from harness.broker.core.types import NO_ERROR, NONE, ErrorCode

#: Batches remembered per producer, and so the largest useful max.in.flight.requests.per.connection (KIP-98).
BATCHES_KEPT = 5
#: Sequences wrap to 0 after this one.
LAST_SEQUENCE = 2**31 - 1
#: Producers remembered per partition; the one silent for longest is forgotten (Kafka forgets after a day instead).
PRODUCERS_KEPT = 10_000


class KnownProducer(msgspec.Struct, frozen=True):
    """A producer as a log shows it (rule 50): the last that it wrote, and its open transaction.

    What is not known, or not there, is NONE: ``open_since`` without an open transaction, the time in virtual time.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_stamped_us: int
    coordinator_epoch: int
    open_since: int


class Producers:
    """The last batches of the producers of one partition, all of them of a producer's newest epoch.

    Only their headers are looked at, so a log on a disk records batches whose ``records`` are empty. The marker of a
    transaction is the first batch of an epoch that it raises. ``transactions`` are those of the same batches.
    """

    transactions: PartitionTransactions
    _kept: dict[int, deque[RecordBatch]]

    def __init__(self, batches: Iterable[RecordBatch] = ()) -> None:
        self.transactions = PartitionTransactions()
        self._kept = {}
        for batch in batches:
            self.record(batch)

    def validate(self, batch: RecordBatch) -> tuple[ErrorCode, RecordBatch | None]:
        """May ``batch`` be appended? A duplicate is no error and comes with the batch that it repeats.

        An unknown producer may start with any sequence (KIP-360), a new epoch of a known one with 0 only. What a
        coordinator writes for a producer has none.

        Errors: INVALID_PRODUCER_EPOCH, a newer instance of this producer has written (a zombie); and
        OUT_OF_ORDER_SEQUENCE_NUMBER, a batch is missing before this one or it repeats one that is not kept any more.
        Those of a marker: :meth:`validate_marker`.
        """
        if batch.marker is not None:
            return self.validate_marker(batch, batch.marker), None
        kept = self._kept.get(batch.producer_id)
        if kept is None:
            return NO_ERROR, None
        newest = kept[-1]
        if batch.producer_epoch < newest.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        if batch.base_sequence == NONE:
            return NO_ERROR, None
        expected = 0
        if batch.producer_epoch == newest.producer_epoch:
            for earlier in kept:
                if earlier.base_sequence == batch.base_sequence and earlier.count == batch.count:
                    return NO_ERROR, earlier
            expected = (newest.base_sequence + newest.count) & LAST_SEQUENCE
        return (NO_ERROR if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), None

    def validate_marker(self, batch: RecordBatch, marker: Marker) -> ErrorCode:
        """May this marker end the open transaction of its producer (rule 36)? Where none is open it changes nothing.

        Errors: TRANSACTION_COORDINATOR_FENCED, a later coordinator has written; and INVALID_PRODUCER_EPOCH, a later
        transaction than the one that it ends has begun. With version 1 the next one has the same epoch.
        """
        producer_id, epoch = batch.producer_id, batch.producer_epoch
        if marker.coordinator_epoch < self.transactions.coordinator_epoch(producer_id):
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        kept = self._kept.get(producer_id)
        if kept is None:
            return NO_ERROR
        newest = kept[-1].producer_epoch
        late = marker.transaction_version > 1 and epoch == newest and producer_id in self.transactions.open
        return ErrorCode.INVALID_PRODUCER_EPOCH if late or epoch < newest else NO_ERROR

    def last_sequence(self, producer_id: int) -> int:
        """The last sequence number that is known of a producer; -1 of one that is not known, or has written none."""
        kept = self._kept.get(producer_id)
        if not kept or kept[-1].base_sequence == NONE:
            return NONE
        return (kept[-1].base_sequence + kept[-1].count - 1) & LAST_SEQUENCE

    def described(self) -> Iterator[KnownProducer]:
        """All producers, the one that was silent for longest first."""
        for producer_id, kept in self._kept.items():
            yield KnownProducer(
                producer_id,
                kept[-1].producer_epoch,
                self.last_sequence(producer_id),
                kept[-1].stamped_us,
                self.transactions.coordinator_epoch(producer_id),
                self.transactions.open.get(producer_id, NONE),
            )

    def ends_with(self, batch: RecordBatch) -> bool:
        """It is the newest batch that is known of its producer."""
        kept = self._kept.get(batch.producer_id)
        return kept is not None and kept[-1].base_offset == batch.base_offset

    def record(self, batch: RecordBatch) -> None:
        """Remember an appended batch; one without a producer id leaves no trace."""
        producer_id = batch.producer_id
        if producer_id == NONE:
            return
        kept = self._kept.pop(producer_id, None)
        goes_on = kept is not None and kept[-1].producer_epoch == batch.producer_epoch
        if kept is None or not goes_on:
            kept = deque(maxlen=BATCHES_KEPT)
        self._kept[producer_id] = kept
        if batch.transactional:
            self.transactions.record(batch)
        if batch.marker is None or not goes_on:  # A marker of the epoch that goes on has no place among its sequences.
            kept.append(batch)
        if len(self._kept) > PRODUCERS_KEPT:
            del self._kept[next(iter(self._kept))]

    def keep_last_batches(self) -> None:
        """Forget all but the newest batch of each producer, as a restarted Kafka broker has (ProducerStateManager)."""
        for kept in self._kept.values():
            while len(kept) > 1:
                kept.popleft()

    def batches(self) -> list[RecordBatch]:
        """Every remembered batch in log order: what this state can be made from again."""
        return sorted((b for kept in self._kept.values() for b in kept), key=lambda batch: batch.base_offset)

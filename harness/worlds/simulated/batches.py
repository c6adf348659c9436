"""The state of a producer for one log partition: records that wait, batches under way, and their sequence numbers.
Sans-IO.

Sequence numbers follow the Java client's ``TransactionManager``: a batch gets its number when it is first sent and
keeps it over retries; a retried batch is sent only when every batch before it has ended, so after a failure one batch
at a time; a batch that was given up without a known end leaves the sequence *unresolved*: nothing new is sent until
everything under way has ended, and then, unless the missing number was acknowledged after all, the producer epoch is
bumped and numbers start at 0.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from harness.broker.core.messages import RecordBatch, content_of_record
from harness.broker.core.producers import BATCHES_KEPT
from harness.broker.core.types import NONE, TopicPartition

#: Bytes that a record and a batch cost beyond key and payload (format v2).
RECORD_OVERHEAD_BYTES: Final = 8
BATCH_OVERHEAD_BYTES: Final = 61


class Waiting(NamedTuple):
    """A record that no batch holds yet; a ``tombstone`` deletes its key."""

    done: Any
    key: bytes
    payload: bytes
    created_us: int
    tombstone: bool = False

    @property
    def size_bytes(self) -> int:
        """The record, about as long as it is on the wire."""
        return RECORD_OVERHEAD_BYTES + len(self.key) + len(self.payload)

    @property
    def content(self) -> Any:
        """The record as a batch holds it."""
        return content_of_record(self.key, self.payload, tombstone=self.tombstone)


class Batch:
    """Records sent together. ``ambiguous``: an attempt may have been appended; ``ended``: its senders have outcomes.

    ``node`` is the broker that answered last; ``number`` counts the batches of its partition from 0.
    """

    __slots__ = (
        "ambiguous", "attempts", "created_us", "ended", "error", "node", "number", "producer_epoch", "producer_id",
        "ready_us", "records", "sequence", "size_bytes", "transactional",
    )  # fmt: skip

    def __init__(self, number: int, records: list[Waiting], size_bytes: int, *, transactional: bool = False) -> None:
        self.number = number
        self.transactional = transactional
        self.records = records
        self.size_bytes = size_bytes
        self.created_us = records[0].created_us
        self.ready_us = 0
        self.attempts = 0
        self.ambiguous = False
        self.ended = False
        self.error = ""
        self.node: int | None = None
        self.producer_id = NONE
        self.producer_epoch = NONE
        self.sequence = NONE

    def encoded(self) -> RecordBatch:
        """The batch as it travels; ``records`` are made by :func:`content_of_record`."""
        records = self.records
        return RecordBatch(
            len(records),
            self.size_bytes,
            tuple([record.content for record in records]),
            NONE,
            NONE,
            self.producer_id,
            self.producer_epoch,
            self.sequence,
            transactional=self.transactional,
        )


class Queue:
    """One log partition of one producer. ``producer_id`` is NONE for a producer without idempotence.

    All that a ``transactional`` one sends belongs to transactions.
    """

    __slots__ = (
        "_batch_bytes", "_batches", "_last_acknowledged", "_next_sequence", "in_flight", "partition", "producer_epoch",
        "producer_id", "restart_due", "retries", "transactional", "unresolved", "waiting",
    )  # fmt: skip

    def __init__(self, partition: TopicPartition, batch_bytes: int, *, transactional: bool = False) -> None:
        self.partition = partition
        self.transactional = transactional
        self._batch_bytes = batch_bytes
        self.waiting: deque[Waiting] = deque()
        self.retries: deque[Batch] = deque()
        self.in_flight: list[Batch] = []
        self.producer_id = NONE
        self.producer_epoch = NONE
        self.unresolved = False
        self.restart_due = False
        self._batches = 0
        self._next_sequence = 0
        self._last_acknowledged = -1

    def next_batch(self) -> Batch:
        """The records that wait, up to batch.size, numbered."""
        records = [self.waiting.popleft()]
        size_bytes = BATCH_OVERHEAD_BYTES + records[0].size_bytes
        while self.waiting and size_bytes + self.waiting[0].size_bytes <= self._batch_bytes:
            records.append(self.waiting.popleft())
            size_bytes += records[-1].size_bytes
        batch = Batch(self._batches, records, size_bytes, transactional=self.transactional)
        self._batches += 1
        if self.producer_id != NONE:
            self._number(batch)
        return batch

    def _number(self, batch: Batch) -> None:
        batch.producer_id = self.producer_id
        batch.producer_epoch = self.producer_epoch
        batch.sequence = self._next_sequence
        self._next_sequence += len(batch.records)

    def retry(self, batch: Batch, ready_us: int) -> None:
        """Send it again, not before ``ready_us``: in the order of sequence numbers, or first if no others wait."""
        batch.ready_us = ready_us
        position = 0
        if batch.sequence != NONE:
            while position < len(self.retries) and self.retries[position].sequence < batch.sequence:
                position += 1
        self.retries.insert(position, batch)

    def may_retry(self, batch: Batch) -> bool:
        """With sequence numbers, a retry waits until everything before it has ended."""
        return batch.sequence == NONE or all(other.sequence > batch.sequence for other in self.in_flight)

    def window_is_full(self) -> bool:
        """True while a new batch could make the log forget the oldest one under way before that is sent again.

        One connection never has more under way; two can, while the answers of an earlier leader are missing.
        """
        oldest = min(batch.number for batch in self.in_flight)
        return not self.retries and self._batches - oldest >= BATCHES_KEPT

    def acknowledged(self, batch: Batch) -> None:
        """The log took the batch."""
        if batch.sequence != NONE and batch.producer_epoch == self.producer_epoch:
            last = batch.sequence + len(batch.records) - 1
            self._last_acknowledged = max(self._last_acknowledged, last)

    def is_next(self, batch: Batch) -> bool:
        """True of the batch that the broker must be waiting for: it begins where the last acknowledged one ended."""
        return batch.sequence == self._last_acknowledged + 1

    def given_up(self, batch: Batch) -> None:
        """The batch ended without being acknowledged."""
        if batch.sequence != NONE:
            self.unresolved = True

    def must_restart(self) -> bool:
        """True if numbers have to start again before anything new is sent; to be asked when nothing is under way."""
        if self.unresolved and not self.retries:
            self.unresolved = False
            self.restart_due |= self._last_acknowledged + 1 != self._next_sequence
        return self.restart_due

    def restart(self, producer_id: int, producer_epoch: int) -> None:
        """Start at number 0 under this id and epoch, with what is to be retried first."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unresolved = self.restart_due = False
        self._next_sequence = 0
        self._last_acknowledged = -1
        for batch in self.retries:
            self._number(batch)

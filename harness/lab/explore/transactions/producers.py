"""A producer with a transactional id, as a value: what it knows, and the one request whose answer it waits for.

It does what every client library does. It asks the coordinator for its identity; adds a log partition to its
transaction before it writes there; asks for the end when all of its records have an answer. A record that it has given
up leaves its transaction to be aborted only; under transaction version 1 it asks for a new epoch after that (KIP-360).
A refusal by epoch is its end. Errors that tell it to come back make it ask again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.messages import CoordinatorAnswer, Message, RecordBatch
from harness.broker.core.types import ACKS_ALL, NONE, ErrorCode, TopicPartition
from harness.lab.explore.coordinator_node import TOPIC
from harness.lab.explore.events import NodeEvent

#: The transactional id of all producers.
ID: Final = "id"
TIMEOUT_MS: Final = 60_000
#: A produce request that waits has no limit here: its answer comes, or it is given up.
_FOR_EVER_MS: Final = 2**31

#: The purpose of the request that a producer waits for.
Purpose = Literal["", "init", "add", "write", "commit", "abort", "renew"]
#: The state of a transaction, as its producer knows it.
End = Literal["open", "committing", "committed", "aborting", "aborted"]

_COME_BACK: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
_ASKED: Final[dict[str, End]] = {"commit": "committing", "abort": "aborting"}
_ENDED: Final[dict[str, End]] = {"commit": "committed", "abort": "aborted"}


class PartWritten(msgspec.Struct, frozen=True):
    """One transaction of a producer: its number among all, its records in their order, and its end."""

    number: int
    records: tuple[int, ...] = ()
    end: End = "open"


class ProducerNode(msgspec.Struct, frozen=True):
    """A producer between two steps. ``number`` counts the producers of its transactional id.

    ``added`` are the partitions of the open transaction, ``sequences`` the next sequence number of each partition in
    the present epoch. It waits for the answer to a request with this ``purpose``, about a ``partition`` and a
    ``record`` where it writes; ``attempt`` counts how often that was sent again. ``failed``: the transaction can only
    be aborted. ``fenced``: it does nothing any more. ``renews``: it asks for a new epoch after a record that it has
    given up.
    """

    number: int
    producer_id: int = NONE
    producer_epoch: int = NONE
    transactions: tuple[PartWritten, ...] = ()
    added: tuple[int, ...] = ()
    sequences: tuple[int, ...] = ()
    purpose: Purpose = ""
    partition: int = NONE
    record: int = NONE
    attempt: int = 0
    failed: bool = False
    fenced: bool = False
    renews: bool = False

    @property
    def waits(self) -> bool:
        """It waits for an answer."""
        return bool(self.purpose)

    @property
    def without_answer(self) -> tuple[str, ...]:
        """The events that may happen to it when no answer comes."""
        return ("again", "give-up") if self.purpose == "write" else ("again",)

    @property
    def is_open(self) -> bool:
        """A transaction has begun, and its end was not asked for."""
        return bool(self.transactions) and self.transactions[-1].end == "open"

    @property
    def used(self) -> int:
        """The number of partitions that the open transaction has written to."""
        return len(self.added) if self.is_open else 0

    def offers(self, partitions: int, writes: int) -> Iterator[NodeEvent]:
        """The events that it may begin now, whatever the scope limits.

        The first record of a transaction goes to the first partition, and any other one to a partition that is used or
        to the next: partitions differ in nothing else.
        """
        if self.fenced or self.purpose:
            return
        if self.producer_id == NONE:
            yield NodeEvent("init")
            return
        records = len(self.transactions[-1].records) if self.is_open else 0
        if records < writes and not self.failed:
            yield from (NodeEvent("write", partition) for partition in range(min(self.used + 1, partitions)))
        if records and not self.failed:
            yield NodeEvent("commit")
        if records:
            yield NodeEvent("abort")

    def act(self, event: NodeEvent) -> ProducerNode:
        """Begin what was offered; ``event.number`` is that of a transaction that begins with a write."""
        if event.kind == "write":
            return self._write(event.peer, event.number)
        if event.kind == "give-up":
            return replace(self.idle(), failed=True)
        if event.kind == "again":
            return replace(self, attempt=self.attempt + 1)
        purpose: Purpose = event.kind  # type: ignore[assignment]
        asked = self if purpose == "init" else self.with_end(_ASKED[purpose])
        return replace(asked, purpose=purpose, attempt=0)

    def _write(self, partition: int, number: int) -> ProducerNode:
        begun = (
            self if self.is_open else replace(self, transactions=(*self.transactions, PartWritten(number)), added=())
        )
        last = begun.transactions[-1]
        record = record_of(last.number, len(last.records))
        last = replace(last, records=(*last.records, record))
        purpose: Purpose = "write" if partition in begun.added else "add"
        transactions = (*begun.transactions[:-1], last)
        return replace(begun, transactions=transactions, purpose=purpose, partition=partition, record=record, attempt=0)

    def with_end(self, end: End) -> ProducerNode:
        """The producer when its last transaction has this end."""
        last = replace(self.transactions[-1], end=end)
        return replace(self, transactions=(*self.transactions[:-1], last))

    # --- requests ----------------------------------------------------------------------------------------------------

    def request(self) -> Message | None:
        """The request that it waits for; it carries the attempt as its correlation."""
        own = (self.producer_id, self.producer_epoch)
        partition = TopicPartition(TOPIC, self.partition)
        if self.purpose == "write":
            sequence = self._next_sequence(self.partition)
            batch = RecordBatch(1, 1, self.record, NONE, NONE, *own, sequence, transactional=True)
            return messages.Produce(self.attempt, partition, ACKS_ALL, _FOR_EVER_MS, batch)
        if self.purpose == "add":
            return messages.AddPartitionsToTxn(self.attempt, ID, *own, (partition,))
        if self.purpose in _ENDED:
            return messages.EndTxn(self.attempt, ID, *own, self.purpose == "commit")
        if self.purpose in {"init", "renew"}:
            return messages.InitProducerId(self.attempt, ID, TIMEOUT_MS, *own)
        return None

    def _next_sequence(self, partition: int) -> int:
        return self.sequences[partition] if partition < len(self.sequences) else 0

    # --- answers -----------------------------------------------------------------------------------------------------

    def answered(self, message: Message) -> ProducerNode:
        """Take the answer to its request; it may ask for something else at once."""
        error = getattr(message, "error", ErrorCode.NONE)
        if error in _COME_BACK:
            return self  # And its request is sent again.
        if isinstance(message, messages.ProduceResponse):
            return self._written(error)
        assert isinstance(message, CoordinatorAnswer)  # noqa: S101 - nothing else is an answer to it
        if error:
            return replace(self.idle(), fenced=True)
        if self.purpose == "add":
            return replace(self, added=(*self.added, self.partition), purpose="write", attempt=0)
        changed = self._named(message)
        if self.purpose in _ENDED:
            changed = replace(changed.with_end(_ENDED[self.purpose]), added=(), failed=False)
            if self.renews and self.failed:
                return replace(changed, purpose="renew", attempt=0)
        return changed.idle()

    def idle(self) -> ProducerNode:
        """The producer when it waits for nothing."""
        return replace(self, purpose="", partition=NONE, record=NONE, attempt=0)

    def _written(self, error: ErrorCode) -> ProducerNode:
        done = self.idle()
        if error == ErrorCode.INVALID_PRODUCER_EPOCH:
            return replace(done, fenced=True)
        if error:
            return replace(done, failed=True)
        sequences = [
            self._next_sequence(partition) for partition in range(max(len(self.sequences), self.partition + 1))
        ]
        sequences[self.partition] += 1
        return replace(done, sequences=tuple(sequences))

    def _named(self, message: CoordinatorAnswer) -> ProducerNode:
        """Go on under the id and the epoch of an answer, which begin all sequences again."""
        if message.producer_id == NONE:
            return self
        own = (message.producer_id, message.producer_epoch)
        if own == (self.producer_id, self.producer_epoch):
            return self
        return replace(self, producer_id=own[0], producer_epoch=own[1], sequences=())


#: Records of one transaction have numbers below this one.
_PER_TRANSACTION: Final = 4


def record_of(transaction: int, position: int) -> int:
    """The number of a record: by its transaction, and its place in that."""
    return transaction * _PER_TRANSACTION + position


def transaction_of(record: int) -> int:
    """The number of a record's transaction."""
    return record // _PER_TRANSACTION


def name_of(record: int) -> str:
    """A record by the letter of its transaction: a, a2 and a3 are of the first one, b is the first of the second."""
    transaction, position = divmod(record, _PER_TRANSACTION)
    return chr(ord("a") + transaction) + (str(position + 1) if position else "")

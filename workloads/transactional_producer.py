"""One producer with a transactional id: its transactions, each an operation of the history, and how they end.

A transaction may commit the offsets of the records that it was made of (:class:`Consumed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from workloads.client import MemberToken, SendOutcome, Transactions, append_of, failures
from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED
from workloads.instance import Writers
from workloads.operations import (
    Event,
    EventType,
    Function,
    MicroOperation,
    ProducerEpoch,
    Reached,
    Send,
    TransactionEnd,
)
from workloads.steady_writes import DueWrite
from workloads.transaction_errors import ErrorClass
from workloads.values import encode, join, record_key_of

#: The pause before another producer is made where one could not begin its work.
RENEW_MS: Final = 500
#: The most tries of a call whose errors are retriable; the pause between two is :data:`RENEW_MS`.
TRIES_MAX: Final = 3

Asked = Literal["commit", "abort"]


class Consumed(NamedTuple):
    """The records that a transaction is made of: how far ``group`` is with them, and their offsets by log partition."""

    group: str
    reached: tuple[Reached, ...]
    sources: dict[str, tuple[int, ...]]


class OpenTransaction:
    """A transaction that is open: its writes, what is known of each, and how it is to end."""

    def __init__(
        self,
        process: int,
        writes: Sequence[DueWrite],
        sequences: Iterable[int],
        asked: Asked,
        consumed: Consumed | None,
    ) -> None:
        self.process = process
        self.writes = writes
        self.values = [join(process, sequence) for sequence in sequences]
        self.asked: Asked = asked
        self.consumed = consumed
        self.handed_us: int | None = None
        self.sent = 0
        self.answers: dict[int, SendOutcome] = {}
        self.late: list[int] = []
        self.ending_us: int | None = None
        self.superseded_us: int | None = None
        self.told: ProducerEpoch | None = None
        self.error_class: ErrorClass | None = None
        self.end: SendOutcome | None = None

    def written(self, *, begins: bool) -> Iterable[tuple[DueWrite, int]]:  # noqa: ARG002
        """The writes with their values that are part of it, as it ``begins`` or as it ends."""
        return zip(self.writes, self.values, strict=True)


class TransactionalProducer:
    """One producer of a transactional id, one process of the history.

    Attributes:
        process: its process, which names it.
        number: how many producers with this transactional id were made before.
        ready: it has fenced those before it, and works.
        transaction: the one that is open, if any.
    """

    def __init__(
        self,
        writers: Writers,
        partitions: Sequence[str],
        transactional_id: str,
        number: int,
        ended: Callable[[TransactionalProducer, OpenTransaction], None],
    ) -> None:
        self._writers = writers
        self._now_us = writers.clock.now_us
        self._partitions = partitions
        self._transactional_id = transactional_id
        self._ended = ended
        self._sequence = 0
        self.process = writers.new_process()
        self.number = number
        self.ready = False
        self.transaction: OpenTransaction | None = None
        self._producer = writers.clients.producer(self.process, transactional_id)
        if self._producer.transactions is None:
            raise ValueError(f"{writers.clients.name_of(self.process)} has no transactions")
        self._calls: Transactions = self._producer.transactions

    def init(self, done: Callable[[SendOutcome], None]) -> None:
        """Fence the producers before it."""

        def answered(outcome: SendOutcome) -> None:
            self.ready = outcome.type is EventType.OK
            done(outcome)

        self._try(self._calls.init, answered)

    def _try(
        self,
        call: Callable[[Callable[[SendOutcome], None]], None],
        done: Callable[[SendOutcome], None],
        tries: int = TRIES_MAX,
    ) -> None:
        """Make a call, and make it again after an error that lets it."""

        def answered(outcome: SendOutcome) -> None:
            if self.transaction is not None:
                _note_class(self.transaction, outcome)
            if outcome.error_class is ErrorClass.RETRIABLE and tries > 1:
                again = partial(self._try, call, done, tries - 1)
                self._writers.clock.call_at(self._now_us() + RENEW_MS * 1000, again)
            else:
                done(outcome)

        call(answered)

    def begin(
        self,
        writes: Sequence[DueWrite],
        asked: Asked,
        halted: Callable[[], None] | None = None,
        consumed: Consumed | None = None,
    ) -> None:
        """Do a transaction; with ``halted``, stop when the first half is in the log, and call it.

        With ``consumed`` stop when each write has an answer: :meth:`hand_over` and :meth:`finish` are called then.
        """
        begin, self._sequence = self._sequence, self._sequence + len(writes)
        sequences = range(begin, self._sequence)
        transaction = self.transaction = OpenTransaction(self.process, writes, sequences, asked, consumed)
        self._writers.counts.attempted += len(writes)
        self._record(EventType.INVOKE, transaction)
        self._calls.begin(partial(self._begun, transaction, halted))

    def hand_over(self, member: MemberToken, done: Callable[[SendOutcome], None]) -> None:
        """Hand over to the open transaction what it was made of, in the name of this member."""
        transaction = self.transaction
        assert transaction is not None  # noqa: S101 - it was begun with what it is made of
        assert transaction.consumed is not None  # noqa: S101
        offsets = {part.partition: part.offset for part in transaction.consumed.reached}
        self._try(partial(self._calls.send_offsets, offsets, member), partial(self._handed_over, transaction, done))

    def _handed_over(
        self, transaction: OpenTransaction, done: Callable[[SendOutcome], None], outcome: SendOutcome
    ) -> None:
        if outcome.type is EventType.OK and transaction.end is None:
            transaction.handed_us = self._now_us()
        done(outcome)

    def finish(self, asked: Asked) -> None:
        """Ask for the end of the open transaction."""
        if (transaction := self.transaction) is not None and transaction.end is None:
            transaction.asked = asked
            self._finish(transaction)

    def resume(self, superseded_us: int | None = None) -> None:
        """Send the rest of a transaction that was halted, and end it.

        ``superseded_us`` is when a successor was told that it is in charge, if one was.
        """
        if (transaction := self.transaction) is None or transaction.end is not None:
            return
        if superseded_us is not None:
            transaction.superseded_us = superseded_us
            transaction.late = list(transaction.values[transaction.sent :])
        self._complete(transaction)

    def close(self, *, crash: bool = False) -> None:
        """Close the client: what is open ends as INFO."""
        self.ready = False
        if (transaction := self.transaction) is not None and transaction.end is None:
            if transaction.ending_us is None:
                self._note_epoch(transaction)
            transaction.end = SendOutcome(EventType.INFO, error=CLIENT_CRASHED if crash else CLIENT_CLOSED)
        if crash:
            self._producer.crash()
        else:
            self._producer.close()
        self._settle()

    def _begun(self, transaction: OpenTransaction, halted: Callable[[], None] | None, outcome: SendOutcome) -> None:
        _note_class(transaction, outcome)
        if transaction.end is not None:
            return
        if outcome.type is not EventType.OK:
            # Nothing was sent, so nothing can be committed.
            self.ready = False
            transaction.end = SendOutcome(EventType.FAIL, error=outcome.error)
            self._settle()
        elif halted is not None:
            whole = transaction.consumed is not None
            self._send(transaction, len(transaction.values) if whole else max(1, len(transaction.values) // 2), halted)
        else:
            self._complete(transaction)

    def _complete(self, transaction: OpenTransaction) -> None:
        """Send what is left, and end it."""
        upto = len(transaction.values)
        if transaction.asked == "abort" and transaction.sent < upto:
            # A library may drop what it has not sent yet, and then there would be nothing to abort.
            self._send(transaction, upto, partial(self._finish, transaction))
        else:
            self._send(transaction, upto)
            self._finish(transaction)

    def _send(self, transaction: OpenTransaction, upto: int, answered: Callable[[], None] | None = None) -> None:
        """Send the writes up to this number; ``answered`` is called once each of them has an answer."""
        begin, transaction.sent = transaction.sent, upto
        for write, value in zip(transaction.writes[begin:upto], transaction.values[begin:upto], strict=True):
            partition = self._partitions[write.partition]
            payload = encode(partition, write.key, value, write.payload_bytes)
            append = append_of(self._producer, tombstone=write.tombstone)
            append(partition, write.key, payload, partial(self._answered, transaction, value, answered, upto))

    def _answered(
        self,
        transaction: OpenTransaction,
        value: int,
        answered: Callable[[], None] | None,
        upto: int,
        outcome: SendOutcome,
    ) -> None:
        transaction.answers[value] = outcome
        if transaction.end is not None:
            self._settle()
        elif answered is not None and len(transaction.answers) == upto:
            answered()

    def _finish(self, transaction: OpenTransaction) -> None:
        self._note_epoch(transaction)
        transaction.ending_us = self._now_us()
        if transaction.asked == "abort":
            self._calls.abort(partial(self._aborted, transaction))
        else:
            self._calls.commit(partial(self._committed, transaction))

    def _note_epoch(self, transaction: OpenTransaction) -> None:
        """Note the id and epoch of a transaction that is open: its end may give the producer others."""
        if self._producer.epochs is not None:
            transaction.told = self._producer.epochs.told_epoch()

    def _committed(self, transaction: OpenTransaction, outcome: SendOutcome) -> None:
        _note_class(transaction, outcome)
        if transaction.end is not None:
            return
        if outcome.error_class is ErrorClass.ABORTABLE and transaction.superseded_us is None:
            self._calls.abort(partial(self._aborted, transaction))
            return
        if outcome.type is not EventType.OK:
            self.ready = False
            # A transaction that was not asked to commit before its producer was fenced is aborted.
            fenced = transaction.superseded_us is not None
            outcome = SendOutcome(EventType.FAIL if fenced else EventType.INFO, error=outcome.error)
        transaction.end = outcome
        self._settle()

    def _aborted(self, transaction: OpenTransaction, outcome: SendOutcome) -> None:
        _note_class(transaction, outcome)
        if transaction.end is not None:
            return
        aborted = outcome.type is EventType.OK
        self.ready = self.ready and aborted
        transaction.end = SendOutcome(EventType.FAIL if aborted else EventType.INFO, error=outcome.error)
        self._settle()

    def _settle(self) -> None:
        """Record the transaction once its end and those of its sends are known. A producer of no more use is closed."""
        if (transaction := self.transaction) is None or transaction.end is None:
            return
        if len(transaction.answers) < transaction.sent:
            if not self.ready:
                self._producer.close()
            return
        self.transaction = None
        if not self.ready:
            self._producer.close()
        self._writers.counts.count(transaction.end.type, len(transaction.values))
        self._record(transaction.end.type, transaction)
        self._ended(self, transaction)

    def _record(self, kind: EventType, transaction: OpenTransaction) -> None:
        begins = kind is EventType.INVOKE
        nothing, keyed = SendOutcome(EventType.INFO), self._writers.keyed
        micro: tuple[MicroOperation, ...] = tuple(
            Send(
                self._partitions[write.partition],
                value,
                transaction.answers.get(value, nothing).offset,
                record_key_of(write.key) if keyed else None,
                write.tombstone,
            )
            for write, value in transaction.written(begins=begins)
        )
        if transaction.consumed is not None:
            micro = (*micro, *transaction.consumed.reached)
        self._writers.recorder.record(
            Event(
                time_us=self._now_us(),
                process=transaction.process,
                instance=transaction.process,
                type=kind,
                function=Function.TXN,
                micro=micro,
                error=None if transaction.end is None else transaction.end.error,
                detail=None if begins else msgspec.json.encode(self._facts(transaction)).decode(),
            )
        )

    def _facts(self, transaction: OpenTransaction) -> TransactionEnd:
        return TransactionEnd(
            transactional_id=self._transactional_id,
            number=self.number,
            asked=None if transaction.ending_us is None else transaction.asked,
            ending_us=transaction.ending_us,
            superseded_us=transaction.superseded_us,
            late=tuple(transaction.late),
            failed=failures(transaction.answers),
            group=None if transaction.consumed is None else transaction.consumed.group,
            handed_us=transaction.handed_us,
            sources={} if transaction.consumed is None else transaction.consumed.sources,
            producer=transaction.told,
            error_class=transaction.error_class,
        )


def _note_class(transaction: OpenTransaction, outcome: SendOutcome) -> None:
    """Note the class of an error of a call."""
    transaction.error_class = outcome.error_class or transaction.error_class

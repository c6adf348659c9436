"""A producer with a transactional id that takes one step at a time, when it is told to: for scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice

from typing_extensions import override

from workloads.client import SendOutcome, Transactions
from workloads.instance import Writers
from workloads.operations import EventType, Reached
from workloads.steady_writes import DueWrite
from workloads.transactional_producer import Asked, Consumed, OpenTransaction, TransactionalProducer


class SteppedTransaction(OpenTransaction):
    """A transaction whose writes are sent one by one. One whose end was refused may be ended again.

    Attributes:
        producer: its producer.
        refused: it could not be begun.
        answer: the answer to the last question for its end.
    """

    def __init__(self, producer: SteppedProducer, process: int, writes: Sequence[DueWrite]) -> None:
        super().__init__(process, writes, range(len(writes)), "commit", None)
        self.producer = producer
        self.refused = False
        self.answer: SendOutcome | None = None

    @property
    def answered(self) -> str:
        """The answer to its producer: committed, aborted or refused; empty where that waits, or did not ask."""
        if self.answer is None:
            return ""
        if self.answer.type is not EventType.OK:
            return "refused"
        return "committed" if self.asked == "commit" else "aborted"

    @property
    def waits(self) -> bool:
        """Its producer asked for its end, and has no answer."""
        return self.ending_us is not None and self.answer is None

    def hand_over(self, part: Reached, group: str, time_us: int) -> None:
        """Note that the group took this offset of it."""
        self.consumed, self.handed_us = Consumed(group, (part,), {}), time_us

    @override
    def written(self, *, begins: bool) -> Iterable[tuple[DueWrite, int]]:
        """A script may end it before it has sent everything: what was not sent is no part of it then."""
        return super().written(begins=begins) if begins else islice(super().written(begins=begins), self.sent)


class SteppedProducer(TransactionalProducer):
    """A producer whose calls are made once, each when it is told to; ``before`` are those with its transactional id.

    Each transaction is a process of its own of the history: one whose end is not known stays open.

    Attributes:
        answer: what it was told when it asked to be in charge.
    """

    def __init__(
        self, writers: Writers, partitions: Sequence[str], transactional_id: str, before: Sequence[SteppedProducer]
    ) -> None:
        super().__init__(writers, partitions, transactional_id, len(before), lambda *_: None)
        self.transactional_id = transactional_id
        self._before = before
        self.answer: SendOutcome | None = None

    @property
    def calls(self) -> Transactions:
        """The calls of its client."""
        return self._calls

    @override
    def init(self, done: Callable[[SendOutcome], None]) -> None:
        def answered(outcome: SendOutcome) -> None:
            self.answer = outcome
            for each in self._before if self.ready else ():
                each.supersede()
            done(outcome)

        super().init(answered)

    @override
    def _try(
        self, call: Callable[[Callable[[SendOutcome], None]], None], done: Callable[[SendOutcome], None], tries: int = 1
    ) -> None:
        call(done)

    def open(self, writes: Sequence[DueWrite], done: Callable[[SendOutcome], None]) -> SteppedTransaction:
        """Begin a transaction, in which these can be written."""
        transaction = SteppedTransaction(self, self._writers.new_process(), writes)
        self._record(EventType.INVOKE, transaction)
        self._calls.begin(partial(self._opened, transaction, done))
        return transaction

    def _opened(
        self, transaction: SteppedTransaction, done: Callable[[SendOutcome], None], outcome: SendOutcome
    ) -> None:
        if outcome.type is EventType.OK:
            self._conclude()
            self._settle()
            self.transaction = transaction
        else:
            transaction.refused = True
            self._record(EventType.FAIL, transaction)
        done(outcome)

    def supersede(self) -> None:
        """Note that a successor was told that it is in charge: what is not ended yet can only be aborted."""
        if (transaction := self.transaction) is not None and transaction.ending_us is None:
            transaction.superseded_us = transaction.superseded_us or self._now_us()

    def send_next(self, transaction: SteppedTransaction) -> int:
        """Send the next write of a transaction; its value is returned."""
        value = transaction.values[transaction.sent]
        if transaction.superseded_us is not None:
            transaction.late.append(value)
        self._send(transaction, transaction.sent + 1)
        return value

    def ask(self, transaction: SteppedTransaction, end: Asked) -> None:
        """Ask for the end of a transaction."""
        transaction.asked, transaction.answer = end, None
        self._finish(transaction)

    @override
    def _committed(self, transaction: OpenTransaction, outcome: SendOutcome) -> None:
        self._told(transaction, outcome, EventType.OK)

    @override
    def _aborted(self, transaction: OpenTransaction, outcome: SendOutcome) -> None:
        self._told(transaction, outcome, EventType.FAIL)

    def _told(self, transaction: OpenTransaction, outcome: SendOutcome, end: EventType) -> None:
        assert isinstance(transaction, SteppedTransaction)  # noqa: S101 - this producer opens no others
        transaction.answer = outcome
        if outcome.type is EventType.OK:
            transaction.end = SendOutcome(end)
            self._settle()

    @override
    def close(self, *, crash: bool = False) -> None:
        self._conclude()
        super().close(crash=crash)

    def _conclude(self) -> None:
        """Let the open transaction have ended as its producer was told last."""
        transaction = self.transaction
        if isinstance(transaction, SteppedTransaction) and (answer := transaction.answer) is not None:
            # One that its producer could not ask to commit, or was certainly refused, is aborted.
            refused = answer.type is EventType.FAIL or transaction.superseded_us is not None
            transaction.end = SendOutcome(EventType.FAIL if refused else EventType.INFO, error=answer.error)

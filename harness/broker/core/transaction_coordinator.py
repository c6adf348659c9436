"""The transaction coordinator: which transactions are open, how each ends, and who may still write (rules 37 to 41).

The leader of the one log partition of :data:`TRANSACTIONS_TOPIC` is the coordinator of all transactional ids. All that
it decides is a record there, and counts once that record is committed:

    EMPTY --a partition is added--> ONGOING --EndTxn, a successor, time--> PREPARE_COMMIT  or PREPARE_ABORT
                                                                               |  a marker in each partition
    ONGOING <--a partition is added-- COMPLETE_COMMIT  or COMPLETE_ABORT  <----+

A *decision* is a record with one of the PREPARE states. From then on the transaction ends that way, whichever broker is
the coordinator: a new one reads the log to its end, waits until all of it is committed, and goes on with what is
prepared. A producer hears of the decision at once; the next transaction begins when the markers are written.

One record of a transactional id is under way at a time, and requests that meet it are told to come back.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

import msgspec
from msgspec.structs import replace
from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.coordinator import FOR_EVER_MS, Coordinator, refusal_of
from harness.broker.core.effects import Context
from harness.broker.core.messages import Marker
from harness.broker.core.replica import Replica
from harness.broker.core.transactions import marker_batch
from harness.broker.core.types import (
    ACKS_ALL,
    NO_ERROR,
    NO_NODE,
    NONE,
    TRANSACTIONS_TOPIC,
    ErrorCode,
    NodeId,
    Outside,
    PartitionState,
    TopicPartition,
)

#: The log of the coordinator.
LOG: Final = TopicPartition(TRANSACTIONS_TOPIC, 0)


class TransactionState(IntEnum):
    """The states of a transactional id."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


_PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_COMPLETE: Final = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


class TransactionRecord(msgspec.Struct, frozen=True):
    """The state of a transactional id: the value of a record of the coordinator's log.

    ``begun_ms`` is when the open transaction began, on the coordinator's clock: those of all brokers agree.
    """

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    begun_ms: int = 0


class _UnderWay(msgspec.Struct, eq=False):
    """A record that is being written, and the answer that its client gets when it is committed."""

    record: TransactionRecord
    client: NodeId
    answer: messages.CoordinatorAnswer | None


class _Sent(msgspec.Struct, frozen=True):
    """The last request for a marker: its time, and the epoch of the leader that got it; NONE before the first."""

    at_us: int = NONE
    leader_epoch: int = NONE


class Transaction(msgspec.Struct, eq=False):
    """One transactional id: its committed record, the next one that is under way, and the markers that are missing."""

    record: TransactionRecord
    next: _UnderWay | None = None
    markers: dict[TopicPartition, _Sent] = {}


class _Asked(msgspec.Struct, frozen=True):
    """A write that is not answered yet: a ``record`` of a transactional id, or the marker in ``partition`` for it."""

    transactional_id: str
    partition: TopicPartition
    record: TransactionRecord


class TransactionCoordinator(Coordinator):
    """The part of one broker that coordinates transactions. It does something only while that leads :data:`LOG`.

    ``new_producer_id`` gives a producer id that was never given before, or NONE.
    """

    _new_producer_id: Outside[Callable[[], int]]
    _transactions: dict[str, Transaction]
    _asked: dict[int, _Asked]
    _look_for_old_us: int

    def __init__(
        self, context: Context, write: Callable[[messages.Produce], None], new_producer_id: Callable[[], int]
    ) -> None:
        self._new_producer_id = new_producer_id
        self._transactions = {}
        self._look_for_old_us = 0
        super().__init__(context, write, LOG)

    # --- elections -----------------------------------------------------------------------------------------------

    @override
    def resign(self) -> None:
        """Forget everything; who waits for an answer is told."""
        super().resign()
        for transaction in self._transactions.values():
            if transaction.next is not None:
                self._refuse(transaction.next, ErrorCode.NOT_COORDINATOR)
        self._transactions = {}
        self._asked = {}

    @override
    def lead(self, replica: Replica) -> None:
        """Take over from the log (rule 40)."""
        super().lead(replica)
        for key, value in (record for batch in self._read(replica) for record in batch.records):
            self._transactions[key.decode()] = Transaction(msgspec.msgpack.decode(value, type=TransactionRecord))
        self._look_for_old_us = self._context.now_us + self._context.config.transaction_abort_check_ms * 1000
        self._look_again(replica)

    @override
    def _look(self) -> None:
        """Repeat what was not done, and abort what is open for too long (rule 41)."""
        for name, transaction in self._transactions.items():
            if transaction.record.state in _PREPARED and transaction.next is None:
                self._pursue(name, transaction)
        if self._context.now_us >= self._look_for_old_us:
            self._look_for_old_us = self._context.now_us + self._context.config.transaction_abort_check_ms * 1000
            self._abort_the_old()

    @override
    def _resume(self) -> None:
        """Go on with what the coordinator before has prepared."""
        for transaction in self._transactions.values():
            if transaction.record.state in _PREPARED:
                transaction.markers = dict.fromkeys(transaction.record.partitions, _Sent())

    def _abort_the_old(self) -> None:
        now_ms = self._context.now_us // 1000
        for name, transaction in self._transactions.items():
            record = transaction.record
            old = record.state is TransactionState.ONGOING and now_ms - record.begun_ms > record.timeout_ms
            if old and transaction.next is None:
                self._fence(name, transaction, NO_NODE, None)

    # --- requests ------------------------------------------------------------------------------------------------

    def init(self, message: messages.InitProducerId) -> None:
        """Rule 38: give a producer the id of its transactional id, in an epoch that fences all before it."""
        name = message.transactional_id
        assert name is not None, "a producer without a transactional id asks any broker"
        answer = messages.InitProducerIdResponse(message.correlation, NO_ERROR)
        error = self._unavailable()
        transaction = self._transactions.get(name)
        if not error and transaction is None:
            self._init_first(name, message, answer)
            return
        if transaction is None:
            self._context.answer(replace(answer, error=error))
            return
        record = transaction.record
        error = error or self._busy(transaction) or _other_producer(record, message)
        if error:
            self._context.answer(replace(answer, error=error))
        elif record.state is TransactionState.ONGOING:
            again = replace(answer, error=ErrorCode.CONCURRENT_TRANSACTIONS)
            self._fence(name, transaction, self._context.sender, again)
        else:
            epoch = record.producer_epoch + 1
            state = TransactionRecord(record.producer_id, epoch, message.timeout_ms)
            self._decide(name, transaction, state, self._context.sender, _with_identity(answer, state))

    def _init_first(self, name: str, message: messages.InitProducerId, answer: messages.InitProducerIdResponse) -> None:
        producer_id = self._new_producer_id()
        if producer_id == NONE:
            self._context.answer(replace(answer, error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        record = TransactionRecord(producer_id, NONE, message.timeout_ms)
        transaction = self._transactions[name] = Transaction(record)
        first = replace(record, producer_epoch=0)
        self._decide(name, transaction, first, self._context.sender, _with_identity(answer, first))

    def add_partitions(self, message: messages.AddPartitionsToTxn) -> None:
        """Rule 37: what will need a marker is on the coordinator's log before anything is written there."""
        answer = messages.AddPartitionsToTxnResponse(message.correlation, NO_ERROR)
        error, transaction = self._asked_by(message)
        if transaction is None or error or (error := self._busy(transaction)):
            self._context.answer(replace(answer, error=error))
            return
        record = transaction.record
        ongoing = record.state is TransactionState.ONGOING
        partitions = tuple(sorted({*message.partitions, *(record.partitions if ongoing else ())}))
        if ongoing and partitions == record.partitions:
            self._context.answer(answer)
            return
        begun_ms = record.begun_ms if ongoing else self._context.now_us // 1000
        state = replace(record, state=TransactionState.ONGOING, partitions=partitions, begun_ms=begun_ms)
        self._decide(message.transactional_id, transaction, state, self._context.sender, answer)

    def end(self, message: messages.EndTxn) -> None:
        """Rule 39: decide the end that the producer asks for, unless it is decided."""
        answer = messages.EndTxnResponse(message.correlation, NO_ERROR)
        error, transaction = self._asked_by(message, ends=True)
        if transaction is None or error:
            self._context.answer(replace(answer, error=error))
            return
        record, wanted = transaction.record, _prepared(commit=message.commit)
        if transaction.next is not None:
            self._context.answer(replace(answer, error=ErrorCode.CONCURRENT_TRANSACTIONS))
        elif record.state is TransactionState.ONGOING:
            state = replace(record, state=wanted, producer_epoch=record.producer_epoch + self._raised)
            self._decide(
                message.transactional_id, transaction, state, self._context.sender, self._end_of(answer, state)
            )
        elif record.state is wanted:
            self._context.answer(replace(answer, error=ErrorCode.CONCURRENT_TRANSACTIONS))
        elif record.state is _COMPLETE[wanted]:
            self._context.answer(self._end_of(answer, record))
        else:
            self._context.answer(replace(answer, error=ErrorCode.INVALID_TXN_STATE))

    @property
    def _raised(self) -> int:
        """The number by which the end of a transaction raises its producer's epoch (rule 39)."""
        return 0 if self._context.config.transaction_version == 1 else 1

    def _end_of(self, answer: messages.EndTxnResponse, record: TransactionRecord) -> messages.CoordinatorAnswer:
        return _with_identity(answer, record) if self._raised else answer

    def described(self) -> tuple[ErrorCode, dict[str, TransactionRecord]]:
        """Rule 50: what is committed of each transactional id, or the error of a broker that does not know."""
        error = self._unavailable()
        records = {} if error else {name: each.record for name, each in self._transactions.items()}
        return error, {name: record for name, record in records.items() if record.producer_epoch != NONE}

    def transactions(self) -> dict[str, Transaction]:
        """Every transactional id with what is under way; none while this broker cannot tell. This has no effect."""
        return self._transactions if self.ready() is not None else {}

    # --- why not -------------------------------------------------------------------------------------------------

    def _busy(self, transaction: Transaction) -> ErrorCode:
        """A record is under way, or markers are: the producer is to come back."""
        busy = transaction.next is not None or transaction.record.state in _PREPARED
        return ErrorCode.CONCURRENT_TRANSACTIONS if busy else NO_ERROR

    def _asked_by(
        self, message: messages.AddPartitionsToTxn | messages.EndTxn, *, ends: bool = False
    ) -> tuple[ErrorCode, Transaction | None]:
        """The transactional id of a request, and why it is refused: its producer is not the one in charge (rule 38)."""
        error = self._unavailable()
        if error:
            return error, None
        transaction = self._transactions.get(message.transactional_id)
        if transaction is None or transaction.record.producer_id != message.producer_id:
            return ErrorCode.INVALID_PRODUCER_ID_MAPPING, None
        record = transaction.record
        repeats = ends and record.state not in (TransactionState.EMPTY, TransactionState.ONGOING)
        epochs = (record.producer_epoch, record.producer_epoch - (self._raised if repeats else 0))
        return NO_ERROR if message.producer_epoch in epochs else ErrorCode.PRODUCER_FENCED, transaction

    # --- decisions, and what follows from them ---------------------------------------------------------------------

    def _fence(
        self, name: str, transaction: Transaction, client: NodeId, answer: messages.CoordinatorAnswer | None
    ) -> None:
        """Abort what is open, in an epoch that its producer does not have (rules 38 and 41)."""
        record = transaction.record
        state = replace(record, state=TransactionState.PREPARE_ABORT, producer_epoch=record.producer_epoch + 1)
        self._decide(name, transaction, state, client, answer)

    def _decide(
        self,
        name: str,
        transaction: Transaction,
        record: TransactionRecord,
        client: NodeId,
        answer: messages.CoordinatorAnswer | None,
    ) -> None:
        """Write a record; it counts, and the client is answered, once that is committed."""
        transaction.next = _UnderWay(record, client, answer)
        self._append(self._ask(name, LOG, record), (name.encode(), msgspec.msgpack.encode(record)))

    def _ask(self, name: str, partition: TopicPartition, record: TransactionRecord) -> int:
        correlation = self._context.correlation()
        self._asked[correlation] = _Asked(name, partition, record)
        return correlation

    def on_written(self, message: messages.ProduceResponse) -> None:
        """A record of the own log is committed, or a marker; or it was refused. Answers to another epoch are stale."""
        asked = self._asked.pop(message.correlation, None)
        if asked is None:
            return
        name, transaction = asked.transactional_id, self._transactions[asked.transactional_id]
        if asked.partition != LOG:
            if asked.record is transaction.record:  # Any other is of a transaction that is complete.
                self._on_marker(name, transaction, asked.partition, message.error)
        elif message.error:
            self._on_refused(name, transaction, message.error)
        else:
            self._on_decided(name, transaction)

    def _on_decided(self, name: str, transaction: Transaction) -> None:
        done, transaction.next = transaction.next, None
        assert done is not None, "one record of a transactional id is under way at a time"
        transaction.record = done.record
        if done.answer is not None:
            self._context.send(done.client, done.answer)
        if done.record.state in _PREPARED:
            transaction.markers = dict.fromkeys(done.record.partitions, _Sent())
            self._pursue(name, transaction)

    def _on_refused(self, name: str, transaction: Transaction, error: ErrorCode) -> None:
        """Nothing was decided: its client is to come back. Where the record may be on the log, another follows it."""
        refused, transaction.next = transaction.next, None
        if refused is not None:
            self._refuse(refused, refusal_of(error))
        if transaction.record.producer_epoch == NONE:
            del self._transactions[name]

    def _refuse(self, refused: _UnderWay, error: ErrorCode) -> None:
        """Tell the client of a record that may or may not count, where there is one."""
        if refused.answer is not None:
            answer = replace(refused.answer, error=error, producer_id=NONE, producer_epoch=NONE)
            self._context.send(refused.client, answer)

    # --- markers -------------------------------------------------------------------------------------------------

    def _pursue(self, name: str, transaction: Transaction) -> None:
        """Have the markers written that are missing; when none is, the transaction is complete."""
        record = transaction.record
        if not transaction.markers:
            complete = replace(record, state=_COMPLETE[record.state], partitions=())
            self._decide(name, transaction, complete, NO_NODE, None)
            return
        late_us = self._context.now_us - self._context.config.replica_socket_timeout_ms * 1000
        for partition, sent in transaction.markers.items():
            state = self._context.image.partition(partition)
            if state is None or state.leader == NONE:
                continue
            if sent.leader_epoch != state.leader_epoch or sent.at_us <= late_us:
                self._send_marker(name, transaction, partition, state)

    def _send_marker(
        self, name: str, transaction: Transaction, partition: TopicPartition, state: PartitionState
    ) -> None:
        replica, record = self._replica, transaction.record
        assert replica is not None, "a coordinator leads its log"
        transaction.markers[partition] = _Sent(self._context.now_us, state.leader_epoch)
        commit = record.state is TransactionState.PREPARE_COMMIT
        marker = Marker(commit, replica.leader_epoch, self._context.config.transaction_version)
        batch = marker_batch(record.producer_id, record.producer_epoch, marker)
        message = messages.WriteTxnMarkers(self._ask(name, partition, record), partition, ACKS_ALL, FOR_EVER_MS, batch)
        self._context.send(state.leader, message)

    def _on_marker(self, name: str, transaction: Transaction, partition: TopicPartition, error: ErrorCode) -> None:
        """A marker is committed, or a later transaction shows that it was; any other refusal is repeated, later."""
        if partition not in transaction.markers:
            return
        if error and error is not ErrorCode.INVALID_PRODUCER_EPOCH:
            transaction.markers[partition] = _Sent()
            return
        del transaction.markers[partition]
        if not transaction.markers:
            self._pursue(name, transaction)


def _prepared(*, commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT


def _other_producer(record: TransactionRecord, message: messages.InitProducerId) -> ErrorCode:
    """A producer that goes on must be the one in charge (KIP-360)."""
    own = (record.producer_id, record.producer_epoch)
    goes_on = message.producer_id != NONE
    return ErrorCode.PRODUCER_FENCED if goes_on and (message.producer_id, message.producer_epoch) != own else NO_ERROR


def _with_identity(answer: messages.CoordinatorAnswer, record: TransactionRecord) -> messages.CoordinatorAnswer:
    return replace(answer, producer_id=record.producer_id, producer_epoch=record.producer_epoch)

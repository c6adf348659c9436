"""A model of the Kafka producer with a transactional id. Sans-IO: calls and messages in, effects out.

Beside what every producer does, it asks the transaction coordinator: for its id, before it first writes to a log
partition in a transaction, and for the end. The coordinator is the leader of the log of transactions, so it is found
in the metadata. A request is repeated after ``retry.backoff.ms`` until it is answered for good, or the call's time is
over. Offsets of a group go to the group coordinator, whose log is added to the transaction as any other (KIP-447).

As in Kafka's Java client, a transaction with a record that was not acknowledged can only be aborted, and a commit waits
until each record has an end. What follows from an error is in the table of :mod:`workloads.transaction_errors`. Under
transaction version 1 a producer whose record was given up asks for a new epoch after the abort (KIP-360): a late copy
of it must not meet the next transaction. Partitions are added by the client under both versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.groups import coordinator as group_coordinator
from harness.broker.core.transaction_coordinator import LOG
from harness.broker.core.types import NONE, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ErrorCode, TopicPartition
from harness.worlds.simulated.batches import Batch, Queue
from harness.worlds.simulated.network_client import NOT_COORDINATING, ClientEffect, Completed, Request, commits
from harness.worlds.simulated.producer import ERROR_NAMES, EXPIRED, ProducerModel
from workloads import Call, ErrorClass, EventType, ProducerEpoch, SendOutcome, Settings, class_of

#: Purpose of a request to the coordinator.
COORDINATOR: Final = "coordinator"
#: A call may take as many times as long as a record: find the coordinator, flush, add partitions, end.
_WAITS: Final = 4
_COME_BACK: Final = NOT_COORDINATING | {ErrorCode.CONCURRENT_TRANSACTIONS}
#: Error of the sends of a transaction that can only be aborted, and of its commit.
ABORTABLE: Final = "TransactionAbortableError"
_OK: Final = SendOutcome(EventType.OK)

What = Literal["init", "commit", "abort"]
_Waiting = What | Literal["send_offsets"]


class _Call:
    """A call that waits for the coordinator."""

    __slots__ = ("deadline_us", "done", "offsets", "what")

    def __init__(self, what: _Waiting, done: Any, deadline_us: int) -> None:
        self.what: _Waiting = what
        self.done = done
        self.deadline_us = deadline_us
        #: The group, member, epoch and offsets that are to be committed with the transaction.
        self.offsets: tuple[str, str, int, tuple[tuple[TopicPartition, messages.CommittedOffset], ...]] = (
            "",
            "",
            NONE,
            (),
        )


class TransactionalProducerModel(ProducerModel):
    """One producer instance with a transactional id."""

    def __init__(
        self, brokers: Sequence[int], first: int, topics: Sequence[str], settings: Settings, transactional_id: str
    ) -> None:
        super().__init__(brokers, first, [*topics, TRANSACTIONS_TOPIC, OFFSETS_TOPIC], settings)
        self._transactional = True
        self._transactional_id = transactional_id
        self._timeout_ms = settings.transaction_timeout_ms
        self._keeps_epoch = settings.transaction_version == 1
        self._call: _Call | None = None
        self._open = False
        self._added: set[TopicPartition] = set()
        self._asked: tuple[TopicPartition, ...] | None = None
        #: The call for which the coordinator was asked; None where log partitions are added.
        self._asked_for: _Call | None = None
        self._not_before_us = 0
        #: After this abort a new epoch is asked for.
        self._renews_epoch = False
        #: The error for which the open transaction can only be aborted, and the one that ended this producer.
        self._failed = ""
        self._ended = ""

    @property
    def epoch(self) -> ProducerEpoch | None:
        """The id and epoch with which it writes now, None before it has any."""
        return None if self._producer_id == NONE else ProducerEpoch(self._producer_id, self._producer_epoch)

    # --- calls -------------------------------------------------------------------------------------------------------

    def begin(self, now_us: int, done: Any) -> list[ClientEffect]:
        """Open a transaction: the coordinator hears of it with the first record."""
        if self._ended or self._producer_id == NONE or self._open or self._call is not None:
            error = self._ended or ERROR_NAMES[ErrorCode.INVALID_TXN_STATE]
            self._net.effects.append(Completed(done, _dead("begin", error)))
        else:
            self._open = True
            self._net.effects.append(Completed(done, _OK))
        return self._effects(now_us)

    def call(self, now_us: int, what: What, done: Any) -> list[ClientEffect]:
        """Ask the coordinator for an id, or for an end; ``Completed(done, SendOutcome)`` follows, once."""
        if what == "abort":
            self._failed = self._failed or ABORTABLE
        return self._call_for(now_us, _Call(what, done, now_us + _WAITS * self._delivery_us))

    def send_offsets(
        self, now_us: int, member: tuple[str, str, int], offsets: Mapping[TopicPartition, int], done: Any
    ) -> list[ClientEffect]:
        """Have a group keep offsets for the transaction, in the name of its ``member`` (group, name, epoch)."""
        call = _Call("send_offsets", done, now_us + _WAITS * self._delivery_us)
        call.offsets = (*member, commits(offsets))
        return self._call_for(now_us, call)

    def _call_for(self, now_us: int, call: _Call) -> list[ClientEffect]:
        if self._ended:
            self._net.effects.append(Completed(call.done, _dead(call.what, self._ended)))
            return self._effects(now_us)
        self._call = call
        self._net.wake_at(call.deadline_us)
        return self._advance(now_us)

    @override
    def send(
        self,
        now_us: int,
        partition: TopicPartition,
        key: bytes,
        payload: bytes,
        done: Any,
        *,
        tombstone: bool = False,
    ) -> list[ClientEffect]:
        if not self._open or self._failed or self._ended:
            error = self._ended or self._failed or ERROR_NAMES[ErrorCode.INVALID_TXN_STATE]
            self._net.effects.append(Completed(done, SendOutcome(EventType.FAIL, None, error)))
            return self._effects(now_us)
        return super().send(now_us, partition, key, payload, done, tombstone=tombstone)

    @override
    def close(self, why: str) -> list[ClientEffect]:
        effects = super().close(why)
        call, self._call = self._call, None
        self._ended = self._ended or why
        if call is not None:
            effects.append(Completed(call.done, SendOutcome.of_call(call.what, why)))
        return effects

    # --- what to do next ---------------------------------------------------------------------------------------------

    @override
    def _effects(self, now_us: int) -> list[ClientEffect]:
        if self._failed or self._ended:
            self._drop_unsent()
        self._ask(now_us)
        return super()._effects(now_us)

    def _drop_unsent(self) -> None:
        """Send no more of what waits for its turn: the transaction can only be aborted."""
        error = self._ended or self._failed
        for queue in self._queues.values():
            for batch in queue.retries:
                self._end(batch, EventType.INFO if batch.ambiguous else EventType.FAIL, error)
                queue.given_up(batch)
            queue.retries.clear()
            while queue.waiting:
                self._complete(queue.waiting.popleft(), SendOutcome(EventType.FAIL, None, error))

    def _ask(self, now_us: int) -> None:
        """Ask the coordinator for what is wanted next, one request at a time."""
        if self._asked is not None or self._ended:
            return
        adds = self._to_add()
        if self._call is None and not adds:
            return
        if self._call is not None and not adds and self._ends_without_asking(self._call):
            return
        if now_us < self._not_before_us:
            self._net.wake_at(self._not_before_us)
            return
        hands_over = not adds and self._call is not None and self._call.what == "send_offsets"
        coordinator = self._net.reachable_leader(now_us, group_coordinator.LOG if hands_over else LOG)
        if coordinator is not None:
            self._asked, self._asked_for = adds, None if adds else self._call
            self._net.send(now_us, coordinator, self._request(adds), COORDINATOR)

    def _to_add(self) -> tuple[TopicPartition, ...]:
        waiting = [queue.partition for queue in self._queues.values() if queue.waiting]
        if self._call is not None and self._call.what == "send_offsets" and not self._failed:
            waiting.append(group_coordinator.LOG)
        return tuple(sorted(set(waiting) - self._added))

    def _ends_without_asking(self, call: _Call) -> bool:
        """True where there is nothing to ask for now: records have no end yet, or nothing was written."""
        if call.what == "init" or self._renews_epoch:
            return False
        if any(_owes_answers(queue) for queue in self._queues.values()):
            return True
        if call.what != "abort" and self._failed:
            self._finish(self._failed)
        elif call.what != "send_offsets" and not self._added:
            self._end_transaction()
            self._finish()
        return self._call is None

    def _request(self, adds: tuple[TopicPartition, ...]) -> messages.Message:
        correlation, name = self._net.next_correlation(), self._transactional_id
        identity = (self._producer_id, self._producer_epoch)
        if adds:
            return messages.AddPartitionsToTxn(correlation, name, *identity, adds)
        if self._call is None or self._call.what == "init" or self._renews_epoch:
            return messages.InitProducerId(correlation, name, self._timeout_ms, *identity)
        if self._call.what == "send_offsets":
            return messages.TxnOffsetCommit(correlation, *self._call.offsets, *identity)
        return messages.EndTxn(correlation, name, *identity, self._call.what == "commit")

    @override
    def _numbered(self, now_us: int, queue: Queue, broker: int) -> bool:
        if queue.partition not in self._added or self._failed:
            return False
        if queue.producer_epoch != self._producer_epoch:
            if queue.in_flight:
                return False
            queue.restart(self._producer_id, self._producer_epoch)
        return not queue.in_flight or not (queue.unresolved and not queue.retries)

    # --- answers -----------------------------------------------------------------------------------------------------

    @override
    def on_message(self, now_us: int, sender: int, message: messages.Message) -> list[ClientEffect]:
        if isinstance(message, messages.CoordinatorAnswer | messages.TxnOffsetCommitResponse):
            if self._net.answered(message.correlation) is not None:
                self._on_coordinator(now_us, message)
            return self._advance(now_us)
        return super().on_message(now_us, sender, message)

    def _on_coordinator(
        self, now_us: int, answer: messages.CoordinatorAnswer | messages.TxnOffsetCommitResponse
    ) -> None:
        adds, self._asked = self._asked, None
        if self._asked_for is not None and self._asked_for is not self._call:
            return  # the call was over before its answer came
        if answer.error in _COME_BACK:
            if answer.error in NOT_COORDINATING:
                self._net.want_metadata()
            self._not_before_us = now_us + self._backoff_us
        elif answer.error:
            self._on_refused(ERROR_NAMES.get(answer.error, answer.error.name))
        elif isinstance(answer, messages.AddPartitionsToTxnResponse):
            self._added |= set(adds or ())
        elif isinstance(answer, messages.InitProducerIdResponse):
            self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
            self._renews_epoch = False
            self._finish()
        elif isinstance(answer, messages.EndTxnResponse):
            self._on_ended(answer)
        elif isinstance(answer, messages.TxnOffsetCommitResponse):
            self._finish()

    def _on_ended(self, answer: messages.EndTxnResponse) -> None:
        if answer.producer_id != NONE:
            self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
        self._renews_epoch = self._keeps_epoch and any(queue.unresolved for queue in self._queues.values())
        self._end_transaction()
        if not self._renews_epoch:
            self._finish()

    def _end_transaction(self) -> None:
        self._open = False
        self._added.clear()
        self._failed = ""

    def _on_refused(self, error: str) -> None:
        what: Call = "begin" if self._call is None else self._call.what
        if class_of(what, error) is ErrorClass.ABORTABLE:
            self._failed = self._failed or ABORTABLE
            self._finish(error)
        else:
            self._give_up_for_good(error)

    def _give_up_for_good(self, error: str) -> None:
        self._ended = error
        self._finish(error)

    def _finish(self, error: str | None = None) -> None:
        call, self._call = self._call, None
        if call is not None:
            outcome = _OK if error is None else SendOutcome.of_call(call.what, error)
            self._net.effects.append(Completed(call.done, outcome))

    @override
    def _refused(self, now_us: int, queue: Queue, batch: Batch, *, early: bool) -> None:
        if early:
            self._retry(now_us, queue, batch)
        else:
            self._give_up(queue, batch)

    @override
    def _give_up(self, queue: Queue, batch: Batch) -> None:
        self._failed = self._failed or ABORTABLE
        super()._give_up(queue, batch)

    @override
    def _lost(self, now_us: int, requests: list[Request]) -> None:
        for request in requests:
            if request.purpose == COORDINATOR:
                self._asked = None
                self._not_before_us = now_us + self._backoff_us
        super()._lost(now_us, [request for request in requests if request.purpose != COORDINATOR])

    @override
    def _expire(self, now_us: int) -> None:
        oldest_us = now_us - self._delivery_us
        if any(queue.waiting and queue.waiting[0].created_us <= oldest_us for queue in self._queues.values()):
            self._failed = self._failed or ABORTABLE
        super()._expire(now_us)
        if self._call is None:
            return
        if now_us < self._call.deadline_us:
            self._net.wake_at(self._call.deadline_us)
        elif class_of(self._call.what, EXPIRED) is ErrorClass.RETRIABLE:
            self._finish(EXPIRED)
        else:
            self._give_up_for_good(EXPIRED)


def _dead(what: Call, error: str) -> SendOutcome:
    """The end of a call of a producer that can do nothing more, because of this error."""
    return SendOutcome.of_call(what, error, ErrorClass.FATAL)


def _owes_answers(queue: Queue) -> bool:
    """Some record of it has no end yet."""
    return bool(queue.waiting) or any(not batch.ended for batch in [*queue.in_flight, *queue.retries])

"""A model of the Kafka producer. Sans-IO: calls and messages in, effects out.

It keeps the rules that decide what is lost, doubled or reordered: ``acks``; retries within ``delivery.timeout.ms``,
each after ``retry.backoff.ms``; ``max.in.flight.requests.per.connection``; ``request.timeout.ms``; sequence numbers;
when metadata is refreshed. Batching is reduced to: one batch is what waits for that partition when it may be sent.

How a send ends: OK when the leader acknowledged it, or with acks=0 when the request went out over a connection. A send
fails for certain only where no attempt can have been appended: every one that left was refused before the append.
Everything else is INFO. (A model can know this; the adapters of real clients have to judge by the last error alone,
``workloads.errors``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.types import NONE, ErrorCode, TopicPartition
from harness.worlds.simulated.batches import Batch, Queue, Waiting
from harness.worlds.simulated.network_client import (
    MICROSECONDS,
    NEVER_US,
    ClientEffect,
    ClientModel,
    Completed,
    Request,
)
from workloads import EventType, SendOutcome, Settings, classify

#: Errors of a broker as a client names them (kafka-python's classes), and what the producer makes of them.
ERROR_NAMES: Final = {
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordError",
    ErrorCode.FENCED_LEADER_EPOCH: "FencedLeaderEpochError",
    ErrorCode.GROUP_ID_NOT_FOUND: "GroupIdNotFoundError",
    ErrorCode.INVALID_PRODUCER_EPOCH: "InvalidProducerEpochError",
    ErrorCode.INVALID_RECORD: "InvalidRecordError",
    ErrorCode.INVALID_REQUIRED_ACKS: "InvalidRequiredAcksError",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "InvalidProducerIdMappingError",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicError",
    ErrorCode.INVALID_TXN_STATE: "InvalidTxnStateError",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageError",
    ErrorCode.MESSAGE_TOO_LARGE: "MessageSizeTooLargeError",
    ErrorCode.NON_EMPTY_GROUP: "NonEmptyGroupError",
    ErrorCode.NOT_ENOUGH_REPLICAS: "NotEnoughReplicasError",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "NotEnoughReplicasAfterAppendError",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NotLeaderForPartitionError",
    ErrorCode.PRODUCER_FENCED: "ProducerFencedError",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "OutOfOrderSequenceNumberError",
    ErrorCode.REQUEST_TIMED_OUT: "RequestTimedOutError",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "UnknownLeaderEpochError",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "UnknownTopicOrPartitionError",
}
ACCEPTED: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
#: Refused before the append, whatever the state of the broker that says it (rules 1, 3, 21).
REFUSALS: Final = frozenset({
    ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH,
})  # fmt: skip
RETRIABLE: Final = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE,
})  # fmt: skip
INVALID_METADATA: Final = frozenset({
    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR,
})  # fmt: skip
CONNECTION_LOST: Final = "KafkaConnectionError"
EXPIRED: Final = "KafkaTimeoutError"
#: Purpose of the request for a producer id.
PRODUCER_ID: Final = "producer id"


class ProducerModel(ClientModel):
    """One producer instance."""

    def __init__(self, brokers: Sequence[int], first: int, topics: Sequence[str], settings: Settings) -> None:
        super().__init__(brokers, first, topics, settings)
        self._acks = settings.acks
        self._retries = settings.retries
        self._max_in_flight = settings.max_in_flight
        self._request_timeout_ms = settings.request_timeout_ms
        self._delivery_us = settings.delivery_timeout_ms * MICROSECONDS
        self._linger_us = settings.linger_ms * MICROSECONDS
        self._batch_bytes = settings.batch_size
        self._idempotent = settings.enable_idempotence
        self._one_window = settings.idempotence_window == "partition"
        self._producer_id = self._producer_epoch = NONE
        self._producer_id_under_way = False
        self._producer_id_not_before_us = 0
        self._transactional = False
        self._queues: dict[TopicPartition, Queue] = {}

    # --- inputs ------------------------------------------------------------------------------------------------------

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
        """Append one record; ``Completed(done, SendOutcome)`` follows, once."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = Queue(partition, self._batch_bytes, transactional=self._transactional)
            self._queues[partition] = queue
        queue.waiting.append(Waiting(done, key, payload, now_us, tombstone))
        self._net.wake_at(now_us + self._delivery_us)
        self._drain(now_us, queue)
        return self._effects(now_us)

    def on_message(self, now_us: int, sender: int, message: messages.Message) -> list[ClientEffect]:
        """An answer arrived. With acks=0 it means the connection that a broker closes when it refuses a write."""
        if type(message) is messages.ProduceResponse and self._acks == 0:
            return self.on_disconnected(now_us, sender)
        if type(message) is messages.ProduceResponse:
            request = self._net.answered(message.correlation)
            if request is not None:
                queue, batch = request.purpose
                batch.node = request.broker
                self._answered(now_us, queue, batch, message)
        elif type(message) is messages.MetadataResponse:
            self._net.on_metadata(now_us, message)
        elif type(message) is messages.InitProducerIdResponse:
            self._got_producer_id(now_us, message)
        return self._advance(now_us)

    @override
    def close(self, why: str) -> list[ClientEffect]:
        for queue in self._queues.values():
            for batch in [*queue.in_flight, *queue.retries]:
                self._end(batch, EventType.INFO, why)
            for record in queue.waiting:
                self._complete(record, SendOutcome(EventType.INFO, None, why))
        self._queues.clear()
        return [effect for effect in self._net.take_effects() if type(effect) is Completed]

    # --- sending -----------------------------------------------------------------------------------------------------

    def _advance(self, now_us: int) -> list[ClientEffect]:
        for queue in self._queues.values():
            if queue.waiting or queue.retries:
                self._drain(now_us, queue)
        return self._effects(now_us)

    def _effects(self, now_us: int) -> list[ClientEffect]:
        self._net.pursue_metadata(now_us)
        return self._net.take_effects()

    def _drain(self, now_us: int, queue: Queue) -> None:
        """Send what may be sent of one partition."""
        while queue.waiting or queue.retries:
            leader = self._net.leader(queue.partition)
            if leader is None:
                return
            connection = self._net.ready(now_us, leader[0])
            if connection is None or connection.in_flight >= self._max_in_flight:
                return
            if self._max_in_flight == 1 and queue.in_flight:
                return  # Order is promised: the batch under way may be on its way to another broker.
            if self._idempotent and not self._numbered(now_us, queue, leader[0]):
                return
            batch = self._next(now_us, queue)
            if batch is None:
                return
            self._transmit(now_us, queue, batch, leader[0])

    def _numbered(self, now_us: int, queue: Queue, broker: int) -> bool:
        """True if a batch may get, or has, a sequence number that the broker will understand."""
        if self._producer_id == NONE:
            if now_us < self._producer_id_not_before_us:
                self._net.wake_at(self._producer_id_not_before_us)
            elif not self._producer_id_under_way:
                self._producer_id_under_way = True
                self._net.send(now_us, broker, messages.InitProducerId(self._net.next_correlation()), PRODUCER_ID)
            return False
        if queue.in_flight:
            if self._one_window and queue.window_is_full():
                return False
            return not queue.restart_due and not (queue.unresolved and not queue.retries)
        if queue.must_restart():
            self._producer_epoch += 1
            queue.restart(self._producer_id, self._producer_epoch)
        elif queue.producer_epoch != self._producer_epoch and not queue.retries:
            queue.restart(self._producer_id, self._producer_epoch)
        return True

    def _next(self, now_us: int, queue: Queue) -> Batch | None:
        if queue.retries:
            batch = queue.retries[0]
            if batch.ready_us > now_us:
                self._net.wake_at(batch.ready_us)
                return None
            return queue.retries.popleft() if queue.may_retry(batch) else None
        if self._linger_us and queue.waiting[0].created_us + self._linger_us > now_us:
            self._net.wake_at(queue.waiting[0].created_us + self._linger_us)
            return None
        return queue.next_batch()

    def _transmit(self, now_us: int, queue: Queue, batch: Batch, broker: int) -> None:
        batch.attempts += 1
        correlation = self._net.next_correlation()
        produce = messages.Produce(correlation, queue.partition, self._acks, self._request_timeout_ms, batch.encoded())
        if self._acks == 0:
            self._net.send_only(broker, produce)
            self._end(batch, EventType.OK, None)
            return
        queue.in_flight.append(batch)
        self._net.send(now_us, broker, produce, (queue, batch))

    # --- answers -----------------------------------------------------------------------------------------------------

    def _answered(self, now_us: int, queue: Queue, batch: Batch, answer: messages.ProduceResponse) -> None:
        code = answer.error
        queue.in_flight.remove(batch)
        if code in ACCEPTED:
            queue.acknowledged(batch)
            self._end(batch, EventType.OK, None, answer.base_offset)
            return
        if code in INVALID_METADATA:
            self._net.want_metadata()
        batch.ambiguous |= code not in REFUSALS
        batch.error = ERROR_NAMES.get(code, "UnknownError")
        if code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH) and self._idempotent:
            # A batch behind one that failed is only early. The one that was next means that the log forgot something.
            early = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not queue.unresolved and not queue.is_next(batch)
            self._refused(now_us, queue, batch, early=early)
        elif code in RETRIABLE:
            self._retry(now_us, queue, batch)
        else:
            self._give_up(queue, batch)

    def _refused(self, now_us: int, queue: Queue, batch: Batch, *, early: bool) -> None:
        """A leader does not take the batch's number or epoch: begin again in a new epoch, unless it is early."""
        queue.restart_due |= not early
        self._retry(now_us, queue, batch)

    def _lost(self, now_us: int, requests: list[Request]) -> None:
        for request in requests:
            if request.purpose == PRODUCER_ID:
                self._producer_id_under_way = False
                continue
            queue, batch = request.purpose
            queue.in_flight.remove(batch)
            batch.ambiguous = True
            batch.error = CONNECTION_LOST
            self._retry(now_us, queue, batch)

    def _retry(self, now_us: int, queue: Queue, batch: Batch) -> None:
        if batch.ended:
            return
        if batch.attempts > self._retries or now_us >= batch.created_us + self._delivery_us:
            self._give_up(queue, batch)
        else:
            queue.retry(batch, now_us + self._backoff_us)

    def _expire(self, now_us: int) -> None:
        for queue in self._queues.values():
            self._expire_in(now_us, queue)

    def _expire_in(self, now_us: int, queue: Queue) -> None:
        """delivery.timeout.ms ends a record wherever it is; a request under way stays there, and counts, without it."""
        oldest_us = now_us - self._delivery_us
        next_us = NEVER_US
        for batch in [*queue.in_flight, *queue.retries]:
            if batch.ended:
                continue
            if batch.created_us <= oldest_us:
                batch.ambiguous |= batch in queue.in_flight
                self._give_up(queue, batch)
            else:
                next_us = min(next_us, batch.created_us)
        queue.retries = type(queue.retries)(batch for batch in queue.retries if not batch.ended)
        while queue.waiting and queue.waiting[0].created_us <= oldest_us:
            self._complete(queue.waiting.popleft(), SendOutcome(classify(EXPIRED), None, EXPIRED))
        if queue.waiting:
            next_us = min(next_us, queue.waiting[0].created_us)
        self._net.wake_at(next_us + self._delivery_us)

    def _give_up(self, queue: Queue, batch: Batch) -> None:
        if not batch.ended:
            queue.given_up(batch)
            self._end(batch, EventType.INFO if batch.ambiguous else EventType.FAIL, batch.error or EXPIRED)

    def _end(self, batch: Batch, how: EventType, error: str | None, base_offset: int = NONE) -> None:
        if batch.ended:
            return
        batch.ended = True
        for position, record in enumerate(batch.records):
            offset = base_offset + position if base_offset != NONE else None
            self._complete(record, SendOutcome(how, offset, error, batch.node))

    def _complete(self, record: Waiting, outcome: SendOutcome) -> None:
        self._net.effects.append(Completed(record.done, outcome))

    def _got_producer_id(self, now_us: int, answer: messages.InitProducerIdResponse) -> None:
        if self._net.answered(answer.correlation) is None:
            return
        self._producer_id_under_way = False
        if answer.error is ErrorCode.NONE:
            self._producer_id, self._producer_epoch = answer.producer_id, answer.producer_epoch
        else:
            self._producer_id_not_before_us = now_us + self._backoff_us

"""kafka-python behind the contract of workloads: the client under test, with every setting that matters spelled out.

The library may say two things about one send (a batch that expired in flight and was answered after all): the first
stands, and an expired one is INFO, so the second contradicts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from harness.clients.contract import ThreadedClock, producer_options
from harness.clients.handover import OUTSTANDING_MAX, Owner, Pending
from workloads.client import EndOffsets, Fetched, PollOutcome, SendOutcome
from workloads.errors import CLIENT_CLOSED, NEVER_SENT, TIME_LIMIT, classify
from workloads.operations import EventType
from workloads.settings import Settings

Library = TypeVar("Library", KafkaProducer, KafkaConsumer)

#: What a call may take beyond the client's own limit before this adapter answers in its place.
GRACE_MS: Final = 1_000
#: kafka-python waits up to 30 s between attempts to connect; Kafka's own default is 1 s.
RECONNECT_BACKOFF_MAX_MS: Final = 1_000
#: Kafka's default is 5 minutes; runs last seconds, and with acks=0 a deposed leader is noticed in no other way.
METADATA_MAX_AGE_MS: Final = 5_000
#: How long a forced close may take; nothing is waited for on the network.
CLOSE_LIMIT_S: Final = 1.0
#: The longest text of a broker that is kept with an error.
WORDS_MAX: Final = 200


class KafkaPythonClients:
    """Makes producers and consumers for one run. ``bootstrap`` are "host:port" of all brokers."""

    def __init__(self, clock: ThreadedClock, settings: Settings, bootstrap: Sequence[str]) -> None:
        self._clock = clock
        self._settings = settings
        self._bootstrap = tuple(bootstrap)
        self._made: list[KafkaPythonProducer | KafkaPythonConsumer] = []

    def producer(self, process: int) -> KafkaPythonProducer:
        """See :meth:`workloads.client.Clients.producer`."""
        producer = KafkaPythonProducer(self._clock, producer_configuration(self._settings, self._bootstrap, process))
        self._made.append(producer)
        return producer

    def consumer(self, process: int) -> KafkaPythonConsumer:
        """See :meth:`workloads.client.Clients.consumer`."""
        consumer = KafkaPythonConsumer(self._clock, consumer_configuration(self._settings, self._bootstrap, process))
        self._made.append(consumer)
        return consumer

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """See :meth:`RealClients.effective_configuration`; ``client_id`` is that of process 0."""
        producer = KafkaProducer.DEFAULT_CONFIG | producer_configuration(self._settings, self._bootstrap, 0)
        consumer = KafkaConsumer.DEFAULT_CONFIG | consumer_configuration(self._settings, self._bootstrap, 0)
        return {"producer": _writable(producer), "consumer": _writable(consumer)}

    def close(self, limit_s: float) -> list[str]:
        """See :meth:`RealClients.close`."""
        for client in self._made:
            client.close()
        deadline = time.monotonic() + limit_s
        left = [client.owner.join(max(deadline - time.monotonic(), 0)) for client in self._made]
        return [name for name in left if name is not None]


def producer_configuration(settings: Settings, bootstrap: Sequence[str], process: int) -> dict[str, Any]:
    """Arguments of ``KafkaProducer``. Left alone, the library chooses acks=all with idempotence (KIP-679)."""
    more = producer_options(settings) | {"max_block_ms": settings.request_timeout_ms}
    return _common_configuration(settings, bootstrap, process) | more


def consumer_configuration(settings: Settings, bootstrap: Sequence[str], process: int) -> dict[str, Any]:
    """Arguments of ``KafkaConsumer``, without a group.

    A position that the log has lost is taken up again where the logs part (KIP-320), or at the start where that is not
    known: ``earliest`` reads again, ``latest`` would skip.
    """
    return _common_configuration(settings, bootstrap, process) | {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_uncommitted",
        "check_crcs": True,
        # The library refuses a wait that is not shorter than the request's time limit.
        "fetch_max_wait_ms": min(500, settings.request_timeout_ms // 2),
        "max_poll_records": 500,
    }


def _common_configuration(settings: Settings, bootstrap: Sequence[str], process: int) -> dict[str, Any]:
    return {
        "bootstrap_servers": list(bootstrap),
        "bootstrap_timeout_ms": settings.request_timeout_ms,
        "client_id": f"ackproof-client-{process}",
        "request_timeout_ms": settings.request_timeout_ms,
        "retry_backoff_ms": settings.retry_backoff_ms,
        "reconnect_backoff_ms": 50,
        "reconnect_backoff_max_ms": RECONNECT_BACKOFF_MAX_MS,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "allow_auto_create_topics": False,
        "metrics_enabled": False,
    }


def _writable(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration is a plain value, with infinity by name as JSON has none."""
    plain = {name: value for name, value in configuration.items() if isinstance(value, (str, int, float))}
    return {name: "infinite" if value == float("inf") else value for name, value in plain.items() if name[:4] != "sasl"}


class KafkaPythonProducer:
    """One ``KafkaProducer``. See :class:`workloads.client.Producer`."""

    def __init__(self, clock: ThreadedClock, configuration: Mapping[str, Any]) -> None:
        self._limit_ms = configuration["delivery_timeout_ms"] + configuration["max_block_ms"] + GRACE_MS
        # Without an acknowledgement the library makes up a success; an offset in it would be made up too.
        self._tells_offsets = configuration["acks"] != 0
        self._pending: Pending[SendOutcome] = Pending(clock)
        self._closed = False
        self.owner: Owner[KafkaProducer] = Owner(
            f"{configuration['client_id']}-producer", lambda: _make(KafkaProducer, configuration), _close_producer
        )

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """See :meth:`workloads.client.Producer.send`."""
        ticket = self._pending.begin(done, self._limit_ms, SendOutcome(EventType.INFO, error=TIME_LIMIT))
        if self._closed:
            self._refuse(ticket, "the client is closed")
        elif len(self._pending) > OUTSTANDING_MAX:
            self._refuse(ticket, f"{OUTSTANDING_MAX} sends are outstanding")
        else:
            self.owner.submit(partial(self._send, ticket, _topic_partition(partition), key, payload))

    def close(self) -> None:
        """See :meth:`workloads.client.Producer.close`."""
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._pending.answer_all(SendOutcome(EventType.INFO, error=CLIENT_CLOSED))

    def _send(self, ticket: int, at: TopicPartition, key: bytes, payload: bytes, producer: KafkaProducer) -> None:
        if not self._pending.stands(ticket):
            return
        try:
            future = producer.send(at.topic, value=payload, key=key, partition=at.partition)
        except (KafkaError, ValueError) as error:
            self._refuse(ticket, named(error))
            return
        future.add_callback(partial(self._sent, ticket)).add_errback(partial(self._failed, ticket))

    def _sent(self, ticket: int, metadata: Any) -> None:
        offset = metadata.offset if self._tells_offsets and metadata.offset >= 0 else None
        self._pending.answer(ticket, SendOutcome(EventType.OK, offset=offset))

    def _failed(self, ticket: int, error: BaseException) -> None:
        self._pending.answer(ticket, SendOutcome(classify(type(error).__name__), error=named(error)))

    def _refuse(self, ticket: int, why: str) -> None:
        self._pending.answer(ticket, SendOutcome(classify(NEVER_SENT), error=f"{NEVER_SENT}: {why}"))


class KafkaPythonConsumer:
    """One ``KafkaConsumer`` that reads by assignment. See :class:`workloads.client.Consumer`."""

    def __init__(self, clock: ThreadedClock, configuration: Mapping[str, Any]) -> None:
        self._clock = clock
        self._request_ms: int = configuration["request_timeout_ms"]
        self._polls: Pending[PollOutcome] = Pending(clock)
        self._ends: Pending[EndOffsets] = Pending(clock)
        self._late: tuple[Fetched, ...] = ()
        self._positions: dict[TopicPartition, int] = {}
        self._closed = False
        self.owner: Owner[KafkaConsumer] = Owner(
            f"{configuration['client_id']}-consumer", lambda: _make(KafkaConsumer, configuration), _close_consumer
        )

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """See :meth:`workloads.client.Consumer.assign`."""
        self.owner.submit(partial(self._assign, [_topic_partition(name) for name in partitions], from_start))

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """See :meth:`workloads.client.Consumer.poll`."""
        too_late = PollOutcome(EventType.INFO, error=TIME_LIMIT)
        ticket = self._polls.begin(done, max_wait_ms + self._request_ms + GRACE_MS, too_late)
        if self._closed:
            self._polls.answer(ticket, PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._poll, ticket, max_wait_ms))

    def end_offsets(self, partitions: Sequence[str], done: Callable[[EndOffsets], None]) -> None:
        """See :meth:`workloads.client.Consumer.end_offsets`."""
        limit_ms = (1 + len(partitions)) * self._request_ms + GRACE_MS
        ticket = self._ends.begin(done, limit_ms, EndOffsets({}, TIME_LIMIT))
        if self._closed:
            self._ends.answer(ticket, EndOffsets({}, CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._end_offsets, ticket, [_topic_partition(name) for name in partitions]))

    def close(self) -> None:
        """See :meth:`workloads.client.Consumer.close`."""
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._polls.answer_all(PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
            self._ends.answer_all(EndOffsets({}, CLIENT_CLOSED))

    def _assign(self, partitions: list[TopicPartition], from_start: bool, consumer: KafkaConsumer) -> None:
        before = consumer.assignment()
        consumer.assign(partitions)
        if from_start:
            consumer.seek_to_beginning(*partitions)
            return
        for at in set(partitions) - before:
            if at in self._positions:  # the library forgets a partition that was away
                consumer.seek(at, self._positions[at])

    def _poll(self, ticket: int, max_wait_ms: int, consumer: KafkaConsumer) -> None:
        if not self._polls.stands(ticket):
            return
        try:
            read = consumer.poll(timeout_ms=max_wait_ms)
        except KafkaError as error:
            self._polls.answer(ticket, PollOutcome(EventType.INFO, error=named(error)))
            return
        self._positions.update({at: records[-1].offset + 1 for at, records in read.items()})
        fetched = tuple(_fetched(record) for records in read.values() for record in records)
        self._clock.post(lambda: self._polled(ticket, fetched))

    def _polled(self, ticket: int, fetched: tuple[Fetched, ...]) -> None:
        """What came after its poll's time limit is told by the next poll: the position has moved past it already."""
        fetched = self._late + fetched
        self._late = () if self._polls.stands(ticket) else fetched
        self._polls.end(ticket, PollOutcome(EventType.OK, fetched))

    def _end_offsets(self, ticket: int, partitions: list[TopicPartition], consumer: KafkaConsumer) -> None:
        if not self._ends.stands(ticket):
            return
        try:
            ends, error = consumer.end_offsets(partitions, timeout_ms=self._request_ms), None
        except KafkaError as failure:
            ends, error = self._end_offsets_singly(partitions, consumer), named(failure)
        self._ends.answer(ticket, EndOffsets({_name(at): offset for at, offset in ends.items()}, error))

    def _end_offsets_singly(
        self, partitions: list[TopicPartition], consumer: KafkaConsumer
    ) -> dict[TopicPartition, int]:
        """The library answers for all or for none; one leaderless partition must not hide the others."""
        ends: dict[TopicPartition, int] = {}
        for at in partitions:
            try:
                ends.update(consumer.end_offsets([at], timeout_ms=self._request_ms))
            except KafkaError:
                continue
        return ends


def named(error: BaseException) -> str:
    """An error's class, which is what the table of outcomes knows, with the broker's words if there were any."""
    words = str(error.args[0])[:WORDS_MAX] if error.args and error.args[0] else ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _fetched(record: Any) -> Fetched:
    return Fetched(f"{record.topic}-{record.partition}", record.offset, record.key or b"", record.value or b"")


def _topic_partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("-")
    return TopicPartition(topic, int(number))


def _name(at: TopicPartition) -> str:
    return f"{at.topic}-{at.partition}"


def _make(library: type[Library], configuration: Mapping[str, Any]) -> Library:
    """A producer or consumer.

    A constructor that finds no broker raises, and leaves its connections and its thread behind: the network client
    inside is remembered, and closed then.
    """
    inside: list[Any] = []

    def remember(**given: Any) -> Any:
        inside.append(library.DEFAULT_CONFIG["kafka_client"](**given))
        return inside[-1]

    try:
        return library(**configuration, kafka_client=remember)
    except BaseException:
        for client in inside:
            client.close()
        raise


def _close_producer(producer: KafkaProducer) -> None:
    # close() first flushes, and raises with its thread running if a fault holds a batch back. Giving up is not offered
    # by the public interface, so the sender is told itself; the library's version is pinned.
    producer._sender.force_close()  # noqa: SLF001
    producer.close(timeout=CLOSE_LIMIT_S)


def _close_consumer(consumer: KafkaConsumer) -> None:
    consumer.close(autocommit=False, timeout_ms=int(CLOSE_LIMIT_S * 1_000))

"""confluent-kafka (librdkafka) behind the contract of workloads.

librdkafka has threads of its own and calls back from ``poll``, so each producer has one more thread that polls. Its
Python binding does not hand on the status "never left" of a message, so only :data:`NAMES` prove anything.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from harness.worlds.clients.adapter import (
    CLOSE_LIMIT_S,
    GRACE_MS,
    NO_OWN_COMMITS,
    AdaptedConsumer,
    AdaptedProducer,
    Content,
)
from harness.worlds.clients.client_thread import Owner, ThreadedClock
from harness.worlds.clients.configuration import (
    METADATA_MAX_AGE_MS,
    consumer_properties,
    fetch_wait_ms,
    login_properties,
    milliseconds,
    producer_properties,
)
from harness.worlds.clients.credentials import without_secrets
from harness.worlds.clients.real_clients import ClientLibrary
from harness.worlds.clients.told_epoch import ToldEpoch
from harness.worlds.clients.transactions import ToldError
from workloads import (
    NEVER_SENT,
    PAYLOAD_HEADER,
    Assignment,
    EventType,
    Fetched,
    IsolationLevel,
    LogPartition,
    Membership,
    MemberToken,
    Offsets,
    PollOutcome,
    ProducerEpoch,
    SendOutcome,
    Settings,
    classify,
)

log = logging.getLogger(__name__)
# A producer that was fenced cannot abort, and its close says so; the history has the end of the transaction.
warnings.filterwarnings("ignore", "Producer abort_transaction failed during close", RuntimeWarning)

#: librdkafka's names of errors to which the table of outcomes gives another name; other errors prove nothing.
NAMES: Final = {
    "MSG_SIZE_TOO_LARGE": "MessageSizeTooLargeError",
    "RECORD_LIST_TOO_LARGE": "RecordListTooLargeError",
    "TOPIC_EXCEPTION": "InvalidTopicError",
    "INVALID_REQUIRED_ACKS": "InvalidRequiredAcksError",
    "INVALID_RECORD": "InvalidRecordError",
    "_INVALID_ARG": NEVER_SENT,
    "_UNKNOWN_PARTITION": NEVER_SENT,
}
RECORDS_MAX: Final = 500
#: Before 2.13.2, consume() moves the position past a record for each error that it hands over (librdkafka #4844).
LIBRDKAFKA_MIN: Final = 0x020D02FF
#: librdkafka refuses less.
SOCKET_TIMEOUT_MIN_MS: Final = 10
#: Kafka's default of max.request.size; librdkafka's is less than a payload of a megabyte needs.
REQUEST_MAX_BYTES: Final = 1_048_576
#: The time between two statistics of a producer with a transactional id, which tell its id and epoch.
STATISTICS_MS: Final = 100
_POLL_S: Final = 0.05


def producer_configuration(
    settings: Settings, bootstrap: Sequence[str], process: int, transactional_id: str | None = None
) -> dict[str, object]:
    """The producer's properties. By default the library chooses acks=all and delivery without limit."""
    own: dict[str, object] = {"message.max.bytes": REQUEST_MAX_BYTES}
    if transactional_id is not None:
        own["statistics.interval.ms"] = STATISTICS_MS
    return producer_properties(settings, process, transactional_id) | _common_properties(settings, bootstrap) | own


def consumer_configuration(
    settings: Settings,
    bootstrap: Sequence[str],
    process: int,
    membership: Membership | None = None,
    isolation: IsolationLevel = "read_uncommitted",
) -> dict[str, object]:
    """The consumer's properties. The library wants the name of a group also if the consumer joins none."""
    own = {"group.id": f"ackproof-no-group-{process}", "fetch.wait.max.ms": fetch_wait_ms(settings)}
    common = own | _common_properties(settings, bootstrap)
    if membership is not None and membership.auto_commit_ms is not None:
        # By default the library commits what it has handed over, processed or not; see _read.
        common |= {"enable.auto.offset.store": False}
    return common | consumer_properties(settings, process, membership, isolation)


def _common_properties(settings: Settings, bootstrap: Sequence[str]) -> dict[str, object]:
    return {
        "bootstrap.servers": ",".join(bootstrap),
        # The client's own limit for a request; it sends request.timeout.ms to the broker.
        "socket.timeout.ms": max(settings.request_timeout_ms, SOCKET_TIMEOUT_MIN_MS),
        "retry.backoff.max.ms": max(settings.retry_backoff_ms, 1_000),
        "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
        "enable.metrics.push": False,
    }


class PolledProducer:
    """librdkafka's producer, and the thread that makes it call back."""

    def __init__(self, configuration: Mapping[str, object]) -> None:
        self.epoch = ToldEpoch()
        self.producer = Producer({**configuration, "stats_cb": self.epoch.on_statistics}, logger=log)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=f"{configuration['client.id']}-poll", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give up all sends under way, call back for each, and end the library's threads and connections.

        Otherwise these would try to reach dead brokers until Python collects the object.
        """
        self.producer.purge()
        self.producer.flush(CLOSE_LIMIT_S)
        self._ended.set()
        self._thread.join(CLOSE_LIMIT_S)
        self.producer.close()

    def _poll(self) -> None:
        while not self._ended.is_set():
            # A fatal error is raised here, once; earlier sends still have to end.
            with suppress(KafkaException):
                self.producer.poll(_POLL_S)


class ConfluentProducer(AdaptedProducer[PolledProducer]):
    """One librdkafka producer. See :class:`workloads.client.Producer`."""

    def __init__(self, clock: ThreadedClock, configuration: Mapping[str, object]) -> None:
        self._offsets_known = configuration["acks"] != 0
        owner: Owner[PolledProducer] = Owner(
            f"{configuration['client.id']}-producer", lambda: PolledProducer(configuration), PolledProducer.close
        )
        limit_ms = milliseconds(configuration, "delivery.timeout.ms") + GRACE_MS
        transactional = "transactional.id" in configuration
        super().__init__(clock, owner, limit_ms, _Transactions(limit_ms / 1_000) if transactional else None)
        self.epochs = self if transactional else None

    def told_epoch(self) -> ProducerEpoch | None:
        """The id and epoch of the latest statistics, if they are the present ones."""
        library = self.owner.library
        return None if library is None else library.epoch.present

    def _waits(self, *_: object) -> bool:
        """Never wait: the library only queues, and refuses where its queue is full."""
        return False

    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: PolledProducer) -> None:
        topic, index = LogPartition.named(partition)
        delivered, headers = partial(self._delivered, ticket), content.header and [(PAYLOAD_HEADER, content.header)]
        try:
            library.producer.produce(topic, content.value, key, index, on_delivery=delivered, headers=headers)
        except (BufferError, KafkaException, ValueError) as error:
            self._refuse(ticket, f"{type(error).__name__}: {error}")

    def _delivered(self, ticket: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            kind = classify(NAMES.get(error.name(), error.name()))
            self._pending.answer(ticket, SendOutcome(kind, error=named(error)))
            return
        offset = message.offset()
        has_offset = self._offsets_known and offset is not None and offset >= 0
        self._acknowledge(ticket, offset if has_offset else None)


class _Transactions:
    """The transactional calls of librdkafka, each with a limit in seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def init(self, library: PolledProducer) -> None:
        """Fence earlier producers."""
        with library.epoch.changing():
            library.producer.init_transactions(self._limit_s)

    def begin(self, library: PolledProducer) -> None:
        """Open a transaction."""
        library.producer.begin_transaction()

    def send_offsets(self, library: PolledProducer, offsets: Mapping[str, int], token: Any) -> None:
        """Add offsets of a group."""
        positions = [_topic_partition(name, offset) for name, offset in offsets.items()]
        library.producer.send_offsets_to_transaction(positions, token, self._limit_s)

    def commit(self, library: PolledProducer) -> None:
        """Commit the open transaction."""
        library.producer.commit_transaction(self._limit_s)

    def abort(self, library: PolledProducer) -> None:
        """Abort the open transaction; the library may ask for a new epoch then (KIP-360)."""
        with library.epoch.changing():
            library.producer.abort_transaction(self._limit_s)

    def told(self, _library: PolledProducer, error: Exception) -> ToldError:
        """The class is the first that librdkafka says of the error."""
        failure = error.args[0] if isinstance(error, KafkaException) else None
        if not isinstance(failure, KafkaError):
            return ToldError(f"{type(error).__name__}: {error}")
        return ToldError.by(
            named(failure),
            fatal=failure.fatal(),
            abortable=failure.txn_requires_abort(),
            retriable=failure.retriable(),
        )


class ConfluentConsumer(AdaptedConsumer[Consumer]):
    """One librdkafka consumer. See :class:`workloads.client.Consumer`."""

    def __init__(
        self, clock: ThreadedClock, configuration: Mapping[str, object], membership: Membership | None = None
    ) -> None:
        self._positions: dict[str, int] = {}
        self._revoked: set[str] = set()
        self._stores = membership is not None and membership.auto_commit_ms is not None
        owner: Owner[Consumer] = Owner(
            f"{configuration['client.id']}-consumer", lambda: Consumer(dict(configuration), logger=log), Consumer.close
        )
        super().__init__(clock, owner, milliseconds(configuration, "socket.timeout.ms"), membership)

    def _assign(self, partitions: tuple[str, ...], from_start: bool, library: Consumer) -> None:
        if from_start:
            self._positions.clear()
        library.assign([_topic_partition(name, self._positions.get(name, OFFSET_BEGINNING)) for name in partitions])

    def _read(self, max_wait_ms: int, library: Consumer) -> PollOutcome:
        """Wait for the first record only; for a full batch the library would wait the whole time.

        What earlier polls brought is processed now, so that a library that commits by itself may commit it.
        """
        if self._stores:
            for name in _held(library).intersection(self._positions):
                with suppress(KafkaException):  # the library has lost it, and will say so in this poll
                    library.store_offsets(offsets=[_topic_partition(name, self._positions[name])])
        first = library.poll(max_wait_ms / 1_000)
        self._revoked.clear()
        messages = [] if first is None else [first, *library.consume(RECORDS_MAX - 1, 0)]
        if self._revoked and first is not None and f"{first.topic()}-{first.partition()}" in self._revoked:
            messages = messages[1:]  # of an assignment that ended inside consume()
        records = tuple(_fetched(message) for message in messages if message.error() is None)
        errors = [named(error) for message in messages if (error := message.error()) is not None]
        self._positions.update({record.partition: record.offset + 1 for record in records})
        kind = EventType.INFO if errors and not records else EventType.OK
        return PollOutcome(kind, records, errors[0] if errors else None)

    def _subscribe(self, topics: tuple[str, ...], on_assigned: Callable[[Assignment], None], library: Consumer) -> None:
        # The library has what it was dealt, or gives it up, only after these calls. It does not tell the generation:
        # what it gives for transactions is not to be read.
        def assigned(_: Consumer, added: Sequence[TopicPartition]) -> None:
            on_assigned(Assignment(tuple(sorted({*_held(library), *map(_name, added)}))))

        def revoked(_: Consumer, lost: Sequence[TopicPartition]) -> None:
            for name in map(_name, lost):
                self._revoked.add(name)
                self._positions.pop(name, None)
            on_assigned(Assignment(tuple(sorted(_held(library).difference(map(_name, lost))))))

        library.subscribe(list(topics), on_assign=assigned, on_revoke=revoked)

    def _commit(self, offsets: Mapping[str, int], library: Consumer) -> Offsets:
        reached = [_topic_partition(name, offset) for name, offset in offsets.items()]
        try:
            return _offsets(library.commit(offsets=reached, asynchronous=False))
        except KafkaException as failure:
            return Offsets({}, named(failure.args[0]))

    def _committed(self, partitions: tuple[str, ...], library: Consumer) -> Offsets:
        try:
            asked = [_topic_partition(name) for name in partitions]
            return _offsets(library.committed(asked, self._request_ms / 1_000))
        except KafkaException as failure:
            return Offsets({}, named(failure.args[0]))

    def _member(self, library: Consumer) -> MemberToken:
        return MemberToken(library.consumer_group_metadata())

    def _ends(self, partitions: tuple[str, ...], library: Consumer) -> Offsets:
        ends: dict[str, int] = {}
        error: str | None = None
        for name in partitions:
            try:
                _, ends[name] = library.get_watermark_offsets(_topic_partition(name), timeout=self._request_ms / 1_000)
            except KafkaException as failure:
                error = named(failure.args[0])
        return Offsets(ends, error)


def named(error: KafkaError) -> str:
    """An error by librdkafka's name, with its words."""
    return without_secrets(f"{error.name()}: {error.str()}")


def _held(library: Consumer) -> set[str]:
    """The log partitions that the library has; none where it is being closed."""
    try:
        return set(map(_name, library.assignment()))
    except KafkaException:
        return set()


def _topic_partition(name: str, offset: int = OFFSET_BEGINNING) -> TopicPartition:
    return TopicPartition(*LogPartition.named(name), offset)


def _name(assigned: TopicPartition) -> str:
    return str(LogPartition(assigned.topic, assigned.partition))


def _offsets(answers: Sequence[TopicPartition]) -> Offsets:
    """The offsets in the library's answers, and the first error."""
    errors = [named(answer.error) for answer in answers if answer.error is not None]
    offsets = {_name(answer): answer.offset for answer in answers if answer.error is None and answer.offset >= 0}
    return Offsets(offsets, errors[0] if errors else None)


def _fetched(message: Message) -> Fetched:
    partition = f"{message.topic()}-{message.partition()}"
    key, value = message.key() or b"", message.value()
    if value is not None:
        headers = tuple((name, content or b"") for name, content in message.headers() or ())
        return Fetched(partition, message.offset(), key, value, headers=headers)
    header = dict(message.headers() or ()).get(PAYLOAD_HEADER) or b""
    return Fetched(partition, message.offset(), key, header, tombstone=True)


#: The library does not disclose its defaults; the documentation of this release has them.
_RELEASE: Final = {
    "library": f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}"
}


def unfit(librdkafka: tuple[str, int]) -> str:
    """Say why clients with this librdkafka (its version in words and as a number) cannot be used; empty if they can."""
    if librdkafka[1] >= LIBRDKAFKA_MIN:
        return ""
    return (
        f"librdkafka {librdkafka[0]} skips records in consume() (librdkafka #4844, fixed in 2.13.2); "
        'install it with: pip install "confluent-kafka>=2.13.2"'
    )


CONFLUENT: Final = ClientLibrary(
    producer_configuration=producer_configuration,
    consumer_configuration=consumer_configuration,
    login_settings=login_properties,
    password="sasl.password",  # noqa: S106 - the name of a property
    producer=ConfluentProducer,
    consumer=ConfluentConsumer,
    name=f"confluent-kafka {confluent_kafka.__version__}",
    defaults={"producer": _RELEASE, "consumer": _RELEASE},
    protocols=("classic", "consumer"),
    lacks=NO_OWN_COMMITS,
    unfit=unfit(confluent_kafka.libversion()),
)

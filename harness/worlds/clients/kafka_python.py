"""kafka-python behind the contract of workloads: the client under test, with every setting that matters written out.

The library may give two answers to one send (a batch expires in flight and is answered later). The first counts;
an expired batch is INFO, which no second answer contradicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypeVar

import kafka
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError, RetriableError
from kafka.structs import OffsetAndMetadata

from harness.plan import Security
from harness.worlds.clients.adapter import (
    CLOSE_LIMIT_S,
    GRACE_MS,
    NO_EPOCHS,
    NO_OWN_COMMITS,
    WORDS_MAX,
    AdaptedConsumer,
    AdaptedProducer,
    Content,
)
from harness.worlds.clients.client_thread import Owner, ThreadedClock
from harness.worlds.clients.configuration import (
    METADATA_MAX_AGE_MS,
    consumer_properties,
    fetch_wait_ms,
    milliseconds,
    producer_properties,
)
from harness.worlds.clients.credentials import without_secrets
from harness.worlds.clients.real_clients import ClientLibrary
from harness.worlds.clients.transactions import ToldError
from workloads import (
    GAVE_UP,
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
    SendOutcome,
    Settings,
    classify,
)

Library = TypeVar("Library", KafkaProducer, KafkaConsumer, KafkaAdminClient)


def producer_configuration(
    settings: Settings, bootstrap: Sequence[str], process: int, transactional_id: str | None = None
) -> dict[str, object]:
    """Arguments of ``KafkaProducer``. By default the library chooses acks=all with idempotence (KIP-679)."""
    codec = None if settings.compression_type == "none" else settings.compression_type
    own = {"max_block_ms": settings.request_timeout_ms, "compression_type": codec}
    return (
        _arguments(producer_properties(settings, process, transactional_id))
        | _common_arguments(settings, bootstrap)
        | own
    )


def consumer_configuration(
    settings: Settings,
    bootstrap: Sequence[str],
    process: int,
    membership: Membership | None = None,
    isolation: IsolationLevel = "read_uncommitted",
) -> dict[str, object]:
    """Arguments of ``KafkaConsumer``.

    If the log has lost a position, reading goes on where the logs diverge (KIP-320), or at the start if that is not
    known: ``earliest`` reads again, ``latest`` would skip.
    """
    own = {"group_id": None, "fetch_max_wait_ms": fetch_wait_ms(settings), "max_poll_records": 500}
    common = own | _common_arguments(settings, bootstrap)
    return common | _arguments(consumer_properties(settings, process, membership, isolation))


def security_arguments(security: Security) -> dict[str, object]:
    """The arguments that log a client of this library in, without the password, so that files may have them."""
    arguments: dict[str, object] = {"security_protocol": security.protocol}
    if security.encrypts:
        arguments |= {
            "ssl_check_hostname": True,
            "ssl_cafile": security.ca or None,
            "ssl_certfile": security.certificate or None,
            "ssl_keyfile": security.key or None,
        }
    if security.authenticates:
        arguments |= {"sasl_mechanism": security.mechanism, "sasl_plain_username": security.username}
    return arguments


def _arguments(properties: Mapping[str, object]) -> dict[str, object]:
    """Spell Kafka's names as this library does."""
    return {name.replace(".", "_"): value for name, value in properties.items()}


def _common_arguments(settings: Settings, bootstrap: Sequence[str]) -> dict[str, object]:
    return {
        "bootstrap_servers": list(bootstrap),
        "bootstrap_timeout_ms": settings.request_timeout_ms,
        "request_timeout_ms": settings.request_timeout_ms,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
        "metrics_enabled": False,
    }


class KafkaPythonProducer(AdaptedProducer[KafkaProducer]):
    """One ``KafkaProducer``. See :class:`workloads.client.Producer`."""

    def __init__(self, clock: ThreadedClock, configuration: Mapping[str, object]) -> None:
        # Without an acknowledgement the library invents a success, and its offset.
        self._offsets_known = configuration["acks"] != 0
        # After an error that is fatal to it, an idempotent producer ends every other batch with that same error, also
        # those in flight: so the error of a send proves nothing about it.
        self._errors_prove = not configuration["enable_idempotence"]
        self._error_before: BaseException | None = None
        owner: Owner[KafkaProducer] = Owner(
            f"{configuration['client_id']}-producer", lambda: make(KafkaProducer, configuration), _close_producer
        )
        limit_ms = milliseconds(configuration, "delivery_timeout_ms", "max_block_ms") + GRACE_MS
        transactional = "transactional_id" in configuration
        super().__init__(clock, owner, limit_ms, _Transactions(limit_ms) if transactional else None)

    def _waits(self, partition: str, library: KafkaProducer) -> bool:
        """The library waits for the metadata of a topic that it does not know, or does not know any more."""
        topics = library._metadata._partitions  # noqa: SLF001 - the library's version is pinned
        return _topic_partition(partition).topic not in topics

    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: KafkaProducer) -> None:
        topic, index = _topic_partition(partition)
        headers = [] if content.header is None else [(PAYLOAD_HEADER, content.header)]
        try:
            future = library.send(topic, value=content.value, key=key, partition=index, headers=headers)
        except (KafkaError, ValueError) as error:
            self._refuse(ticket, named(error))
            return
        future.add_callback(partial(self._sent, ticket)).add_errback(partial(self._failed, ticket, self._error_before))

    def _sent(self, ticket: int, metadata: Any) -> None:
        offset = metadata.offset if self._offsets_known and metadata.offset >= 0 else None
        self._acknowledge(ticket, offset)

    def _failed(self, ticket: int, before: BaseException | None, error: BaseException) -> None:
        """End a send with an error; ``before`` was the last error when the record was given to the library.

        The same object again means that the producer had failed for good by then, and has sent nothing since.
        """
        if error is before:
            self._refuse(ticket, f"{GAVE_UP}: {named(error)}")
            return
        self._error_before = error
        kind = classify(type(error).__name__) if self._errors_prove else EventType.INFO
        self._pending.answer(ticket, SendOutcome(kind, error=named(error)))


class _Transactions:
    """The transactional calls of kafka-python, which itself waits for their results without a limit."""

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms

    def init(self, library: KafkaProducer) -> None:
        """Fence earlier producers."""
        library.init_transactions()

    def begin(self, library: KafkaProducer) -> None:
        """Open a transaction."""
        library.begin_transaction()

    def send_offsets(self, library: KafkaProducer, offsets: Mapping[str, int], token: Any) -> None:
        """Add offsets of a group."""
        taken = _commits(offsets)
        self._wait(library, lambda manager: manager.send_offsets_to_transaction(taken, token))

    def commit(self, library: KafkaProducer) -> None:
        """Commit the open transaction."""
        self._wait(library, lambda manager: manager.begin_commit())

    def abort(self, library: KafkaProducer) -> None:
        """Abort the open transaction."""
        self._wait(library, lambda manager: manager.begin_abort())

    def told(self, library: KafkaProducer, error: Exception) -> ToldError:
        """The class is the state of the library's transaction manager, or whether the error's class can be retried."""
        manager = library._transaction_manager  # noqa: SLF001 - the library's version is pinned
        return ToldError.by(
            named(error),
            fatal=manager.has_fatal_error(),
            abortable=manager.has_abortable_error(),
            retriable=isinstance(error, RetriableError),
        )

    def _wait(self, library: KafkaProducer, begin: Callable[[Any], Any]) -> None:
        result = begin(library._transaction_manager)  # noqa: SLF001 - the library's version is pinned
        library._sender.wakeup()  # noqa: SLF001
        if not result.wait(timeout_ms=self._limit_ms):
            raise KafkaTimeoutError(f"no result within {self._limit_ms} ms")


class KafkaPythonConsumer(AdaptedConsumer[KafkaConsumer]):
    """One ``KafkaConsumer``. See :class:`workloads.client.Consumer`."""

    def __init__(
        self, clock: ThreadedClock, configuration: Mapping[str, object], membership: Membership | None = None
    ) -> None:
        self._positions: dict[TopicPartition, int] = {}
        owner: Owner[KafkaConsumer] = Owner(
            f"{configuration['client_id']}-consumer", lambda: make(KafkaConsumer, configuration), _close_consumer
        )
        super().__init__(clock, owner, milliseconds(configuration, "request_timeout_ms"), membership)

    def _assign(self, partitions: tuple[str, ...], from_start: bool, library: KafkaConsumer) -> None:
        assigned = [_topic_partition(name) for name in partitions]
        before = library.assignment()
        library.assign(assigned)
        if from_start:
            library.seek_to_beginning(*assigned)
            return
        for added in set(assigned) - before:
            if added in self._positions:  # the library forgets the position of a partition that was taken away
                library.seek(added, self._positions[added])

    def _read(self, max_wait_ms: int, library: KafkaConsumer) -> PollOutcome:
        try:
            read = library.poll(timeout_ms=max_wait_ms)
        except KafkaError as error:
            return PollOutcome(EventType.INFO, error=named(error))
        self._positions.update({partition: records[-1].offset + 1 for partition, records in read.items()})
        return PollOutcome(EventType.OK, tuple(_fetched(record) for records in read.values() for record in records))

    def _subscribe(
        self, topics: tuple[str, ...], on_assigned: Callable[[Assignment], None], library: KafkaConsumer
    ) -> None:
        library.subscribe(topics, listener=_Rebalances(library, on_assigned))
        # Metadata that arrives after the first join makes its leader join again, and a poll that ends before that join
        # loses the assignment for good (docs/guides/clients.md).
        library.topics()

    def _commit(self, offsets: Mapping[str, int], library: KafkaConsumer) -> Offsets:
        try:
            library.commit(_commits(offsets), timeout_ms=self._request_ms)
        except KafkaError as error:
            return Offsets({}, named(error))
        return Offsets(dict(offsets))

    def _committed(self, partitions: tuple[str, ...], library: KafkaConsumer) -> Offsets:
        committed: dict[str, int] = {}
        error: str | None = None
        for name in partitions:
            try:
                offset = library.committed(_topic_partition(name), timeout_ms=self._request_ms)
            except KafkaError as failure:
                error = named(failure)
            else:
                committed |= {} if offset is None else {name: offset}
        return Offsets(committed, error)

    def _member(self, library: KafkaConsumer) -> MemberToken:
        return MemberToken(library.group_metadata())

    def _ends(self, partitions: tuple[str, ...], library: KafkaConsumer) -> Offsets:
        asked = [_topic_partition(name) for name in partitions]
        try:
            ends, error = library.end_offsets(asked, timeout_ms=self._request_ms), None
        except KafkaError as failure:
            ends, error = self._ask_singly(asked, library), named(failure)
        return Offsets({_name(partition): offset for partition, offset in ends.items()}, error)

    def _ask_singly(self, asked: list[TopicPartition], library: KafkaConsumer) -> dict[TopicPartition, int]:
        """Ask for each partition by itself: asked for all, the library gives no answer if one has no leader."""
        ends: dict[TopicPartition, int] = {}
        for partition in asked:
            try:
                ends.update(library.end_offsets([partition], timeout_ms=self._request_ms))
            except KafkaError:
                continue
        return ends


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports the partitions that a group assigns."""

    def __init__(self, library: KafkaConsumer, on_assigned: Callable[[Assignment], None]) -> None:
        self._library = library
        self._on_assigned = on_assigned

    def on_partitions_assigned(self, _assigned: object) -> None:
        """Report all partitions of the member, which the library has by now."""
        generation = self._library.group_metadata().generation_id
        names = tuple(sorted(map(_name, self._library.assignment())))
        self._on_assigned(Assignment(names, generation if generation > 0 else None))

    def on_partitions_revoked(self, _revoked: object) -> None:
        """Report that all are taken away, as is done before each assignment."""
        self._on_assigned(Assignment(()))


def named(error: BaseException) -> str:
    """The class of an error, by which the table of outcomes knows it, with the broker's words if there are any."""
    words = without_secrets(str(error.args[0]))[:WORDS_MAX] if error.args and error.args[0] else ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _fetched(record: Any) -> Fetched:
    if record.value is not None:
        headers = tuple(record.headers) if record.headers else ()
        return Fetched(_name(record), record.offset, record.key or b"", record.value, headers=headers)
    header = dict(record.headers).get(PAYLOAD_HEADER, b"")
    return Fetched(_name(record), record.offset, record.key or b"", header, tombstone=True)


def _commits(offsets: Mapping[str, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {_topic_partition(name): OffsetAndMetadata(offset, "", -1) for name, offset in offsets.items()}


@cache
def _topic_partition(name: str) -> TopicPartition:
    return TopicPartition(*LogPartition.named(name))


def _name(record: Any) -> str:
    return str(LogPartition(record.topic, record.partition))


def make(library: type[Library], configuration: Mapping[str, object], **limits: int) -> Library:
    """A producer, consumer or administration client; ``limits`` are arguments of the network client inside.

    A constructor that finds no broker raises, and leaves connections and a thread behind: so the network client inside
    is closed then.
    """
    inside: list[Any] = []

    def remember(**given: Any) -> Any:
        inside.append(library.DEFAULT_CONFIG["kafka_client"](**given, **limits))
        connections = inside[-1]._manager  # noqa: SLF001 - the library's version is pinned
        connections._build_transport = partial(_connected, connections, connections._build_transport)  # noqa: SLF001
        return inside[-1]

    try:
        return library(**configuration, kafka_client=remember)
    except BaseException:
        for client in inside:
            client.close()
        raise


async def _connected(connections: Any, connect: Any, node: Any, timeout_at: float) -> Any:
    """``connect`` of the library within its own limit, which it does not keep during the handshake of TLS.

    A frozen broker, or another program on its port, accepts the connection and never answers; calls would wait for
    ever.
    """
    left_ms = max(0.0, timeout_at - time.monotonic()) * 1_000
    return await connections.wait_for(connections.call_soon(connect, node, timeout_at), left_ms)


def _close_producer(producer: KafkaProducer) -> None:
    # close() first flushes, and raises with its thread running if a fault holds a batch back. The public interface
    # cannot give up, so this asks the sender itself; the library's version is pinned.
    producer._sender.force_close()  # noqa: SLF001
    producer.close(timeout=CLOSE_LIMIT_S)


def _close_consumer(consumer: KafkaConsumer) -> None:
    consumer.close(autocommit=False, timeout_ms=int(CLOSE_LIMIT_S * 1_000))


KAFKA_PYTHON: Final = ClientLibrary(
    producer_configuration=producer_configuration,
    consumer_configuration=consumer_configuration,
    login_settings=security_arguments,
    password="sasl_plain_password",  # noqa: S106 - the name of an argument
    rack="client_rack",
    producer=KafkaPythonProducer,
    consumer=KafkaPythonConsumer,
    name=f"kafka-python {kafka.__version__}",
    defaults={"producer": KafkaProducer.DEFAULT_CONFIG, "consumer": KafkaConsumer.DEFAULT_CONFIG},
    lacks={**NO_EPOCHS, **NO_OWN_COMMITS},
)

"""Kafka's own Java client behind the contract of workloads, through the bridge to its JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from typing_extensions import override

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
from harness.worlds.clients.configuration import milliseconds
from harness.worlds.clients.credentials import without_secrets
from harness.worlds.clients.java import configuration, frames
from harness.worlds.clients.java.bridge import Bridge, JavaExceptionError, error_in
from harness.worlds.clients.java.frames import Answer, End, Method
from harness.worlds.clients.real_clients import ClientLibrary
from harness.worlds.clients.transactions import ToldError
from workloads import (
    Assignment,
    ErrorClass,
    EventType,
    Fetched,
    Membership,
    MemberToken,
    Offsets,
    PollOutcome,
    SendOutcome,
    classify,
)

#: Constructors start threads and read files; they wait for no broker.
_NEW_LIMIT_S: Final = 30.0
_GRACE_S: Final = GRACE_MS / 1_000
#: The start of a log partition, as the bridge takes it.
_BEGINNING: Final = -1
#: The first release whose consumers know the protocol of KIP-848 as finished.
BROKERS_ASSIGN_SINCE: Final = (4, 0, 0)
#: Errors of a call to the bridge.
_ERRORS: Final = (JavaExceptionError, TimeoutError, OSError)
#: The class of an error, by the end of the call with which the bridge tells it.
_CLASSES: Final = {
    End.FATAL: ErrorClass.FATAL,
    End.ABORTABLE: ErrorClass.ABORTABLE,
    End.RETRIABLE: ErrorClass.RETRIABLE,
}


@dataclass(frozen=True)
class RemoteClient:
    """A producer or consumer in the JVM."""

    bridge: Bridge
    number: int

    @classmethod
    def make(cls, bridge: Bridge, method: Method, configured: Mapping[str, object]) -> RemoteClient:
        """Make a client; one that cannot be made leaves nothing behind."""
        client = cls(bridge, bridge.new_client())
        try:
            client.call(method, frames.properties(configuration.for_java(configured)), _NEW_LIMIT_S)
        except Exception:
            client.close()
            raise
        return client

    def call(
        self, method: Method, arguments: bytes, limit_s: float, on_event: Callable[[Answer], None] | None = None
    ) -> Answer:
        """Do a call and wait for its end; raises as :meth:`Bridge.call`."""
        return self.bridge.call(method, self.number, arguments, limit_s, on_event)

    def wake_up(self) -> None:
        """Have a consumer's call that waits raise an exception now."""
        with suppress(OSError):
            self.bridge.post(Method.WAKE_UP, self.number, b"", None)

    def close(self) -> None:
        """Close the client within the limit, and end its thread."""
        arguments = frames.number(round(CLOSE_LIMIT_S * 1_000))
        self.bridge.call(Method.CLOSE, self.number, arguments, CLOSE_LIMIT_S + _GRACE_S)


class JavaProducer(AdaptedProducer[RemoteClient]):
    """One ``KafkaProducer`` of Java. See :class:`workloads.client.Producer`."""

    def __init__(self, bridge: Bridge, clock: ThreadedClock, configured: Mapping[str, object]) -> None:
        owner: Owner[RemoteClient] = Owner(
            f"{configured['client.id']}-producer",
            lambda: RemoteClient.make(bridge, Method.NEW_PRODUCER, configured),
            RemoteClient.close,
        )
        limit_ms = milliseconds(configured, "delivery.timeout.ms", "max.block.ms") + GRACE_MS
        transactional = "transactional.id" in configured
        super().__init__(clock, owner, limit_ms, _Transactions(limit_ms / 1_000) if transactional else None)

    @override
    def _waits(self, *_: object) -> bool:
        """Never wait: the client's thread in the JVM waits for metadata and for room."""
        return False

    @override
    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: RemoteClient) -> None:
        record = (
            frames.partition(partition) + frames.text(key) + frames.text(content.value) + frames.text(content.header)
        )
        try:
            library.bridge.post(Method.SEND, library.number, record, partial(self._ended, ticket))
        except OSError as error:
            self._refuse(ticket, named(error))

    def _ended(self, ticket: int, answer: Answer | None) -> None:
        """End a send on the thread that reads answers; without an answer its time limit ends it."""
        if answer is None:
            return
        if answer.end is End.DONE:
            offset = answer.long()
            self._acknowledge(ticket, offset if offset >= 0 else None)
            return
        error = error_in(answer)
        if error.end is End.REFUSED:
            self._refuse(ticket, named(error))
        else:
            self._pending.answer(ticket, SendOutcome(classify(error.name), error=named(error)))


class GroupMetadata(NamedTuple):
    """A member's group and generation, as ``ConsumerGroupMetadata`` of Java has them."""

    group: str
    generation: int
    member: str
    instance: str | None


class _Transactions:
    """The transactional calls of a producer; each waits at most ``max.block.ms`` in the JVM."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def init(self, library: RemoteClient) -> None:
        """Fence earlier producers."""
        library.call(Method.INIT_TRANSACTIONS, b"", self._limit_s)

    def begin(self, library: RemoteClient) -> None:
        """Open a transaction."""
        library.call(Method.BEGIN_TRANSACTION, b"", self._limit_s)

    def send_offsets(self, library: RemoteClient, offsets: Mapping[str, int], token: Any) -> None:
        """Add offsets of the group of the :class:`GroupMetadata` ``token``."""
        member = frames.text(token.group) + frames.number(token.generation) + frames.text(token.member)
        arguments = frames.offsets(offsets) + member + frames.text(token.instance)
        library.call(Method.SEND_OFFSETS, arguments, self._limit_s)

    def commit(self, library: RemoteClient) -> None:
        """Commit the open transaction."""
        library.call(Method.COMMIT_TRANSACTION, b"", self._limit_s)

    def abort(self, library: RemoteClient) -> None:
        """Abort the open transaction."""
        library.call(Method.ABORT_TRANSACTION, b"", self._limit_s)

    def told(self, _library: RemoteClient, error: Exception) -> ToldError:
        """The class is the state of the producer's transaction manager, or whether the exception can be retried."""
        return ToldError(named(error), _CLASSES.get(error.end) if isinstance(error, JavaExceptionError) else None)


class JavaConsumer(AdaptedConsumer[RemoteClient]):
    """One ``KafkaConsumer`` of Java. See :class:`workloads.client.Consumer`."""

    def __init__(
        self,
        bridge: Bridge,
        clock: ThreadedClock,
        configured: Mapping[str, object],
        membership: Membership | None = None,
    ) -> None:
        self._positions: dict[str, int] = {}
        owner: Owner[RemoteClient] = Owner(
            f"{configured['client.id']}-consumer",
            lambda: RemoteClient.make(bridge, Method.NEW_CONSUMER, configured),
            RemoteClient.close,
        )
        # By KIP-848 a thread of the library's own moves the epoch on, so it may be later than the assignment.
        self._classic = membership is not None and membership.protocol == "classic"
        super().__init__(clock, owner, milliseconds(configured, "request.timeout.ms"), membership)

    @override
    def close(self) -> None:
        """Close, and wake the client up if it waits in a poll or a commit."""
        library = self.owner.library
        super().close()
        if library is not None:
            library.wake_up()

    @override
    def _assign(self, partitions: tuple[str, ...], from_start: bool, library: RemoteClient) -> None:
        if from_start:
            self._positions.clear()
        begins = {name: self._positions.get(name, _BEGINNING) for name in partitions}
        library.call(Method.ASSIGN, frames.offsets(begins), self._limit_s())

    @override
    def _subscribe(
        self, topics: tuple[str, ...], on_assigned: Callable[[Assignment], None], library: RemoteClient
    ) -> None:
        def on_event(event: Answer) -> None:
            partitions, generation = tuple(sorted(event.partitions())), event.number()
            on_assigned(Assignment(partitions, generation if self._classic and generation > 0 else None))

        library.call(Method.SUBSCRIBE, frames.texts(topics), self._limit_s(), on_event)

    @override
    def _read(self, max_wait_ms: int, library: RemoteClient) -> PollOutcome:
        try:
            answer = library.call(Method.POLL, frames.number(max_wait_ms), self._limit_s() + max_wait_ms / 1_000)
        except _ERRORS as error:
            return PollOutcome(EventType.INFO, error=named(error))
        records = tuple(_fetched(answer))
        self._positions.update({record.partition: record.offset + 1 for record in records})
        return PollOutcome(EventType.OK, records)

    @override
    def _ends(self, partitions: tuple[str, ...], library: RemoteClient) -> Offsets:
        return self._asked(Method.ENDS, partitions, library)

    @override
    def _commit(self, offsets: Mapping[str, int], library: RemoteClient) -> Offsets:
        arguments = frames.number(self._request_ms) + frames.offsets(offsets)
        try:
            library.call(Method.COMMIT, arguments, self._limit_s())
        except _ERRORS as error:
            return Offsets({}, named(error))
        return Offsets(dict(offsets))

    @override
    def _committed(self, partitions: tuple[str, ...], library: RemoteClient) -> Offsets:
        return self._asked(Method.COMMITTED, partitions, library)

    @override
    def _member(self, library: RemoteClient) -> MemberToken:
        try:
            answer = library.call(Method.MEMBERSHIP, b"", self._limit_s())
        except _ERRORS as error:
            return MemberToken(None, named(error))
        return MemberToken(GroupMetadata(answer.text(), answer.number(), answer.text(), answer.text() or None))

    def _asked(self, method: Method, partitions: Sequence[str], library: RemoteClient) -> Offsets:
        """Ask for offsets; the answer has those that are known, and the first error."""
        arguments = frames.number(self._request_ms) + frames.partitions(partitions)
        try:
            answer = library.call(method, arguments, self._limit_s(1 + len(partitions)))
        except _ERRORS as error:
            return Offsets({}, named(error))
        offsets = answer.offsets()
        return Offsets(offsets, named(error_in(answer)) if answer.number() else None)

    def _limit_s(self, requests: int = 1) -> float:
        return requests * self._request_ms / 1_000 + _GRACE_S


def named(error: BaseException) -> str:
    """The class of an error, by which the table of outcomes knows it, with its words."""
    name = error.name if isinstance(error, JavaExceptionError) else type(error).__name__
    words = without_secrets(error.words if isinstance(error, JavaExceptionError) else str(error))[:WORDS_MAX]
    return f"{name}: {words}" if words else name


def _fetched(answer: Answer) -> Sequence[Fetched]:
    records: list[Fetched] = []
    for _ in range(answer.number()):
        partition = answer.partition()
        for _ in range(answer.number()):
            offset, key, value, header = answer.long(), answer.bytes(), answer.bytes(), answer.bytes()
            payload = header or b"" if value is None else value
            records.append(Fetched(partition, offset, key or b"", payload, tombstone=value is None))
    return records


def java_library(bridge: Bridge) -> ClientLibrary:
    """The clients of the run that ``bridge`` belongs to."""
    library = {"library": f"kafka-clients {bridge.release} (Java)"}
    brokers_assign = tuple(int(part) for part in bridge.release.split(".") if part) >= BROKERS_ASSIGN_SINCE
    return ClientLibrary(
        producer_configuration=configuration.producer_configuration,
        consumer_configuration=configuration.consumer_configuration,
        login_settings=configuration.security_properties,
        password=configuration.PASSWORD,
        producer=partial(JavaProducer, bridge),
        consumer=partial(JavaConsumer, bridge),
        name=f"java {bridge.release}",
        defaults={role: library | own for role, own in bridge.defaults.items()},
        protocols=("classic", "consumer") if brokers_assign else ("classic",),
        lacks={**NO_EPOCHS, **NO_OWN_COMMITS},
    )

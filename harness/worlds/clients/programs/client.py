"""Clients of a program behind the contract of workloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

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
from harness.worlds.clients.configuration import login_properties, milliseconds
from harness.worlds.clients.credentials import without_secrets
from harness.worlds.clients.programs import configuration
from harness.worlds.clients.programs.messages import (
    CAPABILITIES,
    Answer,
    End,
    Method,
    ProgramCall,
    ToldClass,
    ToldPartition,
    offsets_of,
    partitions_of,
    properties_of,
)
from harness.worlds.clients.programs.process import ClientError, ClientProcess, error_in
from harness.worlds.clients.real_clients import ClientLibrary
from harness.worlds.clients.transactions import ToldError
from workloads import (
    PAYLOAD_HEADER,
    Assignment,
    ClientCapability,
    ErrorClass,
    EventType,
    Fetched,
    LogPartition,
    Membership,
    MemberToken,
    Offsets,
    PollOutcome,
    SendOutcome,
)

#: Constructors start threads and read files; they wait for no broker.
_NEW_LIMIT_S: Final = 30.0
_GRACE_S: Final = GRACE_MS / 1_000
#: Errors of a call to a program.
_ERRORS: Final = (ClientError, TimeoutError, OSError)
#: The classes of errors that decide what follows in a transaction; the others leave that to the error's name.
_CLASSES: Final = {
    ToldClass.FATAL: ErrorClass.FATAL,
    ToldClass.ABORTABLE: ErrorClass.ABORTABLE,
    ToldClass.RETRIABLE: ErrorClass.RETRIABLE,
}
#: Kafka's properties in the form in which the program takes them.
Spelling = Callable[[Mapping[str, object]], Mapping[str, object]]


@dataclass(frozen=True)
class StartedProgram:
    """A program that runs.

    Attributes:
        spelled: the form in which it takes properties.
        judged: what the name of an error proves of a send that its library took; that of a library
            whose errors are not known proves nothing.
    """

    process: ClientProcess
    spelled: Spelling = dict
    judged: Callable[[str], EventType] = lambda _: EventType.INFO

    def has(self, capability: ClientCapability) -> bool:
        """True if its clients have this capability."""
        return capability in self.process.hello.capabilities


@dataclass
class RemoteClient:
    """A producer or consumer in the program. ``ending`` is the call that ends it."""

    process: ClientProcess
    number: int
    ending: Method = Method.CLOSE

    @classmethod
    def make(cls, program: StartedProgram, method: Method, configured: Mapping[str, object]) -> RemoteClient:
        """Make a client; one that cannot be made leaves nothing behind."""
        client = cls(program.process, program.process.new_client())
        try:
            client.call(method, _NEW_LIMIT_S, properties=properties_of(program.spelled(configured)))
        except Exception:
            client.close()
            raise
        return client

    def call(
        self, method: Method, limit_s: float, on_event: Callable[[Answer], None] | None = None, **arguments: Any
    ) -> Answer:
        """Do a call and wait for its end; raises as :meth:`ClientProcess.call`."""
        return self.process.call(ProgramCall(method=method, client=self.number, **arguments), limit_s, on_event)

    def wake_up(self) -> None:
        """Have a consumer's call that waits raise an exception now."""
        self.process.wake_up(self.number)

    def close(self) -> None:
        """End the client within the limit."""
        self.call(self.ending, CLOSE_LIMIT_S + _GRACE_S, timeout_ms=round(CLOSE_LIMIT_S * 1_000))


class ProgramProducer(AdaptedProducer[RemoteClient]):
    """One producer of a program. See :class:`workloads.client.Producer`."""

    def __init__(self, program: StartedProgram, clock: ThreadedClock, configured: Mapping[str, object]) -> None:
        owner: Owner[RemoteClient] = Owner(
            f"{configured['client.id']}-producer",
            lambda: RemoteClient.make(program, Method.NEW_PRODUCER, configured),
            RemoteClient.close,
        )
        limit_ms = milliseconds(configured, "delivery.timeout.ms", "max.block.ms") + GRACE_MS
        self._limit_s = limit_ms / 1_000
        transactional = "transactional.id" in configured and program.has(ClientCapability.TRANSACTIONS)
        super().__init__(clock, owner, limit_ms, _Transactions(self._limit_s) if transactional else None)
        self._judged = program.judged
        if not program.has(ClientCapability.TOMBSTONES):
            self.tombstones = None

    @override
    def crash(self) -> None:
        """End every send that is open, and have the program drop the client: nothing is flushed."""
        if (library := self.owner.library) is not None:
            library.ending = Method.CRASH
        super().crash()

    @override
    def _waits(self, *_: object) -> bool:
        """Never wait: the program waits for metadata and for room."""
        return False

    @override
    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: RemoteClient) -> None:
        topic, number = LogPartition.named(partition)
        headers = None if content.header is None else {PAYLOAD_HEADER: content.header}
        call = ProgramCall(
            method=Method.SEND,
            client=library.number,
            topic=topic,
            partition=number,
            key=key,
            value=content.value,
            headers=headers,
        )
        try:
            library.process.post(call, partial(self._ended, ticket), self._limit_s)
        except OSError as error:
            self._refuse(ticket, named(error))

    def _ended(self, ticket: int, answer: Answer | None) -> None:
        """End a send on the thread that reads answers; without an answer its time limit ends it."""
        if answer is None:
            return
        if answer.end is End.OK:
            self._acknowledge(ticket, answer.offset)
            return
        error = error_in(answer)
        if error.told_class is ToldClass.REFUSED:
            self._refuse(ticket, named(error))
        else:
            self._pending.answer(ticket, SendOutcome(self._judged(error.name), error=named(error)))


class _Transactions:
    """The transactional calls of a producer, each with a limit in seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def init(self, library: RemoteClient) -> None:
        """Fence earlier producers."""
        library.call(Method.INIT_TRANSACTIONS, self._limit_s)

    def begin(self, library: RemoteClient) -> None:
        """Open a transaction."""
        library.call(Method.BEGIN_TRANSACTION, self._limit_s)

    def send_offsets(self, library: RemoteClient, offsets: Mapping[str, int], token: Any) -> None:
        """Add offsets of the group of the member ``token``, as the program told it."""
        library.call(Method.SEND_OFFSETS, self._limit_s, offsets=offsets_of(offsets), member=token)

    def commit(self, library: RemoteClient) -> None:
        """Commit the open transaction."""
        library.call(Method.COMMIT_TRANSACTION, self._limit_s)

    def abort(self, library: RemoteClient) -> None:
        """Abort the open transaction."""
        library.call(Method.ABORT_TRANSACTION, self._limit_s)

    def told(self, _library: RemoteClient, error: Exception) -> ToldError:
        """The class is the program's own word."""
        return ToldError(named(error), _CLASSES.get(error.told_class) if isinstance(error, ClientError) else None)


class ProgramConsumer(AdaptedConsumer[RemoteClient]):
    """One consumer of a program. See :class:`workloads.client.Consumer`.

    A poll that the program answers after its limit goes on: the next one gets its records.
    """

    def __init__(
        self,
        program: StartedProgram,
        clock: ThreadedClock,
        configured: Mapping[str, object],
        membership: Membership | None = None,
    ) -> None:
        owner: Owner[RemoteClient] = Owner(
            f"{configured['client.id']}-consumer",
            lambda: RemoteClient.make(program, Method.NEW_CONSUMER, configured),
            RemoteClient.close,
        )
        self._positions: dict[str, int | None] = {}
        self._poll: Future[Answer | None] | None = None
        # By KIP-848 a thread of the library's own moves the epoch on, so it may be later than the assignment.
        self._classic = membership is not None and membership.protocol == "classic"
        super().__init__(clock, owner, milliseconds(configured, "request.timeout.ms"), membership)
        if not program.has(ClientCapability.SUBSCRIPTION):
            self.subscription = None
        if not program.has(ClientCapability.COMMITS):
            self.commits = None

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
        self._poll = None
        begins = {name: self._positions.get(name) for name in partitions}
        library.call(Method.ASSIGN, self._limit_s(), offsets=offsets_of(begins))

    @override
    def _subscribe(
        self, topics: tuple[str, ...], on_assigned: Callable[[Assignment], None], library: RemoteClient
    ) -> None:
        def on_event(event: Answer) -> None:
            generation = event.generation or 0
            on_assigned(Assignment(_names(event.partitions), generation if self._classic and generation > 0 else None))

        library.call(Method.SUBSCRIBE, self._limit_s(), on_event, topics=topics)

    @override
    def _read(self, max_wait_ms: int, library: RemoteClient) -> PollOutcome:
        limit_s = self._limit_s() + max_wait_ms / 1_000
        try:
            if self._poll is None:
                call = ProgramCall(method=Method.POLL, client=library.number, timeout_ms=max_wait_ms)
                self._poll = library.process.begin(call, limit_s)
            answer = library.process.ended(self._poll, limit_s)
        except _ERRORS as error:
            if not isinstance(error, TimeoutError):
                self._poll = None
            return PollOutcome(EventType.INFO, error=named(error))
        self._poll = None
        records = tuple(_fetched(answer))
        self._positions.update({record.partition: record.offset + 1 for record in records})
        return PollOutcome(EventType.OK, records)

    @override
    def _ends(self, partitions: tuple[str, ...], library: RemoteClient) -> Offsets:
        return self._asked(Method.ENDS, partitions, library)

    @override
    def _commit(self, offsets: Mapping[str, int], library: RemoteClient) -> Offsets:
        try:
            library.call(Method.COMMIT, self._limit_s(), offsets=offsets_of(offsets), timeout_ms=self._request_ms)
        except _ERRORS as error:
            return Offsets({}, named(error))
        return Offsets(dict(offsets))

    @override
    def _committed(self, partitions: tuple[str, ...], library: RemoteClient) -> Offsets:
        return self._asked(Method.COMMITTED, partitions, library)

    @override
    def _member(self, library: RemoteClient) -> MemberToken:
        try:
            answer = library.call(Method.MEMBERSHIP, self._limit_s())
        except _ERRORS as error:
            return MemberToken(None, named(error))
        return MemberToken(answer.member)

    def _asked(self, method: Method, partitions: tuple[str, ...], library: RemoteClient) -> Offsets:
        """Ask for offsets; the answer has those that are known, and the first error."""
        limit_s = self._limit_s(1 + len(partitions))
        try:
            answer = library.call(method, limit_s, partitions=partitions_of(partitions), timeout_ms=self._request_ms)
        except _ERRORS as error:
            return Offsets({}, named(error))
        offsets = {each.name: each.offset for each in answer.offsets or () if each.offset is not None}
        return Offsets(offsets, named(error_in(answer)) if answer.error else None)

    def _limit_s(self, requests: int = 1) -> float:
        return requests * self._request_ms / 1_000 + _GRACE_S


def named(error: BaseException) -> str:
    """The class of an error, by which the table of outcomes knows it, with its words."""
    name = error.name if isinstance(error, ClientError) else type(error).__name__
    words = without_secrets(error.words if isinstance(error, ClientError) else str(error))[:WORDS_MAX]
    return f"{name}: {words}" if words else name


def _names(partitions: list[ToldPartition] | None) -> tuple[str, ...]:
    return tuple(sorted(each.name for each in partitions or ()))


def _fetched(answer: Answer) -> list[Fetched]:
    records: list[Fetched] = []
    for record in answer.records or ():
        header = (record.headers or {}).get(PAYLOAD_HEADER, b"")
        payload = header if record.value is None else record.value
        records.append(Fetched(record.name, record.offset, record.key or b"", payload, tombstone=record.value is None))
    return records


def program_library(program: StartedProgram) -> ClientLibrary:
    """The clients of the run that ``program`` belongs to."""
    hello = program.process.hello
    name = f"{hello.name} {hello.version}"
    lacking = {each: f"the client program {name} has no {each.value}" for each in CAPABILITIES if not program.has(each)}
    return ClientLibrary(
        producer_configuration=configuration.producer_configuration,
        consumer_configuration=configuration.consumer_configuration,
        login_settings=login_properties,
        password=configuration.PASSWORD,
        producer=partial(ProgramProducer, program),
        consumer=partial(ProgramConsumer, program),
        name=name,
        defaults={role: {"library": name, **hello.defaults.get(role, {})} for role in ("producer", "consumer")},
        protocols=hello.protocols,
        lacks={**NO_EPOCHS, **NO_OWN_COMMITS, **lacking},
    )

"""Base classes of adapters of clients with threads: the order of calls, their limits, and their ends.

The adapter of a library says how to make and unmake it, and how to do one send, one poll and one question. Methods are
called on the clock's thread; answers come on the owner's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Generic, NamedTuple

from harness.worlds.clients.client_thread import OUTSTANDING_MAX, Library, Owner, Pending, ThreadedClock
from harness.worlds.clients.transactions import AdaptedTransactions, LibraryTransactions
from workloads import (
    CLIENT_CLOSED,
    CLIENT_CRASHED,
    NEVER_SENT,
    TIME_LIMIT,
    Assignment,
    ClientCapability,
    Commits,
    Epochs,
    EventType,
    Fetched,
    Membership,
    MemberToken,
    Offsets,
    OwnCommits,
    PollOutcome,
    SendOutcome,
    Subscription,
    Tombstones,
    classify,
)

#: The time beyond the client's own limit after which the adapter answers in its place.
GRACE_MS: Final = 1_000
#: The limit of a forced close, which does not wait for the network.
CLOSE_LIMIT_S: Final = 1.0
#: The longest text of a broker or a client that is kept with an error.
WORDS_MAX: Final = 200
#: The capability that every real library lacks, and why.
NO_OWN_COMMITS: Final = {
    ClientCapability.OWN_COMMITS: "the library does not tell when it begins a commit by itself",
}
#: The capability that kafka-python and the Java client lack, and why.
NO_EPOCHS: Final = {
    ClientCapability.EPOCHS: "no call of the library tells the id and epoch of a producer",
}
_TOO_LATE: Final = SendOutcome(EventType.INFO, error=TIME_LIMIT)


class Content(NamedTuple):
    """The content of a record: its value, or, of a tombstone, its header."""

    value: bytes | None
    header: bytes | None = None


class AdaptedProducer(ABC, Generic[Library]):
    """A producer behind :class:`workloads.client.Producer`. Every send ends within ``limit_ms``."""

    def __init__(
        self,
        clock: ThreadedClock,
        owner: Owner[Library],
        limit_ms: int,
        transactions: LibraryTransactions[Library] | None = None,
    ) -> None:
        self._limit_ms = limit_ms
        self._now_us = clock.now_us
        self._pending: Pending[SendOutcome] = Pending(clock)
        self._closed = False
        self.owner = owner
        self.tombstones: Tombstones | None = self
        self.epochs: Epochs | None = None
        self.transactions: AdaptedTransactions[Library] | None = None
        if transactions is not None:
            self.transactions = AdaptedTransactions(clock, owner, limit_ms, transactions)

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Give a record to the library; a closed client refuses it."""
        self._give(partition, key, Content(payload), done)

    def send_tombstone(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Give a record without a value to the library; a closed client refuses it."""
        self._give(partition, key, Content(None, payload), done)

    def close(self) -> None:
        """End every send that is open as INFO, and stop the thread."""
        self._end(CLIENT_CLOSED)

    def crash(self) -> None:
        """Close, which is the nearest to a crash that the libraries allow.

        Nothing is flushed, sends under way are given up, and the sockets close at once, as the kernel closes those of
        a killed process. A call that waits inside the library delays this by at most its limit (request.timeout.ms).
        """
        self._end(CLIENT_CRASHED)

    def _end(self, error: str) -> None:
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._pending.answer_all(SendOutcome(EventType.INFO, error=error))
            if self.transactions is not None:
                self.transactions.end(error)

    @abstractmethod
    def _send(self, ticket: int, partition: str, key: bytes, content: Content, library: Library) -> None:
        """Give the record to the library, and answer the ticket when the library answers."""

    def _begin(self, done: Callable[[SendOutcome], None]) -> int:
        return self._pending.begin(done, self._limit_ms, _TOO_LATE)

    @abstractmethod
    def _waits(self, partition: str, library: Library) -> bool:
        """True if a send to this log partition may make its caller wait now."""

    def _give(self, partition: str, key: bytes, content: Content, done: Callable[[SendOutcome], None]) -> None:
        """Send a record: now if that need not wait, else on the library's thread unless the send ends before."""
        ticket = self._begin(done)
        job = partial(self._send, ticket, partition, key, content)
        if self._closed:
            self._refuse(ticket, "the client is closed")
        elif len(self._pending) > OUTSTANDING_MAX:
            self._refuse(ticket, f"{OUTSTANDING_MAX} sends are outstanding")
        elif (library := self.owner.idle) is not None and not self._waits(partition, library):
            self.owner.do(job, library)
        else:
            self.owner.submit(lambda library: job(library) if self._pending.waits(ticket) else None)

    def _acknowledge(self, ticket: int, offset: int | None) -> None:
        """End a send as acknowledged now. Any thread may call this."""
        self._pending.answer(ticket, SendOutcome(EventType.OK, offset, answered_us=self._now_us()))

    def _refuse(self, ticket: int, why: str) -> None:
        self._pending.answer(ticket, SendOutcome(classify(NEVER_SENT), error=f"{NEVER_SENT}: {why}"))


class AdaptedConsumer(ABC, Generic[Library]):
    """A consumer behind :class:`workloads.client.Consumer`; one request has ``request_ms``.

    ``membership`` is that of the group that it may join, if any.
    """

    def __init__(
        self, clock: ThreadedClock, owner: Owner[Library], request_ms: int, membership: Membership | None
    ) -> None:
        self._clock = clock
        self._request_ms = request_ms
        self._polls: Pending[PollOutcome] = Pending(clock)
        self._questions: Pending[Offsets] = Pending(clock)
        self._tokens: Pending[MemberToken] = Pending(clock)
        self._late: tuple[Fetched, ...] = ()
        self._closed = False
        self.owner = owner
        self.subscription: Subscription | None = self if membership else None
        self.commits: Commits | None = self if membership else None
        self.own_commits: OwnCommits | None = None

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """Have the library read ``partitions`` from now on."""
        self.owner.submit(partial(self._assign, tuple(partitions), from_start))

    def subscribe(self, topics: Sequence[str], changed: Callable[[Assignment], None]) -> None:
        """Have the library join the group; ``changed`` is called on the clock's thread."""

        def on_assigned(assigned: Assignment) -> None:
            self._clock.post(partial(changed, assigned))

        self.owner.submit(partial(self._subscribe, tuple(topics), on_assigned))

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """Have the library poll; a closed client ends the call as INFO."""
        too_late = PollOutcome(EventType.INFO, error=TIME_LIMIT)
        ticket = self._polls.begin(done, max_wait_ms + self._request_ms + GRACE_MS, too_late)
        if self._closed:
            self._polls.answer(ticket, PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._poll_waiting, ticket, max_wait_ms))

    def end_offsets(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Ask for the end of each partition, within one request more than there are partitions."""
        self._ask(1 + len(partitions), partial(self._ends, tuple(partitions)), done)

    def commit(self, offsets: Mapping[str, int], done: Callable[[Offsets], None]) -> None:
        """Commit these offsets, within two requests."""
        self._ask(2, partial(self._commit, offsets), done)

    def ask_committed(self, partitions: Sequence[str], done: Callable[[Offsets], None]) -> None:
        """Ask what the group remembers of each partition, within one request more than there are partitions."""
        self._ask(1 + len(partitions), partial(self._committed, tuple(partitions)), done)

    def ask_member(self, done: Callable[[MemberToken], None]) -> None:
        """Ask the library for its group and generation, within one request."""
        ticket = self._tokens.begin(done, self._request_ms + GRACE_MS, MemberToken(None, TIME_LIMIT))
        if self._closed:
            self._tokens.answer(ticket, MemberToken(None, CLIENT_CLOSED))
        else:
            self.owner.submit(lambda library: self._tokens.answer(ticket, self._member(library)))

    def close(self) -> None:
        """End every call that is open as INFO, and stop the thread."""
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._polls.answer_all(PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
            self._questions.answer_all(Offsets({}, CLIENT_CLOSED))
            self._tokens.answer_all(MemberToken(None, CLIENT_CLOSED))

    @abstractmethod
    def _assign(self, partitions: tuple[str, ...], from_start: bool, library: Library) -> None:
        """Read these partitions from now on, each from its start or from the last position."""

    @abstractmethod
    def _subscribe(self, topics: tuple[str, ...], on_assigned: Callable[[Assignment], None], library: Library) -> None:
        """Read these topics from now on; ``on_assigned`` may be called on any thread."""

    @abstractmethod
    def _read(self, max_wait_ms: int, library: Library) -> PollOutcome:
        """Poll once; errors are in the answer."""

    @abstractmethod
    def _ends(self, partitions: tuple[str, ...], library: Library) -> Offsets:
        """Ask for the ends of these partitions; errors are in the answer."""

    @abstractmethod
    def _commit(self, offsets: Mapping[str, int], library: Library) -> Offsets:
        """Commit these offsets; errors are in the answer."""

    @abstractmethod
    def _committed(self, partitions: tuple[str, ...], library: Library) -> Offsets:
        """Ask what the group remembers; errors are in the answer."""

    @abstractmethod
    def _member(self, library: Library) -> MemberToken:
        """The library's group and generation; errors are in the answer."""

    def _poll_waiting(self, ticket: int, max_wait_ms: int, library: Library) -> None:
        if self._polls.waits(ticket):
            outcome = self._read(max_wait_ms, library)
            self._clock.post(partial(self._polled, ticket, outcome))

    def _polled(self, ticket: int, outcome: PollOutcome) -> None:
        """End a poll; records after its time limit wait for the next one, because the position has moved past them."""
        if outcome.type is not EventType.OK:
            self._polls.end(ticket, outcome)
            return
        fetched = self._late + outcome.records
        self._late = () if self._polls.waits(ticket) else fetched
        self._polls.end(ticket, PollOutcome(EventType.OK, fetched, outcome.error))

    def _ask(self, requests: int, question: Callable[[Library], Offsets], done: Callable[[Offsets], None]) -> None:
        """Put a question that takes at most this number of requests to the library."""
        ticket = self._questions.begin(done, requests * self._request_ms + GRACE_MS, Offsets({}, TIME_LIMIT))
        if self._closed:
            self._questions.answer(ticket, Offsets({}, CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._answer_waiting, ticket, question))

    def _answer_waiting(self, ticket: int, question: Callable[[Library], Offsets], library: Library) -> None:
        if self._questions.waits(ticket):
            self._questions.answer(ticket, question(library))

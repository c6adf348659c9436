"""What adapters of clients with threads have in common: the order of calls, their limits, and their ends.

An adapter of another library says how that library is made and unmade, and what one send, one poll and one question for
end offsets are; everything here is called on the clock's thread, everything it says on the owner's.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic

from harness.clients.client_thread import OUTSTANDING_MAX, Library, Owner, Pending
from harness.clients.contract import ThreadedClock
from workloads.client import EndOffsets, Fetched, PollOutcome, SendOutcome
from workloads.errors import CLIENT_CLOSED, CLIENT_CRASHED, NEVER_SENT, TIME_LIMIT, classify
from workloads.operations import EventType

#: What a call may take beyond the client's own limit before the adapter answers in its place.
GRACE_MS: Final = 1_000
#: How long a forced close may take; nothing is waited for on the network.
CLOSE_LIMIT_S: Final = 1.0


class AdaptedProducer(ABC, Generic[Library]):
    """A producer behind :class:`workloads.client.Producer`. Every send ends within ``limit_ms``."""

    def __init__(self, clock: ThreadedClock, owner: Owner[Library], limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._pending: Pending[SendOutcome] = Pending(clock)
        self._closed = False
        self.owner = owner

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """See :meth:`workloads.client.Producer.send`."""
        ticket = self._pending.begin(done, self._limit_ms, SendOutcome(EventType.INFO, error=TIME_LIMIT))
        if self._closed:
            self._refuse(ticket, "the client is closed")
        elif len(self._pending) > OUTSTANDING_MAX:
            self._refuse(ticket, f"{OUTSTANDING_MAX} sends are outstanding")
        else:
            self.owner.submit(partial(self._send_standing, ticket, partition, key, payload))

    def close(self) -> None:
        """See :meth:`workloads.client.Producer.close`."""
        self._end(CLIENT_CLOSED)

    def crash(self) -> None:
        """See :meth:`workloads.client.Producer.crash`.

        The nearest that the libraries allow is what closing is here anyway: nothing is flushed, what is under way is
        given up, and the sockets close at once, as the kernel closes those of a process that was killed. A call that
        waits inside the library holds this up by at most its own limit (request.timeout.ms).
        """
        self._end(CLIENT_CRASHED)

    def _end(self, error: str) -> None:
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._pending.answer_all(SendOutcome(EventType.INFO, error=error))

    @abstractmethod
    def _send(self, ticket: int, partition: str, key: bytes, payload: bytes, library: Library) -> None:
        """Give the record to the library, and answer the ticket when it has answered."""

    def _send_standing(self, ticket: int, partition: str, key: bytes, payload: bytes, library: Library) -> None:
        if self._pending.stands(ticket):
            self._send(ticket, partition, key, payload, library)

    def _refuse(self, ticket: int, why: str) -> None:
        self._pending.answer(ticket, SendOutcome(classify(NEVER_SENT), error=f"{NEVER_SENT}: {why}"))


class AdaptedConsumer(ABC, Generic[Library]):
    """A consumer by assignment behind :class:`workloads.client.Consumer`; one request has ``request_ms``."""

    def __init__(self, clock: ThreadedClock, owner: Owner[Library], request_ms: int) -> None:
        self._clock = clock
        self._request_ms = request_ms
        self._polls: Pending[PollOutcome] = Pending(clock)
        self._ends: Pending[EndOffsets] = Pending(clock)
        self._late: tuple[Fetched, ...] = ()
        self._closed = False
        self.owner = owner

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """See :meth:`workloads.client.Consumer.assign`."""
        self.owner.submit(partial(self._assign, tuple(partitions), from_start))

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """See :meth:`workloads.client.Consumer.poll`."""
        too_late = PollOutcome(EventType.INFO, error=TIME_LIMIT)
        ticket = self._polls.begin(done, max_wait_ms + self._request_ms + GRACE_MS, too_late)
        if self._closed:
            self._polls.answer(ticket, PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._poll_standing, ticket, max_wait_ms))

    def end_offsets(self, partitions: Sequence[str], done: Callable[[EndOffsets], None]) -> None:
        """See :meth:`workloads.client.Consumer.end_offsets`."""
        limit_ms = (1 + len(partitions)) * self._request_ms + GRACE_MS
        ticket = self._ends.begin(done, limit_ms, EndOffsets({}, TIME_LIMIT))
        if self._closed:
            self._ends.answer(ticket, EndOffsets({}, CLIENT_CLOSED))
        else:
            self.owner.submit(partial(self._ask_standing, ticket, tuple(partitions)))

    def close(self) -> None:
        """See :meth:`workloads.client.Consumer.close`."""
        if not self._closed:
            self._closed = True
            self.owner.stop()
            self._polls.answer_all(PollOutcome(EventType.INFO, error=CLIENT_CLOSED))
            self._ends.answer_all(EndOffsets({}, CLIENT_CLOSED))

    @abstractmethod
    def _assign(self, partitions: tuple[str, ...], from_start: bool, library: Library) -> None:
        """Read these partitions from now on, each from its start or from where reading it had come to."""

    @abstractmethod
    def _read(self, max_wait_ms: int, library: Library) -> PollOutcome:
        """One poll; errors are in the answer."""

    @abstractmethod
    def _ask(self, partitions: tuple[str, ...], library: Library) -> EndOffsets:
        """The ends of these partitions; errors are in the answer."""

    def _poll_standing(self, ticket: int, max_wait_ms: int, library: Library) -> None:
        if self._polls.stands(ticket):
            outcome = self._read(max_wait_ms, library)
            self._clock.post(partial(self._polled, ticket, outcome))

    def _polled(self, ticket: int, outcome: PollOutcome) -> None:
        """What came after its poll's time limit is told by the next poll: the position has moved past it already."""
        if outcome.type is not EventType.OK:
            self._polls.end(ticket, outcome)
            return
        fetched = self._late + outcome.records
        self._late = () if self._polls.stands(ticket) else fetched
        self._polls.end(ticket, PollOutcome(EventType.OK, fetched))

    def _ask_standing(self, ticket: int, partitions: tuple[str, ...], library: Library) -> None:
        if self._ends.stands(ticket):
            self._ends.answer(ticket, self._ask(partitions, library))


class AdaptedClients:
    """Remembers what was made for a run, so that all of it is closed, and its threads end within one limit."""

    def __init__(self) -> None:
        self._made: list[AdaptedProducer[Any] | AdaptedConsumer[Any]] = []

    def close(self, limit_s: float) -> list[str]:
        """See :meth:`harness.clients.contract.RealClients.close`."""
        for client in self._made:
            client.close()
        deadline = time.monotonic() + limit_s
        left = [client.owner.join(max(deadline - time.monotonic(), 0)) for client in self._made]
        return [name for name in left if name is not None]

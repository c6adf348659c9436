"""Clients with a fault on purpose, one for each breach: the controls of cells, which must be red with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from harness.lab.client_table import Breach
from workloads import Clients, EventType, Offsets, SendOutcome

Done = Callable[[Any], None]


class Faulty:
    """Something of a client whose other attributes are those of the right one."""

    def __init__(self, right: Any) -> None:
        self.right = right

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)


class FaultyClients(Faulty):
    """Clients whose producers and consumers are of these classes."""

    def __init__(self, right: Clients, producer: type = Faulty, consumer: type = Faulty) -> None:
        super().__init__(right)
        self._producer, self._consumer = producer, consumer

    def producer(self, *arguments: Any) -> Any:
        return self._producer(self.right.producer(*arguments))

    def consumer(self, *arguments: Any) -> Any:
        return self._consumer(self.right.consumer(*arguments))


class Loses(Faulty):
    """Drops the first record, once another one was sent, and says ok of it."""

    kept: Done | None = None

    def send(self, partition: str, key: bytes, payload: bytes, done: Done) -> None:
        if self.kept is None:
            self.kept = done
            # The relay is to see something of it.
            self.right.send(partition, key, b"in its place", lambda _: done(SendOutcome(EventType.OK)))
            return
        self.right.send(partition, key, payload, done)


class Doubles(Faulty):
    """Sends each record again when it was acknowledged."""

    def send(self, partition: str, key: bytes, payload: bytes, done: Done) -> None:
        self.right.send(
            partition, key, payload, lambda first: self.right.send(partition, key, payload, lambda _: done(first))
        )


class Reorders(Faulty):
    """Sends a record before the one that it was given earlier."""

    def __init__(self, right: Any) -> None:
        super().__init__(right)
        self._waiting: list[tuple[Any, ...]] = []
        self._sent = 0

    def send(self, *record: Any) -> None:
        self._sent += 1
        if self._sent == 2:
            self._waiting.append(record)
            return
        self.right.send(*record)
        while self._waiting:
            self.right.send(*self._waiting.pop())


class Denies(Faulty):
    """Says of what was written, or committed, that it certainly was not."""

    @property
    def transactions(self) -> Any:
        return Ends(self.right.transactions, SendOutcome(EventType.FAIL, error="made up"))

    def send(self, partition: str, key: bytes, payload: bytes, done: Done) -> None:
        self.right.send(partition, key, payload, lambda _: done(SendOutcome(EventType.FAIL, error="made up")))


class Believes(Faulty):
    """Commits where it should abort, and says that it is done, however it ended."""

    @property
    def transactions(self) -> Any:
        return Ends(self.right.transactions, SendOutcome(EventType.OK))


class Ends(Faulty):
    """Ends each transaction with a commit, and says something else of it."""

    def __init__(self, right: Any, told: SendOutcome) -> None:
        super().__init__(right)
        self._told = told

    def commit(self, done: Done) -> None:
        self.right.commit(lambda _: done(self._told))

    abort = commit


class Skips(Faulty):
    """Hands over the last record of each poll only."""

    def poll(self, max_wait_ms: int, done: Done) -> None:
        self.right.poll(
            max_wait_ms, lambda outcome: done(msgspec.structs.replace(outcome, records=outcome.records[-1:]))
        )


class Promises(Faulty):
    """Says of each commit that it is done, and makes none."""

    @property
    def commits(self) -> Any:
        return PromisedCommits(self.right.commits)


class PromisedCommits(Faulty):
    """Commits that are not made."""

    def commit(self, offsets: Mapping[str, int], done: Done) -> None:
        self.right.ask_committed(list(offsets), lambda _: done(Offsets(dict(offsets))))


PLANTED: Final[Mapping[Breach, Callable[[Clients], Any]]] = {
    Breach.LOST: lambda clients: FaultyClients(clients, Loses),
    Breach.DOUBLED: lambda clients: FaultyClients(clients, Doubles),
    Breach.REORDERED: lambda clients: FaultyClients(clients, Reorders),
    Breach.DENIED: lambda clients: FaultyClients(clients, Denies),
    Breach.COUNTED: lambda clients: FaultyClients(clients, Believes),
    Breach.SKIPPED: lambda clients: FaultyClients(clients, consumer=Skips),
    Breach.UNTRUE_COMMIT: lambda clients: FaultyClients(clients, Believes, Promises),
}

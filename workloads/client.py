"""The contract between a workload and a world: a clock, producers and consumers.

A workload is written once, against callbacks, and runs in virtual time as on real sockets. Pinned semantics:

* ``done`` is called exactly once per call, by the clock, never before the call has returned.
* Everything runs on the clock's one thread; an adapter with threads of its own hands results over to that thread.
* Every call ends: an adapter answers ``info`` after its own time limit, or when it is closed.
* Nothing is raised for what the log answered; outcomes are data (:class:`SendOutcome`, :class:`PollOutcome`).

Intentionally not part of the contract: batching, retries, metadata refresh. Those are the client's own, and under test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from workloads.operations import EventType


class SendOutcome(msgspec.Struct, frozen=True, gc=False):
    """How a send ended. ``type`` is OK, FAIL or INFO; ``offset`` is None where the log did not tell (acks=0)."""

    type: EventType
    offset: int | None = None
    error: str | None = None
    node: int | None = None


class Fetched(msgspec.Struct, frozen=True, gc=False):
    """One record as the client handed it over, still encoded."""

    partition: str
    offset: int
    key: bytes
    payload: bytes


class PollOutcome(msgspec.Struct, frozen=True):
    """How a poll ended. An empty OK poll is ordinary."""

    type: EventType
    records: tuple[Fetched, ...] = ()
    error: str | None = None


class EndOffsets(msgspec.Struct, frozen=True):
    """Log end offsets by log partition, or an error. Only partitions whose leader answered are named."""

    offsets: dict[str, int]
    error: str | None = None


class Clock(Protocol):
    """Time of a run, in microseconds since it began."""

    def now_us(self) -> int:
        """Now."""
        ...

    def call_at(self, time_us: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, at ``time_us`` or as soon after it as possible."""
        ...


class Producer(Protocol):
    """One producer instance; its overlapping sends are several processes of the history."""

    def send(self, partition: str, key: bytes, payload: bytes, done: Callable[[SendOutcome], None]) -> None:
        """Append one record to ``partition`` ("topic-number")."""
        ...

    def close(self) -> None:
        """Give up: outstanding sends end as INFO. Idempotent."""
        ...

    def crash(self) -> None:
        """Die as if the process had been killed: nothing that waits is sent, no connection is closed in order.

        Outstanding sends end as INFO. Idempotent, and :meth:`close` after it does nothing.
        """
        ...


class Consumer(Protocol):
    """One consumer instance, one process of the history, reading by assignment."""

    def assign(self, partitions: Sequence[str], *, from_start: bool) -> None:
        """Read these log partitions from now on: from their start, or from where this instance stood."""
        ...

    def poll(self, max_wait_ms: int, done: Callable[[PollOutcome], None]) -> None:
        """Records since the last poll, in log order per partition. One poll at a time."""
        ...

    def end_offsets(self, partitions: Sequence[str], done: Callable[[EndOffsets], None]) -> None:
        """Ask the current leaders for the end of the readable log (the high watermark), fresh from the broker."""
        ...

    def close(self) -> None:
        """Idempotent."""
        ...


class Clients(Protocol):
    """Makes clients. ``process``, the first of the instance, names it in the history and to the world."""

    def producer(self, process: int) -> Producer:
        """A new producer with the run's settings."""
        ...

    def consumer(self, process: int) -> Consumer:
        """A new consumer with the run's settings."""
        ...

"""Consumers: each reads its share of the log partitions, by assignment, from the start, poll after poll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from workloads.client import Clients, Clock, Consumer, Fetched, PollOutcome
from workloads.operations import Event, EventType, Function, Poll, Record, Recorder
from workloads.values import decode

#: A poll with at least so many records is followed by the next at once; after a smaller one the consumer rests.
FULL_POLL_RECORDS: Final = 100
#: The least rest after a poll that failed, so that a broken client cannot spin.
REST_MS_MIN: Final = 10


def shares(partitions: Sequence[str], consumers: int) -> list[tuple[str, ...]]:
    """Each consumer's log partitions: dealt out in turn; with more consumers than partitions some are read twice."""
    if consumers >= len(partitions):
        return [(partitions[number % len(partitions)],) for number in range(consumers)]
    return [tuple(partitions[number::consumers]) for number in range(consumers)]


def decoded(records: Sequence[Fetched]) -> Poll:
    """What was read, by log partition in the order received, with the defects that were found."""
    read: dict[str, list[Record]] = {}
    for fetched in records:
        value, defect = decode(fetched.payload, fetched.partition, fetched.key)
        read.setdefault(fetched.partition, []).append(Record(fetched.offset, value, defect))
    return Poll({partition: tuple(found) for partition, found in read.items()})


class Reader:
    """One consumer instance, one process of the history: assigns once, then polls until it is stopped.

    A poll that ends INFO may have moved the instance's position, so the process ends there and ``lost`` is called.
    """

    def __init__(
        self,
        *,
        clients: Clients,
        clock: Clock,
        recorder: Recorder,
        process: int,
        partitions: Sequence[str],
        poll_wait_ms: int,
        on_read: Callable[[Poll], None],
        lost: Callable[[Reader], None],
    ) -> None:
        self._clock = clock
        self._record = recorder.record
        self._on_read = on_read
        self._lost = lost
        self._poll_wait_ms = poll_wait_ms
        self._begun_us = 0
        self._stopped = False
        self.process = process
        self.partitions = tuple(partitions)
        self.consumer: Consumer = clients.consumer(process)

    def start(self) -> None:
        """Assign, and poll from now on; nothing if it was stopped before."""
        if self._stopped:
            return
        now_us = self._clock.now_us()
        for kind in (EventType.INVOKE, EventType.OK):
            self._note(now_us, kind, Function.ASSIGN, partitions=self.partitions)
        self.consumer.assign(self.partitions, from_start=True)
        self._poll()

    def stop(self) -> None:
        """Poll no more and close the client; an open poll ends as INFO."""
        if not self._stopped:
            self._stopped = True
            self.consumer.close()

    def _poll(self) -> None:
        if self._stopped:
            return
        self._begun_us = self._clock.now_us()
        self._note(self._begun_us, EventType.INVOKE, Function.POLL, micro=(Poll(),))
        self.consumer.poll(self._poll_wait_ms, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        now_us = self._clock.now_us()
        read = decoded(outcome.records)
        self._note(now_us, outcome.type, Function.POLL, micro=(read,), error=outcome.error)
        if outcome.type is EventType.OK:
            self._on_read(read)
        if self._stopped:
            return
        if outcome.type is EventType.INFO:
            self.stop()
            self._lost(self)
        elif len(outcome.records) >= FULL_POLL_RECORDS:
            self._poll()
        else:
            self._clock.call_at(self._next_us(now_us), self._poll)

    def _note(
        self,
        time_us: int,
        kind: EventType,
        function: Function,
        *,
        micro: tuple[Poll, ...] = (),
        partitions: tuple[str, ...] = (),
        error: str | None = None,
    ) -> None:
        self._record(
            Event(
                time_us=time_us,
                process=self.process,
                instance=self.process,
                type=kind,
                function=function,
                micro=micro,
                partitions=partitions,
                error=error,
            )
        )

    def _next_us(self, now_us: int) -> int:
        """Polls begin ``poll_wait_ms`` apart, so that a trickle of records does not make a poll each."""
        return max(self._begun_us + self._poll_wait_ms * 1000, now_us + REST_MS_MIN * 1000)


class Readers(NamedTuple):
    """Makes the readers of one run, each a process of its own; one that replaces a lost one starts a poll later."""

    clients: Clients
    clock: Clock
    recorder: Recorder
    new_process: Callable[[], int]
    poll_wait_ms: int

    def make(
        self, partitions: Sequence[str], on_read: Callable[[Poll], None], lost: Callable[[Reader], None]
    ) -> Reader:
        """A reader of ``partitions``, not started."""
        return Reader(
            clients=self.clients,
            clock=self.clock,
            recorder=self.recorder,
            process=self.new_process(),
            partitions=partitions,
            poll_wait_ms=self.poll_wait_ms,
            on_read=on_read,
            lost=lost,
        )

    def start_later(self, reader: Reader) -> None:
        """Start ``reader`` when the poll that its predecessor lost would have been over."""
        self.clock.call_at(self.clock.now_us() + self.poll_wait_ms * 1000, reader.start)


class Consumers:
    """The consumers of the break phase. A process that ends is followed by a fresh one with a fresh client."""

    def __init__(self, readers: Readers, partitions: Sequence[str], consumers: int) -> None:
        self._make = readers
        self._stopped = False
        self._readers = [self._reader(share) for share in shares(partitions, consumers)]
        self.records_read = 0

    def start(self) -> None:
        """Read from now on."""
        for reader in self._readers:
            reader.start()

    def stop(self) -> None:
        """Close every client."""
        self._stopped = True
        for reader in self._readers:
            reader.stop()

    def _reader(self, share: Sequence[str]) -> Reader:
        return self._make.make(share, self._count, self._replace)

    def _count(self, read: Poll) -> None:
        self.records_read += sum(map(len, read.records.values()))

    def _replace(self, lost: Reader) -> None:
        if self._stopped:
            return
        fresh = self._reader(lost.partitions)
        self._readers[self._readers.index(lost)] = fresh
        self._make.start_later(fresh)

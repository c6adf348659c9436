"""Consumers: each reads its share of the log partitions, by assignment, from the start, poll after poll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from workloads.client import Clients, Clock, Consumer, Fetched, PollOutcome
from workloads.operations import Event, EventType, Function, PayloadDefect, Poll, Record, Recorder
from workloads.settings import IsolationLevel
from workloads.values import decode

#: A poll with at least this many records is followed by the next at once; after a smaller one the consumer rests.
FULL_POLL_RECORDS: Final = 100
#: The least rest after a poll that failed, so that a broken client cannot spin.
REST_MS_MIN: Final = 10
# Looked up once: a member of an enumeration is found by a search before Python 3.12.
_INVOKE: Final = EventType.INVOKE
_POLL: Final = Function.POLL
#: The records of a poll that begins.
_NOTHING: Final = Poll()


def shares(partitions: Sequence[str], consumers: int) -> list[tuple[str, ...]]:
    """Each consumer's log partitions: assigned in turn; with more consumers than partitions some are read twice."""
    if consumers >= len(partitions):
        return [(partitions[number % len(partitions)],) for number in range(consumers)]
    return [tuple(partitions[number::consumers]) for number in range(consumers)]


#: Gives the value of a payload, and its defect, for the log partition and the key under which it was read.
Decodes = Callable[[bytes, str, bytes], tuple[int, PayloadDefect]]


def decoded(records: Sequence[Fetched], payload: Decodes = decode) -> Poll:
    """The records that were read, by log partition in the order received, with their defects."""
    read: dict[str, list[Record]] = {}
    for fetched in records:
        value, defect = payload(fetched.payload, fetched.partition, fetched.key)
        read.setdefault(fetched.partition, []).append(Record(fetched.offset, value, defect))
    return Poll({partition: tuple(received) for partition, received in read.items()})


def only_recorded(_read: Poll) -> None:
    """Do nothing: the history has what was read."""


class Readers(NamedTuple):
    """The things that the readers of one run share; each reader is a process of its own.

    ``transactional`` says that the workload writes in transactions, so that the history tells the isolation level.
    ``decode`` makes of records what a reader needs to know of them.
    """

    clients: Clients
    clock: Clock
    recorder: Recorder
    new_process: Callable[[], int]
    poll_wait_ms: int
    isolation: IsolationLevel = "read_uncommitted"
    transactional: bool = False
    decode: Callable[[Sequence[Fetched]], Poll] = decoded

    @property
    def told_isolation(self) -> IsolationLevel | None:
        """The isolation level of these readers, where the history tells it."""
        return self.isolation if self.transactional else None

    @property
    def other_level(self) -> Readers:
        """The same with the other isolation level."""
        other: IsolationLevel = "read_committed" if self.isolation == "read_uncommitted" else "read_uncommitted"
        return self._replace(isolation=other)


class Reader:
    """One consumer instance, one process of the history: assigns once, then polls until it is stopped.

    A poll that ends INFO may have moved the instance's position, so the process ends there and ``lost`` is called.
    """

    def __init__(
        self,
        readers: Readers,
        partitions: Sequence[str],
        *,
        on_read: Callable[[Poll], None],
        lost: Callable[[Reader], None],
    ) -> None:
        self._clock = readers.clock
        self._record = readers.recorder.record
        self._poll_wait_ms = readers.poll_wait_ms
        self._on_read = on_read
        self._lost = lost
        self._begun_us = 0
        self._stopped = False
        self.process = readers.new_process()
        self._decode = readers.decode
        self._isolation = readers.told_isolation
        self.event = partial(Event, process=self.process, instance=self.process, isolation=self._isolation)
        self.partitions = tuple(partitions)
        self.consumer: Consumer = readers.clients.consumer(self.process, isolation=readers.isolation)

    def start(self) -> None:
        """Assign, and poll from now on; nothing if it was stopped before."""
        if self._stopped:
            return
        now_us, assign = self._clock.now_us(), partial(self.event, function=Function.ASSIGN, partitions=self.partitions)
        self._record(assign(time_us=now_us, type=EventType.INVOKE))
        self._record(assign(time_us=now_us, type=EventType.OK))
        self.consumer.assign(self.partitions, from_start=True)
        self._poll()

    def start_later(self) -> None:
        """Start when the poll that a lost predecessor had under way would have been over."""
        self._clock.call_at(self._clock.now_us() + self._poll_wait_ms * 1000, self.start)

    def stop(self) -> None:
        """Poll no more and close the client; an open poll ends as INFO."""
        if not self._stopped:
            self._stopped = True
            self.consumer.close()

    def _poll(self) -> None:
        if self._stopped:
            return
        self._begun_us = self._clock.now_us()
        self._record_poll(self._begun_us, _INVOKE, _NOTHING, None)
        self.consumer.poll(self._poll_wait_ms, self._polled)

    def _polled(self, outcome: PollOutcome) -> None:
        now_us, kind = self._clock.now_us(), outcome.type
        read = self._decode(outcome.records)
        self._record_poll(now_us, kind, read, outcome.error)
        if kind is EventType.OK:
            self._on_read(read)
        if self._stopped:
            return
        if kind is EventType.INFO:
            self.stop()
            self._lost(self)
        elif len(outcome.records) >= FULL_POLL_RECORDS:
            self._poll()
        else:
            # Polls begin poll_wait_ms apart, so that a trickle of records does not make a poll each.
            next_us = self._begun_us + self._poll_wait_ms * 1000
            self._clock.call_at(max(next_us, now_us + REST_MS_MIN * 1000), self._poll)

    def _record_poll(self, time_us: int, kind: EventType, read: Poll, error: str | None) -> None:
        process = self.process
        self._record(
            Event(
                time_us=time_us,
                process=process,
                instance=process,
                type=kind,
                function=_POLL,
                micro=(read,),
                isolation=self._isolation,
                error=error,
            )
        )


class Consumers:
    """The consumers of the break phase. A process that ends is followed by a fresh one with a fresh client."""

    def __init__(self, readers: Readers, partitions: Sequence[str], consumers: int) -> None:
        self._make = partial(Reader, readers, on_read=self._count, lost=self._replace)
        self._stopped = False
        self._readers = [self._make(share) for share in shares(partitions, consumers)]
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

    def _count(self, read: Poll) -> None:
        self.records_read += sum(map(len, read.records.values()))

    def _replace(self, lost: Reader) -> None:
        if not self._stopped:
            fresh = self._readers[self._readers.index(lost)] = self._make(lost.partitions)
            fresh.start_later()

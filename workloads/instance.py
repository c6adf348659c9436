"""A producer instance: its sends, each an operation of the history, and its health.

A history process has one open operation at most, but a producer has many sends in flight. So a producer instance owns
several processes, which take its sends in turn. A send takes a free process, or opens a new one; an answered process is
free again, and one whose send ended INFO is never used again, because that send may still happen. The client instance,
and with it the client's own retries and sequence numbers, stays (docs/decisions/004-pipelined-sends.md).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import msgspec

from workloads.client import Clients, Clock, SendOutcome, append_of
from workloads.errors import refuses_for_good
from workloads.operations import Event, EventType, Function, Recorder, Send
from workloads.values import SEQUENCE_BITS, encode, join, record_key_of

#: Errors that are remembered of an instance; more than that only repeats.
ERRORS_KEPT: Final = 5
# Looked up once: a member of an enumeration is found by a search.
_INVOKE: Final = EventType.INVOKE
_SEND: Final = Function.SEND


class SendCounts(msgspec.Struct):
    """Counts of the sends so far by outcome; ``passed_over`` were due while too many were outstanding."""

    attempted: int = 0
    acknowledged: int = 0
    rejected: int = 0
    unknown: int = 0
    passed_over: int = 0

    @property
    def outstanding(self) -> int:
        """Sends without an answer."""
        return self.attempted - self.acknowledged - self.rejected - self.unknown

    def count(self, kind: EventType, sends: int = 1) -> None:
        """Count sends that ended as ``kind`` says."""
        if kind is EventType.OK:
            self.acknowledged += sends
        elif kind is EventType.FAIL:
            self.rejected += sends
        else:
            self.unknown += sends


def encoded(partition: str, key: bytes, value: int, size_bytes: int) -> tuple[bytes, bytes]:
    """The key, and the payload that carries its own address (:mod:`workloads.values`)."""
    return key, encode(partition, key, value, size_bytes)


class Writers(NamedTuple):
    """The things that the producers of one run share. ``keyed`` says that a record's key counts (compacted topics).

    ``make`` gives key and payload of a record, for its log partition, key, value and size.
    """

    clients: Clients
    clock: Clock
    recorder: Recorder
    new_process: Callable[[], int]
    counts: SendCounts
    keyed: bool = False
    make: Callable[[str, bytes, int, int], tuple[bytes, bytes]] = encoded


class ProducerInstance:
    """One producer, from its making to its closing.

    Attributes:
        number: its first process, which names it.
        outstanding: sends without an answer.
        silent_since_us: by log partition with a send since, the time of the last acknowledgement, or of the first send.
        refused: number of sends in a row that the client itself refused for good.
        errors: the last few different errors of its sends, the newest last.
    """

    def __init__(self, writers: Writers, ended: Callable[[ProducerInstance, str, SendOutcome], None]) -> None:
        self._clock = writers.clock
        self._record = writers.recorder.record
        self._new_process = writers.new_process
        self._counts = writers.counts
        self._keyed = writers.keyed
        self._make = writers.make
        self._ended = ended
        self.number = writers.new_process()
        self._producer = writers.clients.producer(self.number)
        #: The next value of each of its processes that has no open send.
        self._free = [join(self.number, 0)]
        self._open: Counter[str] = Counter()
        self.outstanding = 0
        self.silent_since_us: dict[str, int] = {}
        self.refused = 0
        self.errors: deque[str] = deque(maxlen=ERRORS_KEPT)

    def send(self, partition: str, key: bytes, payload_bytes: int = 0, *, tombstone: bool = False) -> int:
        """Append a record to ``partition``; its value is returned. A ``tombstone`` deletes ``key``."""
        value = self._free.pop() if self._free else join(self._new_process(), 0)
        self.outstanding += 1
        self._counts.attempted += 1
        self._open[partition] += 1
        now_us = self._clock.now_us()
        self.silent_since_us.setdefault(partition, now_us)
        sent = Send(partition, value, None, record_key_of(key) if self._keyed else None, tombstone)
        self._record(
            Event(
                time_us=now_us,
                process=value >> SEQUENCE_BITS,
                instance=self.number,
                type=_INVOKE,
                function=_SEND,
                micro=(sent,),
            )
        )
        key, payload = self._make(partition, key, value, payload_bytes)
        append_of(self._producer, tombstone=tombstone)(partition, key, payload, partial(self._answered, sent))
        return value

    def close(self) -> None:
        """Close the client: outstanding sends end as INFO; a second call does nothing."""
        self._producer.close()

    def crash(self) -> None:
        """Let the client die as if its process had been killed: outstanding sends end as INFO."""
        self._producer.crash()

    def _answered(self, sent: Send, outcome: SendOutcome) -> None:
        partition, value = sent.partition, sent.value
        self.outstanding -= 1
        self._open[partition] -= 1
        now_us = self._clock.now_us()
        if outcome.type is not EventType.INFO:
            self._free.append(value + 1)
        self._count(partition, outcome, now_us)
        self._record(
            Event(
                time_us=now_us if outcome.answered_us is None else outcome.answered_us,
                process=value >> SEQUENCE_BITS,
                instance=self.number,
                type=outcome.type,
                function=_SEND,
                micro=(Send(partition, value, outcome.offset, sent.record_key, sent.tombstone),),
                node=outcome.node,
                error=outcome.error,
            )
        )
        self._ended(self, partition, outcome)

    def _count(self, partition: str, outcome: SendOutcome, now_us: int) -> None:
        """Count the answer, and remember its facts about the client."""
        self._counts.count(outcome.type)
        if outcome.type is EventType.OK:
            self.refused = 0
            if self._open[partition]:
                self.silent_since_us[partition] = now_us
            else:
                self.silent_since_us.pop(partition, None)
            return
        if outcome.error is not None:
            self.refused += refuses_for_good(outcome.error)
            if outcome.error not in self.errors:
                self.errors.append(outcome.error)

"""Producers: what a generator asks for, each send an operation of its own.

A history process has one open operation at most, but a producer has many sends in flight. So a producer instance owns
several processes, which take its sends in turn. A send takes a free process, or opens a new one; an answered process is
free again, and one whose send ended INFO is never used again, because that send may still happen. The client instance,
and with it the client's own retries and sequence numbers, stays (docs/decisions/004-pipelined-sends.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from workloads.client import Clients, Clock, Producer, SendOutcome
from workloads.generators import Write
from workloads.operations import Event, EventType, Function, Recorder, Send
from workloads.values import encode, join, split

#: Sends outstanding per producer. A leaderless partition holds a send for delivery.timeout.ms; this bounds what piles
#: up meanwhile (5 s at 50 writes a second), and a send that is due beyond it is not made.
OUTSTANDING_MAX: Final = 256


class SendCounts(msgspec.Struct):
    """What became of the sends so far; ``passed_over`` were due while too many were outstanding."""

    attempted: int = 0
    acknowledged: int = 0
    rejected: int = 0
    unknown: int = 0
    passed_over: int = 0


class _Instance:
    """One producer. ``free`` holds the next value of each of its processes that has no open send."""

    __slots__ = ("event", "free", "number", "outstanding", "producer")

    def __init__(self, producer: Producer, number: int) -> None:
        self.producer = producer
        self.number = number
        self.event = partial(Event, instance=number, function=Function.SEND)
        self.free = [join(number, 0)]
        self.outstanding = 0


class Producers:
    """All producers of a run, on one clock, writing what ``writes`` asks for."""

    def __init__(
        self,
        *,
        clients: Clients,
        clock: Clock,
        recorder: Recorder,
        new_process: Callable[[], int],
        partitions: Sequence[str],
        producers: int,
        writes: Iterator[Write],
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._record = recorder.record
        self._new_process = new_process
        self._partitions = tuple(partitions)
        self._writes = writes
        self._next = next(writes)
        numbers = [new_process() for _ in range(producers)]
        self._instances = [_Instance(clients.producer(number), number) for number in numbers]
        self._started_us = 0
        self._writing = False
        #: Sends without an answer, those of crashed instances too.
        self.outstanding = 0
        self.counts = SendCounts()
        #: When each log partition last acknowledged a write, in microseconds of the run.
        self.acknowledged_us: dict[str, int] = {}

    def start(self) -> None:
        """Send from now on."""
        self._writing = True
        self._started_us = self._clock.now_us()
        self._clock.call_at(self._started_us + self._next.due_us, self._write)

    def stop(self) -> None:
        """Send nothing more; what is outstanding stays so."""
        self._writing = False

    def close(self) -> None:
        """Close every client: outstanding sends end as INFO."""
        self.stop()
        for instance in self._instances:
            instance.producer.close()

    def crash_producer(self, pick: int) -> dict[str, object]:
        """Let a producer die as if its process had been killed, and a new instance take its place at once.

        ``pick`` modulo the number of producers says which. Outstanding sends end as INFO. The evidence: ``instance``
        that died, its ``outstanding`` sends, and the ``successor``, both as the history names them. An outstanding
        send whose answer the client already has, on its way here from another thread, still ends with that answer.
        """
        place = pick % len(self._instances)
        crashed = self._instances[place]
        number = self._new_process()
        self._instances[place] = _Instance(self._clients.producer(number), number)
        crashed.producer.crash()
        return {"instance": crashed.number, "outstanding": crashed.outstanding, "successor": number}

    def _write(self) -> None:
        if not self._writing:
            return
        write, self._next = self._next, next(self._writes)
        self._clock.call_at(self._started_us + self._next.due_us, self._write)
        instance = self._instances[write.producer]
        if instance.outstanding >= OUTSTANDING_MAX:
            self.counts.passed_over += 1
        else:
            self._send(instance, self._partitions[write.partition], write)

    def _send(self, instance: _Instance, partition: str, write: Write) -> None:
        value = instance.free.pop() if instance.free else join(self._new_process(), 0)
        instance.outstanding += 1
        self.outstanding += 1
        self.counts.attempted += 1
        now_us, process = self._clock.now_us(), split(value)[0]
        send = (Send(partition, value),)
        self._record(instance.event(time_us=now_us, process=process, type=EventType.INVOKE, micro=send))
        payload = encode(partition, write.key, value, write.payload_bytes)
        instance.producer.send(partition, write.key, payload, partial(self._answered, instance, partition, value))

    def _answered(self, instance: _Instance, partition: str, value: int, outcome: SendOutcome) -> None:
        instance.outstanding -= 1
        self.outstanding -= 1
        now_us = self._clock.now_us()
        if outcome.type is EventType.INFO:
            self.counts.unknown += 1
        else:
            instance.free.append(value + 1)
            if outcome.type is EventType.OK:
                self.counts.acknowledged += 1
                self.acknowledged_us[partition] = now_us
            else:
                self.counts.rejected += 1
        self._record(
            instance.event(
                time_us=now_us,
                process=split(value)[0],
                type=outcome.type,
                micro=(Send(partition, value, outcome.offset),),
                node=outcome.node,
                error=outcome.error,
            )
        )

"""Producers: evenly spaced sends, each an operation of its own.

A history process has one open operation at most, but a producer has many sends in flight. So a producer instance owns
several processes, which take its sends in turn. A send takes a free process, or opens a new one; an answered process is
free again, and one whose send ended INFO is never used again, because that send may still happen. The client instance,
and with it the client's own retries and sequence numbers, stays (docs/decisions/004-pipelined-sends.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec

from workloads.client import Clients, Clock, Producer, SendOutcome
from workloads.operations import Event, EventType, Function, Recorder, Send
from workloads.values import encode, join

#: Sends outstanding per producer. A leaderless partition holds a send for delivery.timeout.ms; this bounds what piles
#: up meanwhile (5 s at 50 writes a second), and a send that finds no lane is not made.
OUTSTANDING_MAX: Final = 256


class SendCounts(msgspec.Struct):
    """What became of the sends so far; ``passed_over`` were due but found every lane taken."""

    attempted: int = 0
    acknowledged: int = 0
    rejected: int = 0
    unknown: int = 0
    passed_over: int = 0


class _Instance:
    """One producer and its lanes."""

    __slots__ = ("free", "number", "outstanding", "producer", "sent")

    def __init__(self, producer: Producer, first_lane: int) -> None:
        self.producer = producer
        self.number = first_lane
        self.free = [first_lane]
        self.outstanding = 0
        self.sent = 0


class Producers:
    """All producers of a run, on one clock."""

    def __init__(
        self,
        *,
        clients: Clients,
        clock: Clock,
        recorder: Recorder,
        new_process: Callable[[], int],
        partitions: Sequence[str],
        producers: int,
        writes_per_second: float,
        keys: int,
    ) -> None:
        self._clock = clock
        self._record = recorder.record
        self._new_process = new_process
        self._partitions = tuple(partitions)
        self._keys = tuple(f"key-{number}".encode() for number in range(keys))
        self._interval_us = 1_000_000 / writes_per_second
        firsts = [new_process() for _ in range(producers)]
        self._instances = [_Instance(clients.producer(first), first) for first in firsts]
        self._sequences: dict[int, int] = {}
        self._ticks = 0
        self._started_us = 0
        self._writing = False
        self.counts = SendCounts()
        #: When each log partition last acknowledged a write, in microseconds of the run.
        self.acknowledged_us: dict[str, int] = {}

    @property
    def outstanding(self) -> int:
        """Sends without an answer."""
        return sum(instance.outstanding for instance in self._instances)

    def start(self) -> None:
        """Send from now on."""
        self._writing = True
        self._started_us = self._clock.now_us()
        self._clock.call_at(self._started_us, self._tick)

    def stop(self) -> None:
        """Send nothing more; what is outstanding stays so."""
        self._writing = False

    def close(self) -> None:
        """Close every client: outstanding sends end as INFO."""
        self.stop()
        for instance in self._instances:
            instance.producer.close()

    def _tick(self) -> None:
        if not self._writing:
            return
        tick = self._ticks
        self._ticks += 1
        self._clock.call_at(self._started_us + int(self._ticks * self._interval_us), self._tick)
        self._send(tick % len(self._instances))

    def _send(self, number: int) -> None:
        """The next send of the ``number``-th producer; producers start their rotation at different partitions."""
        instance = self._instances[number]
        if instance.outstanding >= OUTSTANDING_MAX:
            self.counts.passed_over += 1
            return
        lane = instance.free.pop() if instance.free else self._new_process()
        partition = self._partitions[(instance.sent + number) % len(self._partitions)]
        key = self._keys[instance.sent // len(self._partitions) % len(self._keys)]
        instance.sent += 1
        instance.outstanding += 1
        sequence = self._sequences.get(lane, 0)
        self._sequences[lane] = sequence + 1
        value = join(lane, sequence)
        self.counts.attempted += 1
        self._record(
            Event(
                time_us=self._clock.now_us(),
                process=lane,
                instance=instance.number,
                type=EventType.INVOKE,
                function=Function.SEND,
                micro=(Send(partition, value),),
            )
        )
        done = partial(self._answered, instance, lane, partition, value)
        instance.producer.send(partition, key, encode(partition, key, lane, sequence), done)

    def _answered(self, instance: _Instance, lane: int, partition: str, value: int, outcome: SendOutcome) -> None:
        instance.outstanding -= 1
        now_us = self._clock.now_us()
        self._count(instance, lane, partition, outcome.type, now_us)
        self._record(
            Event(
                time_us=now_us,
                process=lane,
                instance=instance.number,
                type=outcome.type,
                function=Function.SEND,
                micro=(Send(partition, value, outcome.offset),),
                node=outcome.node,
                error=outcome.error,
            )
        )

    def _count(self, instance: _Instance, lane: int, partition: str, ended: EventType, now_us: int) -> None:
        if ended is EventType.INFO:
            self.counts.unknown += 1
            del self._sequences[lane]
            return
        instance.free.append(lane)
        if ended is EventType.OK:
            self.counts.acknowledged += 1
            self.acknowledged_us[partition] = now_us
        else:
            self.counts.rejected += 1

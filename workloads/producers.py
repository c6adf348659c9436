"""Producers: they make a generator's writes, each producer in a slot that an instance has at any time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from typing_extensions import override

from workloads.instance import Writers
from workloads.replacement import ProducerSlot, SilenceLimit
from workloads.roles import Writing
from workloads.steady_writes import DueWrite

#: Sends outstanding per producer. A leaderless partition holds a send for delivery.timeout.ms; this bounds what piles
#: up meanwhile (5 s at 50 writes a second), and a send that is due beyond it is not made.
OUTSTANDING_MAX: Final = 256
#: The same in bytes, Kafka's default of buffer.memory: as much as a client keeps of what it has not sent.
OUTSTANDING_BYTES_MAX: Final = 32 * 1024 * 1024
#: The least rest while too many are outstanding: a log that answers more slowly than it is asked would else be looked
#: at for every write that is not made, by the processor that its client needs.
FULL_REST_MS: Final = 1
#: Pause between looks at producers; they are given up after seconds.
LOOK_EVERY_MS: Final = 100


class RunProducers(Writing):
    """All producers of a run, on one clock, which make the writes of ``writes``."""

    def __init__(
        self,
        writers: Writers,
        *,
        partitions: Sequence[str],
        producers: int,
        writes: Iterator[DueWrite],
        patience: SilenceLimit,
    ) -> None:
        super().__init__(writers, partitions)
        self._writes = writes
        self._next = next(writes, None)
        self._slots: Sequence[ProducerSlot] = [
            ProducerSlot(writers, partitions, patience, self._acknowledged) for _ in range(producers)
        ]

    @property
    @override
    def exhausted(self) -> bool:
        return self._next is None

    @override
    def _begin(self) -> None:
        self._await_next()
        self._look()

    def _look(self) -> None:
        if self._writing:
            for slot in self._slots:
                slot.look()
            self._clock.call_at(self._clock.now_us() + LOOK_EVERY_MS * 1000, self._look)

    def _write(self) -> None:
        if not self._writing or self._next is None:
            return
        if self._is_full(self._next):
            self._pass_over()
            self._await_next(self._clock.now_us() + FULL_REST_MS * 1000)
            return
        write, self._next = self._next, next(self._writes, None)
        self._await_next()
        instance = self._slots[write.producer].instance
        instance.send(self._partitions[write.partition], write.key, write.payload_bytes, tombstone=write.tombstone)

    def _await_next(self, earliest_us: int = 0) -> None:
        if self._next is not None:
            self._clock.call_at(max(self._started_us + self._next.due_us, earliest_us), self._write)

    def _is_full(self, write: DueWrite) -> bool:
        outstanding = self._slots[write.producer].instance.outstanding
        return outstanding >= OUTSTANDING_MAX or outstanding * write.payload_bytes >= OUTSTANDING_BYTES_MAX

    def _pass_over(self) -> None:
        """Do not make the next write, nor those after it that are due by now while too many are outstanding."""
        late_us = self._clock.now_us() - self._started_us
        while self._next is not None and self._next.due_us <= late_us and self._is_full(self._next):
            self.counts.passed_over += 1
            self._next = next(self._writes, None)

    def _acknowledged(self, partition: str) -> None:
        self.acknowledged_us[partition] = self._clock.now_us()

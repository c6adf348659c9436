"""The two roles of a workload: who writes, and who reads meanwhile. A kind of workload names one of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from workloads.instance import SendCounts, Writers
from workloads.replacement import CrashedProducer


class WriterSlot(Protocol):
    """The place of one producer of the plan."""

    @property
    def settled(self) -> bool:
        """True if its producer works: none is being tried or has been silent for long, none before it is left."""
        ...

    def crash(self) -> CrashedProducer:
        """Let the producer die as if killed, and a new one take its place."""
        ...

    def close(self) -> None:
        """Close every client: what is open ends as INFO."""
        ...


class Writing(ABC):
    """The producers of the break phase, each in a slot.

    Attributes:
        counts: the run's sends by their end, those of crashed and replaced producers too.
        acknowledged_us: the time at which each log partition last acknowledged a write, in microseconds of the run.
    """

    _slots: Sequence[WriterSlot]

    def __init__(self, writers: Writers, partitions: Sequence[str]) -> None:
        self._clock = writers.clock
        self._partitions = tuple(partitions)
        self._started_us = 0
        self._writing = False
        self.counts: SendCounts = writers.counts
        self.acknowledged_us: dict[str, int] = {}

    @property
    def outstanding(self) -> int:
        """Sends without an answer."""
        return self.counts.outstanding

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """True if every write was made that there is to make."""

    @property
    def settled(self) -> bool:
        """True if every slot is settled."""
        return all(slot.settled for slot in self._slots)

    def start(self) -> None:
        """Write from now on."""
        self._writing = True
        self._started_us = self._clock.now_us()
        self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Plan the first write."""

    def stop(self) -> None:
        """Begin no write more; what is open may end."""
        self._writing = False

    def close(self) -> None:
        """Close every client: what is open ends as INFO."""
        self.stop()
        for slot in self._slots:
            slot.close()

    def crash_producer(self, pick: int) -> CrashedProducer:
        """Let the ``pick``-th producer, modulo their number, die as if killed, and a new one take its place.

        Outstanding sends end as INFO; one whose answer the client has already, on its way here from another thread,
        still ends with that answer.
        """
        return self._slots[pick % len(self._slots)].crash()


class Reading(Protocol):
    """The consumers of the break phase."""

    @property
    def records_read(self) -> int:
        """The records that all of them read."""
        ...

    def start(self) -> None:
        """Read from now on."""
        ...

    def stop(self) -> None:
        """Close every client."""
        ...

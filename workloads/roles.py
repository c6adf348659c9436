"""The two roles of a workload: who writes, and who reads meanwhile. A kind of workload names one of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from workloads.instance import SendCounts
from workloads.replacement import CrashedProducer


class Writing(Protocol):
    """The producers of the break phase."""

    @property
    def counts(self) -> SendCounts:
        """The run's sends by their end, those of crashed and replaced producers too."""
        ...

    @property
    def acknowledged_us(self) -> Mapping[str, int]:
        """The time at which each log partition last acknowledged a write, in microseconds of the run."""
        ...

    @property
    def outstanding(self) -> int:
        """Sends without an answer."""
        ...

    @property
    def exhausted(self) -> bool:
        """True if every write was made that there is to make."""
        ...

    @property
    def settled(self) -> bool:
        """True if every producer works: none is being tried, none has been silent for long."""
        ...

    def start(self) -> None:
        """Write from now on."""
        ...

    def stop(self) -> None:
        """Begin no write more; what is open may end."""
        ...

    def close(self) -> None:
        """Close every client: what is open ends as INFO."""
        ...

    def crash_producer(self, pick: int) -> CrashedProducer:
        """Let the ``pick``-th producer, modulo their number, die as if killed, and a new one take its place."""
        ...


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


class AfterHealing(Protocol):
    """A question that a workload puts to the cluster after healing, and writes into the history."""

    @property
    def finished(self) -> bool:
        """True once it was answered."""
        ...

    def start(self, partitions: Iterable[str]) -> None:
        """Ask about these log partitions."""
        ...

    def end(self) -> None:
        """Close its clients. What was not answered is not known."""
        ...

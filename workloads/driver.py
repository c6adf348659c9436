"""The workload of one run, as a state machine over callbacks: it never waits, so it runs in any world.

Phases, each marked in the history: ``break`` (write and read while faults happen), ``heal`` (faults are over, writes
and reads go on, so that recovery is seen), ``drain`` (writes are answered, fresh consumers read to the end), ``end``.
Whoever owns the clock decides when a phase is over; see :mod:`harness.run.phases`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec

from workloads.client import Clients, Clock
from workloads.consumers import Consumers, Readers
from workloads.final_read import Drain
from workloads.generators import WORKLOADS
from workloads.operations import HARNESS, Event, EventType, Function, Recorder
from workloads.plan import WorkloadPlan
from workloads.producers import Producers, SendCounts


def partition_names(plan: WorkloadPlan) -> tuple[str, ...]:
    """The run's log partitions, "topic-number"."""
    return tuple(f"{plan.topic}-{number}" for number in range(plan.partitions))


class Workload:
    """One run's producers, consumers and final readers."""

    def __init__(self, plan: WorkloadPlan, *, clients: Clients, clock: Clock, recorder: Recorder) -> None:
        self._plan = plan
        self._clock = clock
        self._recorder = recorder
        #: Hands out the process ids of the run, each once.
        new_process = itertools.count().__next__
        self._readers = Readers(clients, clock, recorder, new_process, plan.poll_wait_ms)
        self._drain: Drain | None = None
        self.partitions = partition_names(plan)
        self._producers = Producers(
            clients=clients,
            clock=clock,
            recorder=recorder,
            new_process=new_process,
            partitions=self.partitions,
            producers=plan.producers,
            writes=WORKLOADS[plan.name].writes(plan),
        )
        self._consumers = Consumers(self._readers, self.partitions, plan.consumers)

    def begin(self) -> None:
        """Write and read from now on."""
        self.mark("break")
        self._producers.start()
        self._consumers.start()

    def mark(self, phase: str) -> None:
        """Write the begin of a phase into the history."""
        self._recorder.record(
            Event(
                time_us=self._clock.now_us(),
                process=HARNESS,
                type=EventType.INFO,
                function=Function.PHASE,
                detail=msgspec.json.encode({"mark": phase}).decode(),
            )
        )

    def all_acknowledged_since(self, time_us: int) -> bool:
        """Whether every log partition acknowledged a write at or after ``time_us``."""
        acknowledged_us = self._producers.acknowledged_us
        return all(acknowledged_us.get(name, -1) >= time_us for name in self.partitions)

    def crash_producer(self, pick: int) -> dict[str, object]:
        """See :meth:`workloads.producers.Producers.crash_producer`; this is what a nemesis asks for."""
        return self._producers.crash_producer(pick)

    def stop_writing(self) -> None:
        """Send nothing more; what is outstanding is still answered."""
        self._producers.stop()

    @property
    def outstanding(self) -> int:
        """Sends without an answer."""
        return self._producers.outstanding

    def close_clients(self) -> None:
        """Close the producers and consumers of the break phase."""
        self._producers.close()
        self._consumers.stop()

    def begin_drain(self, unhealthy: Mapping[str, str]) -> None:
        """Let fresh consumers read every log partition; ``unhealthy`` names those that prove nothing, and why."""
        self.mark("drain")
        self._drain = Drain(
            self._readers, partitions=self.partitions, unhealthy=unhealthy, consumers=self._plan.consumers
        )
        self._drain.start()

    @property
    def drain_finished(self) -> bool:
        """Whether there is nothing left to wait for."""
        return self._drain is not None and self._drain.finished

    @property
    def drained(self) -> bool:
        """Whether every log partition was read to its end."""
        return self._drain is not None and self._drain.complete

    @property
    def ends(self) -> dict[str, int]:
        """The log end offsets that the final readers reached, of log partitions that were healthy."""
        return {} if self._drain is None else self._drain.ends

    def end_drain(self) -> None:
        """State what was not reached, and close the final readers."""
        if self._drain is not None:
            self._drain.end()

    @property
    def counts(self) -> SendCounts:
        """What became of the sends so far."""
        return self._producers.counts

    @property
    def records_read(self) -> int:
        """Records read by the consumers of the break phase."""
        return self._consumers.records_read

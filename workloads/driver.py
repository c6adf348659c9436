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
from workloads.producers import OUTSTANDING_MAX, Producers, SendCounts

__all__ = ["OUTSTANDING_MAX", "Drain", "SendCounts", "Workload", "partition_names"]


def partition_names(plan: WorkloadPlan) -> tuple[str, ...]:
    """The run's log partitions, "topic-number"."""
    return tuple(f"{plan.topic}-{number}" for number in range(plan.partitions))


class Workload:
    """One run's producers, consumers and final readers.

    Attributes:
        partitions: the run's log partitions, "topic-number".
        producers: who writes; they are also what a nemesis crashes (:meth:`Producers.crash_producer`).
        consumers: who reads meanwhile.
    """

    def __init__(self, plan: WorkloadPlan, *, clients: Clients, clock: Clock, recorder: Recorder) -> None:
        self._plan = plan
        self._clock = clock
        self._recorder = recorder
        #: Hands out the process ids of the run, each once.
        new_process = itertools.count().__next__
        self._readers = Readers(clients, clock, recorder, new_process, plan.poll_wait_ms)
        self.partitions = partition_names(plan)
        self.producers = Producers(
            clients=clients,
            clock=clock,
            recorder=recorder,
            new_process=new_process,
            partitions=self.partitions,
            producers=plan.producers,
            writes=WORKLOADS[plan.name].writes(plan),
        )
        self.consumers = Consumers(self._readers, self.partitions, plan.consumers)

    def begin(self) -> None:
        """Write and read from now on."""
        self.mark("break")
        self.producers.start()
        self.consumers.start()

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
        """True if every log partition acknowledged a write at or after ``time_us`` (microseconds of the run)."""
        acknowledged_us = self.producers.acknowledged_us
        return all(acknowledged_us.get(name, -1) >= time_us for name in self.partitions)

    def close_clients(self) -> None:
        """Close the producers and consumers of the break phase."""
        self.producers.close()
        self.consumers.stop()

    def begin_drain(self, unhealthy: Mapping[str, str]) -> Drain:
        """Let fresh consumers read every log partition; ``unhealthy`` names those that prove nothing, and why."""
        self.mark("drain")
        drain = Drain(self._readers, self.partitions, unhealthy=unhealthy, consumers=self._plan.consumers)
        drain.start()
        return drain

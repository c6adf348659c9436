"""The workload of one run, as a state machine over callbacks: it never waits, so it runs in any world.

Phases, each marked in the history: ``break`` (write and read while faults happen), ``heal`` (faults are over, writes
and reads go on, so that recovery is seen; then fresh producers write), ``drain`` (writes are answered, fresh consumers
read to the end), ``end``.
The owner of the clock decides when a phase is over; see :mod:`harness.runs.phases`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from workloads.application import ApplicationRun
from workloads.application_ids import key_of, keys_of_each
from workloads.application_payloads import Template, id_of
from workloads.application_plan import ApplicationPlan
from workloads.client import Clients, Clock, Membership, Offsets
from workloads.closings import CLOSING_MS, SETTLE_MS, Begun, Closing, Closings
from workloads.consumers import Consumers, Reader, Readers, decoded, only_recorded
from workloads.ending import Leaders, RunEnding, mark_phase
from workloads.final_read import Drain
from workloads.generators import kind_of, topics_of
from workloads.group_end import CommittedQuestions, GroupEnd
from workloads.instance import SendCounts, Writers
from workloads.instances import InstanceProcesses, Instances
from workloads.log_partition import LogPartition
from workloads.members import FREEZE_SESSIONS, Members, membership_of
from workloads.membership import Member
from workloads.operations import Poll, Recorder
from workloads.pipeline import PipelineReaders, pipeline_end
from workloads.pipeline_member import Pipeline
from workloads.plan import WorkloadPlan
from workloads.producers import OUTSTANDING_MAX, RunProducers
from workloads.recovery import RecoveryWrites
from workloads.replacement import SilenceLimit
from workloads.roles import Reading, Writing
from workloads.settings import CommitMode, Settings
from workloads.stable_offsets import StableOffsets
from workloads.steady_writes import DueWrite
from workloads.stepped_member import SteppedMember
from workloads.stepped_producer import SteppedProducer, SteppedTransaction
from workloads.transactional_producer import Asked, OpenTransaction, TransactionalProducer
from workloads.transactions import TransactionProducers

__all__ = [
    "CLOSING_MS",
    "OUTSTANDING_MAX",
    "SETTLE_MS",
    "Asked",
    "Begun",
    "Closing",
    "Drain",
    "DueWrite",
    "InstanceProcesses",
    "Instances",
    "Leaders",
    "OpenTransaction",
    "Reader",
    "Readers",
    "RecoveryWrites",
    "RunEnding",
    "SendCounts",
    "StableOffsets",
    "SteppedMember",
    "SteppedProducer",
    "SteppedTransaction",
    "TransactionalProducer",
    "Workload",
    "Writers",
    "partition_names",
]

#: A client has this much longer than delivery.timeout.ms to report records that it did not deliver. Giving up one that
#: was only slow does no harm: beside its successor it is seen to work.
REPORT_MS: Final = 500


def partition_names(plan: WorkloadPlan) -> tuple[str, ...]:
    """Name the run's log partitions."""
    return tuple(str(LogPartition(topic, number)) for topic in topics_of(plan) for number in range(plan.partitions))


class Workload:
    """One run's producers, consumers and final readers.

    Attributes:
        partitions: the run's log partitions, "topic-number"; ``inputs`` are those of the plan's topics,
            ``outputs`` the others.
        producers: the writers; a nemesis crashes them too (:meth:`workloads.roles.Writing.crash_producer`).
        consumers: the readers meanwhile.
        group_end: the last work of the consumer group; None without one.
        application: a user's program that reads the input; None without one. ``partitions`` are the inputs then.
        kind: the kind of the workload.
        new_process: hands out the process ids of the run, each once.
    """

    def __init__(
        self,
        plan: WorkloadPlan,
        settings: Settings,
        *,
        clients: Clients,
        clock: Clock,
        recorder: Recorder,
        processes: InstanceProcesses | None = None,
    ) -> None:
        self._plan, self._settings = plan, settings
        self._clock = clock
        self._recorder = recorder
        self.new_process = itertools.count().__next__
        transactional = kind_of(plan).transactional
        level = settings.isolation_level
        self._readers = Readers(clients, clock, recorder, self.new_process, plan.poll_wait_ms, level, transactional)
        self.partitions = partition_names(plan)
        inputs = len(plan.log_partitions)
        self.inputs, self.outputs = self.partitions[:inputs], self.partitions[inputs:]
        self.kind = kind_of(plan)
        self._writers = Writers(clients, clock, recorder, self.new_process, SendCounts(), self.kind.keyed)
        self.application = None if plan.application is None else self._applied(plan.application, processes)
        self.producers: Writing = self._made_producers(plan, settings)
        self.group_end: GroupEnd | None = None
        self._acknowledged_us: list[Mapping[str, int]] = [self.producers.acknowledged_us]
        self.consumers: Reading = self._made_consumers(plan, settings)

    def _applied(self, application: ApplicationPlan, processes: InstanceProcesses | None) -> ApplicationRun:
        """The run of an application; producers write what it understands from now on, and its inputs are known."""
        assert processes is not None, "this world starts no instances"  # noqa: S101 - plans of such worlds are refused
        template, by_key = Template(application.payload), application.id == "key"
        places = {name: number for number, name in enumerate(self.inputs)}
        keys = keys_of_each(self._plan.keys, len(self.inputs))

        def make(partition: str, _key: bytes, value: int, _size_bytes: int) -> tuple[bytes, bytes]:
            name = f"key-{key_of(value, keys) * len(places) + places[partition]}"
            key = (id_of(partition, value) if by_key else name).encode()
            return key, template.payload(partition, key, value)

        self._readers = self._readers._replace(decode=partial(decoded, payload=template.decode))
        run = ApplicationRun(
            application,
            self._settings,
            self._readers,
            self._writers,
            (self.inputs, self.outputs),
            processes=processes,
            group=self._plan.topic,
            keys=keys,
        )
        self._writers = self._writers._replace(make=make, recorder=run.recorder)
        self.partitions = self.inputs
        return run

    def _made_producers(self, plan: WorkloadPlan, settings: Settings) -> Writing:
        """The producers of the workload's kind."""
        kind = kind_of(plan)
        writes = kind.writes(plan)
        if kind.writing == "transactions":
            return TransactionProducers(self._writers, partitions=self.inputs, plan=plan, writes=writes)
        return RunProducers(
            self._writers,
            partitions=self.inputs,
            producers=plan.producers,
            writes=writes,
            patience=_patience(plan, settings),
        )

    def _made_consumers(self, plan: WorkloadPlan, settings: Settings) -> Reading:
        """The consumers of the workload's kind; listed writes are read by assignment."""
        reading = kind_of(plan).reading
        if self.application is not None:
            return self.application
        if reading == "group":
            end = self._maker(settings, "after-processing")
            self.group_end = GroupEnd(self._readers, self.membership, [end])
            return Members(
                self._clock,
                [self._maker(settings, settings.commit_mode, number) for number in range(plan.consumers)],
                change_ms=plan.member_change_ms,
                freezes_ms=(int(FREEZE_SESSIONS * settings.session_timeout_ms),),
            )
        if reading == "pipeline":
            pipeline = Pipeline(self._readers, self._writers, plan, settings, (self.inputs, self.outputs))
            self._acknowledged_us.append(pipeline.acknowledged_us)
            self.group_end = pipeline_end(pipeline)
            return PipelineReaders(pipeline)
        return Consumers(self._readers, self.partitions, plan.consumers)

    def _maker(self, settings: Settings, mode: CommitMode, number: int | None = None) -> partial[Member]:
        """Make members that only read, in the slot with this number, or for the end."""
        return partial(Member, self._readers, membership_of(self._plan, settings, number), mode, **self._of_group)

    @property
    def _of_group(self) -> Mapping[str, Any]:
        return {"topics": self._plan.topic_names, "partitions": self.partitions}

    def begin(self) -> None:
        """Write and read from now on."""
        self.mark("break")
        self.producers.start()
        self.consumers.start()

    def mark(self, phase: str) -> None:
        """Write the begin of a phase into the history."""
        mark_phase(self._recorder, self._clock, phase)

    def all_acknowledged_since(self, time_us: int) -> bool:
        """True if every log partition acknowledged a write at or after ``time_us`` (microseconds of the run)."""
        acknowledged_us = {name: last_us for each in self._acknowledged_us for name, last_us in each.items()}
        return all(acknowledged_us.get(name, -1) >= time_us for name in self.partitions)

    def begin_reader(self, on_read: Callable[[Poll], None] = only_recorded) -> Reader:
        """Let one more consumer read every log partition from its start, until it is stopped."""
        reader = Reader(self._readers, self.partitions, on_read=on_read, lost=Reader.stop)
        reader.start()
        return reader

    def begin_member(self, number: int) -> SteppedMember:
        """Make one more member of the group, which takes its turns when it is told to."""
        membership = membership_of(self._plan, self._settings, number)
        return SteppedMember(self._readers, membership, self._settings.commit_mode, **self._of_group)

    @property
    def membership(self) -> Membership:
        """The membership of a client that is no member, and asks or commits from outside."""
        return membership_of(self._plan, self._settings)

    def ask_committed(self, then: Callable[[Offsets | None], None]) -> None:
        """Ask once what the group has committed; the answer is None where it is not whole."""
        CommittedQuestions(self._readers, self.membership, self.partitions).ask(then)

    def close_clients(self) -> None:
        """Close the producers and consumers of the break phase."""
        self.producers.close()
        self.consumers.stop()

    def closings(self, brokers: Sequence[int]) -> Closings:
        """The closings of the workload's kind, where these brokers can be made leaders."""
        levels = (self._readers.isolation, self._readers.other_level.isolation)
        return self.kind.closings(levels, brokers)

    def begin_ending(self, leaders: Leaders) -> RunEnding:
        """Make what the fresh clients of the end share. ``leaders`` are those of the cluster."""
        return RunEnding(
            self._plan,
            self._settings,
            readers=self._readers,
            writers=self._writers,
            inputs=self.inputs,
            outputs=self.partitions[len(self.inputs) :],
            group_end=self.group_end,
            leaders=leaders,
            application=self.application,
        )


def _patience(plan: WorkloadPlan, settings: Settings) -> SilenceLimit:
    """The patience of one run; endless with acks=0, where no acknowledgement comes."""
    silent_ms = plan.replace_silent_ms or settings.delivery_timeout_ms + REPORT_MS
    return SilenceLimit(silent_ms if settings.acks else None, settings.request_timeout_ms)

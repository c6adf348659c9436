"""The end of one run: what its closings do with clients, and what they tell each other (:mod:`workloads.closings`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from workloads.application import ApplicationRun
from workloads.client import Clock
from workloads.consumers import Readers
from workloads.final_read import Drain
from workloads.group_end import CommittedAgain, GroupEnd
from workloads.instance import Writers
from workloads.members import membership_of
from workloads.operations import HARNESS, CleanerTimes, Event, EventType, FreshWrites, Function, Recorder
from workloads.plan import WorkloadPlan
from workloads.recovery import RecoveryWrites
from workloads.settings import IsolationLevel, Settings
from workloads.stable_offsets import StableOffsets


def mark_phase(recorder: Recorder, clock: Clock, phase: str) -> None:
    """Write the begin of a phase into the history."""
    _record_fact(recorder, clock, Function.PHASE, EventType.INFO, {"mark": phase})


def _record_fact(recorder: Recorder, clock: Clock, function: Function, kind: EventType, fact: object) -> None:
    """Write down something that the harness knows, now."""
    detail = msgspec.json.encode(fact).decode()
    recorder.record(Event(time_us=clock.now_us(), process=HARNESS, type=kind, function=function, detail=detail))


class Leaders(Protocol):
    """The leaders of the run's cluster, as a closing sees and moves them."""

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that can be made leaders; none where no leader can be moved."""
        ...

    def lead(self, partitions: Collection[str], broker: int) -> frozenset[str]:
        """Make ``broker`` the leader of these log partitions; those that it leads then."""
        ...

    def coordinate(self, broker: int) -> bool:
        """Make ``broker`` the coordinator of groups; True if it leads a log of groups then."""
        ...


class RunEnding:
    """The fresh clients of one run's end.

    Attributes:
        partitions: the run's log partitions; ``outputs`` are those that members of a group write to.
        new_process: hands out process ids of the history, each once.
        leaders: the cluster's leaders.
    """

    def __init__(
        self,
        plan: WorkloadPlan,
        settings: Settings,
        *,
        readers: Readers,
        writers: Writers,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        group_end: GroupEnd | None,
        leaders: Leaders,
        application: ApplicationRun | None = None,
    ) -> None:
        self.plan, self.settings = plan, settings
        self._readers, self._writers = readers, writers
        self.clients, self.clock, self.recorder = readers.clients, readers.clock, readers.recorder
        self.new_process = readers.new_process
        self.partitions = (*inputs, *outputs)
        self._inputs, self.outputs = inputs, outputs
        self.leaders = leaders
        self._cleaner = _cleaner_times(settings) if writers.keyed or settings.expires else None
        self._group_end = group_end
        self._application = application
        self._stable: StableOffsets | None = None
        self._lacking: Mapping[str, str] = {}
        #: The log partitions that the leader of the moment does not lead, and why reads prove nothing of them.
        self._elsewhere: Mapping[str, str] = {}

    @property
    def application(self) -> ApplicationRun:
        """The application under test."""
        assert self._application is not None, "this kind of workload has no application"  # noqa: S101 - its own mistake
        return self._application

    def write(self, partitions: Sequence[str]) -> RecoveryWrites:
        """Let fresh producers write to these log partitions."""
        recovery = RecoveryWrites(self._writers, partitions, acks=self.settings.acks)
        recovery.start()
        return recovery

    def begin_drain(self, lacking: Mapping[str, str], looked_for: Collection[int] = ()) -> Drain:
        """Let fresh consumers read every log partition; ``lacking`` are those that prove nothing, and why.

        ``looked_for`` are values that :attr:`Drain.seen_values` lists if a reader saw them.
        """
        mark_phase(self.recorder, self.clock, "drain")
        self._lacking = dict(lacking)
        return self._read(self._readers, looked_for=looked_for)

    def read(self, level: IsolationLevel, leader: int | None = None) -> Drain:
        """Let fresh consumers read every log partition at this level; ``leader`` leads them, where it was moved."""
        other = level != self._readers.isolation
        return self._read(self._readers.other_level if other else self._readers, leader=leader)

    def lead(self, broker: int) -> None:
        """Move the leader of every log partition that lacks nothing; later reads prove nothing of the others."""
        led = self.leaders.lead([name for name in self.partitions if name not in self._lacking], broker)
        others = (name for name in self.partitions if name not in led)
        self._elsewhere = dict.fromkeys(others, f"broker {broker} does not lead it")

    def ask_stable(self) -> StableOffsets:
        """Ask whether a transaction is open; later reads of committed records prove nothing where one is."""
        self._stable = StableOffsets(self._readers, self.settings)
        self._stable.start(self.partitions)
        return self._stable

    def finish_group(self) -> GroupEnd:
        """Let fresh members do what the group has left, and ask before and after what it has committed."""
        assert self._group_end is not None, "this kind of workload has no group"  # noqa: S101 - a kind's own mistake
        self._group_end.start(self._inputs)
        return self._group_end

    def ask_committed(self) -> CommittedAgain:
        """Ask the group's present coordinator what the group has committed."""
        question = CommittedAgain(self._readers, membership_of(self.plan, self.settings))
        question.start(self._inputs)
        return question

    def record_recovery(
        self,
        recovery: RecoveryWrites,
        drain: Drain,
        *,
        absent: Mapping[str, str],
        out_of_sync: Mapping[str, str],
        slow_writing: str,
        slow_reading: str,
    ) -> None:
        """Record the writes of fresh clients, and what the cluster lacked (:class:`FreshWrites`).

        ``slow_writing`` and ``slow_reading`` say why the machine was too slow for them, "" where it was not. It excuses
        a log partition only if everything that failed there had no chance.
        """
        unwritten = recovery.unwritten(drain.seen_values)
        # Where no answer proves a write, a reader does.
        slow_proof = slow_writing or (slow_reading if self.settings.acks == 0 else "")
        failed = ((unwritten, slow_proof), (drain.unread, slow_reading))
        hindered = {name: [why for names, why in failed if name in names] for name in self.partitions}
        facts = FreshWrites(
            limit_ms=self.plan.recovery_limit_ms,
            written=tuple(name for name in self.partitions if name not in unwritten),
            unwritten=unwritten,
            lacking=dict(self._lacking),
            absent=dict(absent),
            unread=drain.unread,
            starved={name: why[0] for name, why in hindered.items() if why and all(why)},
            out_of_sync=dict(out_of_sync),
        )
        kind = EventType.INFO if unwritten else EventType.OK
        _record_fact(self.recorder, self.clock, Function.RECOVERY, kind, facts)

    def _read(self, readers: Readers, *, looked_for: Collection[int] = (), leader: int | None = None) -> Drain:
        drain = Drain(
            readers,
            self.partitions,
            unhealthy={**self._held_at(readers.isolation), **self._elsewhere, **self._lacking},
            consumers=self.plan.consumers,
            cleaner=self._cleaner,
            looked_for=looked_for,
            leader=leader,
        )
        drain.start()
        return drain

    def _held_at(self, level: IsolationLevel) -> Mapping[str, str]:
        """The log partitions that cannot be read to their end at this level, because a transaction is open, and why."""
        return {} if self._stable is None or level != "read_committed" else self._stable.held


def _cleaner_times(settings: Settings) -> CleanerTimes:
    """The times for which a log keeps records that may go."""
    return CleanerTimes(
        record_ms=settings.min_compaction_lag_ms,
        tombstone_ms=settings.delete_retention_ms,
        segment_ms=settings.segment_ms,
        dirty_ratio=settings.min_cleanable_dirty_ratio,
        retention_ms=settings.retention_ms if settings.expires else None,
    )

"""The phases of a run, from opening a world to closing it, the same for every world and for whatever is done to it.

Break, heal, drain: the *middle* of a run writes, and does to the cluster what is to be done, by a clock
(:mod:`harness.run.scheduled`) or by a script (:mod:`harness.stories.performer`). Then everything is healed, and the
cluster has time to be well again; then every write is answered, fresh producers write to each log partition, and fresh
consumers read it to the end that its leader names. Loss is claimed only of a log that was healed and read to its end.
Every wait has a limit, and the world is closed whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

import msgspec

from checkers import PartitionEnd
from harness.phases.health import ends_of
from harness.phases.missing_nodes import missing_nodes
from harness.phases.unplanned_events import LOOK_EVERY_MS as LOOK_FOR_DEATHS_EVERY_MS
from harness.phases.unplanned_events import CrashRecorder, unexplained_election
from harness.plan import RunSpec
from harness.records.fault_events import record_broken_invariant, record_fault, record_refused_attempts
from harness.reference.core.types import OFFSETS_TOPIC
from harness.worlds.contract import NodeCrash, World
from nemesis.cluster import ClusterView, Leadership
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import IsolationLevel, LogPartition, Recorder, ServedTime
from workloads.driver import AfterHealing, Drain, RecoveryWrites, SendCounts, Workload
from workloads.history import ISOLATIONS

#: Pause between looks of a wait for the log whether it was served in time (:class:`workloads.ServedTime`), and the most
#: times its limit that the wait lasts. What is not done by then had no chance, and proves nothing against the log.
SERVED_EVERY_MS: Final = 100
STARVED_TIMES_MAX: Final = 4
#: After the last write was answered: for messages still under way (acks=0 has no answer) and the high watermark, which
#: lags behind by one fetch (rule 6).
SETTLE_MS: Final = 300
#: For cleaners of compacted topics: two rounds on a busy machine. Where tombstones stay for longer than a run, none
#: goes while it is read.
CLEANING_MS: Final = 3_000
RETENTION_WAIT_MS_MAX: Final = 5_000
#: For outstanding calls of closed clients to end in the history.
CLOSING_MS: Final = 50


class RunReport(msgspec.Struct, kw_only=True):
    """The outline of a run, for the terminal and for tests; its proof is the history. Times are the run's clock.

    ``recovered_us`` is None if some log partition had not recovered in time, and ``unhealthy`` says which and why.
    ``drained`` is true if every log partition was read to its end. ``deaths`` are nodes that ended by themselves; they
    are not among ``faults``, nor are changes of leader without a cause. ``ends`` is the cluster's last word about
    each log partition.
    """

    schedule: Schedule
    sends: SendCounts
    records_read: int
    faults: list[Receipt]
    healed_us: int
    recovered_us: int | None
    unhealthy: dict[str, str]
    drained: bool
    ended_us: int
    deaths: tuple[NodeCrash, ...] = ()
    ends: dict[str, PartitionEnd] = {}


class Waited(NamedTuple):
    """The end of a wait: the served time left of its limit; if it ended too early, ``slow`` says what hindered it."""

    left_us: int
    slow: str


class Middle(Protocol):
    """The part of a run that decides what is done to the cluster, and who writes meanwhile."""

    @property
    def schedule(self) -> Schedule:
        """The faults that were planned; a script plans none."""

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts of every fault that it began or skipped."""

    @property
    def sends(self) -> SendCounts:
        """Its writes, by how they ended."""

    def begin(self) -> None:
        """Bring about the state in which it begins: a leader that changes later does so by a fault."""

    def play(self) -> None:
        """Do what is to be done to the cluster."""

    def recover(self) -> int | None:
        """End what still lasts, and wait until the cluster is well: the moment at which this was seen, if it was."""

    def answer(self) -> None:
        """Wait until every write was answered that may be, and make no more."""

    def lacking(self) -> dict[str, str]:
        """The log partitions that are not as they should be once all is healed, and what they lack."""


@contextmanager
def opened(world: World) -> Iterator[None]:
    """Open ``world``, which is fresh, and close it at the end in any case."""
    try:
        world.open()
        yield
    finally:
        world.close()


class Phases:
    """Takes one run through its phases in an open world. ``workload`` is the run's, for its middle to write with."""

    def __init__(self, spec: RunSpec, world: World, recorder: Recorder) -> None:
        self._spec = spec
        self._world = world
        self._clock = world.clock
        self._recorder = recorder
        self.workload: Final = Workload(
            spec.workload, spec.chosen(), clients=world.clients, clock=world.clock, recorder=recorder
        )
        self._healed_us = 0
        self._crash_recorder = CrashRecorder(self._record_fault)

    def perform_phases(self, middle: Middle) -> RunReport:
        """Do the run with this ``middle``."""
        self._watch()
        middle.begin()
        before, begun_us = self._world.target.view(), self._clock.now_us()
        middle.play()
        self._healed_us = self._clock.now_us()
        self.workload.mark("heal")
        recovered_us = middle.recover()
        middle.answer()
        self._pass(SETTLE_MS)
        fresh, slow_writing = self._write_afresh(middle)
        self._let_cleaners_rest()
        self._finish_pipeline()
        held = self._await_stable()
        unread = self._unread_at(held)
        lacking, drain = self._drain(middle, fresh, unread[self._spec.chosen().isolation_level], slow_writing)
        self._ask_after_healing()
        self._look_for_unexplained(middle, before, begun_us)
        self._read_again(unread, lacking)
        record_broken_invariant(self._recorder, self._clock, self._world.broken_invariant)
        record_refused_attempts(self._recorder, self._clock, self._world.refused_attempts())
        self.workload.mark("end")
        return RunReport(
            schedule=middle.schedule,
            sends=middle.sends,
            records_read=self.workload.consumers.records_read,
            faults=middle.receipts,
            healed_us=self._healed_us,
            recovered_us=recovered_us,
            unhealthy=lacking,
            drained=drain.complete,
            ended_us=self._clock.now_us(),
            deaths=tuple(self._look_for_deaths()),
            ends=ends_of(
                self._world.target.view(),
                self.workload.partitions,
                drain.ends,
                compacted=self._spec.chosen().cleanup_policy == "compact",
            ),
        )

    def _watch(self) -> None:
        """Look for nodes that ended by themselves, now and then until the world is closed."""
        self._look_for_deaths()
        self._clock.call_at(self._clock.now_us() + LOOK_FOR_DEATHS_EVERY_MS * 1000, self._watch)

    def _look_for_deaths(self) -> Sequence[NodeCrash]:
        deaths = self._world.crashes()
        self._crash_recorder.look(deaths, self._clock.now_us())
        return deaths

    def _look_for_unexplained(self, middle: Middle, before: ClusterView, begun_us: int) -> None:
        """Write down what changed leaders since the middle began, if no fault that reached the cluster did."""
        self._look_for_deaths()
        faults = [*middle.receipts, *self._crash_recorder.receipts]
        receipt = unexplained_election(before, self._world.target.view(), faults, (begun_us, self._clock.now_us()))
        if receipt is not None:
            self._record_fault(receipt)

    def _write_afresh(self, middle: Middle) -> tuple[RecoveryWrites, str]:
        """Let fresh clients write, whatever the old ones could, and in the same time the cluster become whole again.

        An ISR may shrink late: a leader repeats a request that got lost, although its followers are back meanwhile.
        The words say why the machine was too slow for the writes, "" if it was not.
        """
        fresh = self.workload.begin_recovery()
        left_us, slow = self._until_served(lambda: fresh.finished, self._spec.workload.recovery_limit_ms * 1000)
        fresh.end()
        settle_ms = self._settle_ms(left_us // 1000)
        self._pass(settle_ms)
        self._until_served(lambda: not middle.lacking(), left_us - settle_ms * 1000)
        return fresh, slow

    def _settle_ms(self, left_ms: int) -> int:
        """The pause after fresh writes. Where nothing acknowledged them, a follower of the ISR may have none of them.

        It fetches within its lag time, or it leaves the ISR; before that no reader sees them. For this there are
        ``left_ms`` at most.
        """
        settings = self._spec.chosen()
        return SETTLE_MS + (min(settings.replica_lag_time_max_ms, max(0, left_ms)) if settings.acks == 0 else 0)

    def _finish_pipeline(self) -> None:
        """Let what a pipeline has left be done, and a plain record be the last one of each of its outputs.

        A reader that has seen the last record cannot tell that only the marker of a transaction follows.
        """
        if not (questions := self.workload.before_reading):
            return
        for question in questions:
            self._ask(question)
        last = self.workload.begin_recovery(self.workload.outputs)
        self._until_served(lambda: last.finished, self._spec.workload.recovery_limit_ms * 1000)
        last.end()
        self._pass(SETTLE_MS)

    def _await_stable(self) -> Mapping[str, str]:
        """Wait until no transaction is open: the log partitions in which one is, and why they cannot be read.

        A reader of committed records does not pass a transaction that is open.
        """
        if (stable := self.workload.stable) is None:
            return {}
        stable.start(self.workload.partitions)
        self._until_served(lambda: stable.finished, stable.limit_ms * 1000)
        stable.end()
        return stable.held

    def _drain(
        self, middle: Middle, fresh: RecoveryWrites, held: Mapping[str, str], slow_writing: str
    ) -> tuple[dict[str, str], Drain]:
        """Let fresh clients read, and record what they could do and what the cluster lacked.

        ``held`` are log partitions that cannot be read to their end, and why; ``slow_writing`` says why the machine was
        too slow for the writes of ``fresh``, if it was.
        """
        lacking = middle.lacking()
        away = missing_nodes(self._world.target.view(), self.workload.partitions, self._spec.chosen())
        drain = self.workload.begin_drain({**held, **lacking}, fresh.values)
        slow_reading = self._read_to_end(drain)
        self.workload.record_recovery(
            fresh,
            drain,
            lacking,
            away,
            out_of_sync=self._world.out_of_sync(self._healed_us),
            slow_writing=slow_writing,
            slow_reading=slow_reading,
        )
        return lacking, drain

    def _let_cleaners_rest(self) -> None:
        """Wait until nothing is left to clean: a slow reader would miss a tombstone that goes while it reads."""
        if self.workload.kind.keyed:
            self._pass(min(self._spec.chosen().delete_retention_ms, RETENTION_WAIT_MS_MAX) + CLEANING_MS)

    def _unread_at(self, held: Mapping[str, str]) -> dict[IsolationLevel, Mapping[str, str]]:
        """The levels at which the final state is read, the run's first: what cannot be read to its end there, and why.

        A reader of committed records does not pass what is ``held``. Without transactions there is one level.
        """
        first = self._spec.chosen().isolation_level
        levels = sorted(ISOLATIONS, key=lambda level: level != first) if self.workload.stable is not None else [first]
        return {level: held if level == "read_committed" else {} for level in levels}

    def _read_again(self, unread: Mapping[IsolationLevel, Mapping[str, str]], lacking: Mapping[str, str]) -> None:
        """Let fresh clients read at the other level, then at both under each leader; ask coordinators in turn."""
        for level in list(unread)[1:]:
            self._read_to_end(self.workload.read_again(level, {**unread[level], **lacking}))
        if (leadership := self._world.target.leadership) is None:
            return
        for broker in self._world.target.view().brokers:
            if self.workload.kind.read_under_each_leader:
                others = self._lead(leadership, broker, lacking)
                for level, why_not in unread.items():
                    self._read_to_end(self.workload.read_again(level, {**why_not, **others, **lacking}, broker))
            self._ask_coordinator(leadership, broker)

    def _ask_coordinator(self, leadership: Leadership, broker: int) -> None:
        """Ask a group what it has committed once ``broker``, if it is in sync, leads the logs of groups."""
        question = self.workload.ask_under_coordinator()
        if question is None:
            return
        names = [name for name in self._world.target.view().internal if LogPartition.named(name).topic == OFFSETS_TOPIC]
        if [name for name in names if _moved(leadership, name, broker)]:
            self._ask(question)

    def _lead(self, leadership: Leadership, broker: int, lacking: Mapping[str, str]) -> dict[str, str]:
        """Move the leader of every log partition that lacks nothing to ``broker``; the others, and why not."""
        states = self._world.target.view().partitions
        for name in self.workload.partitions:
            if name not in lacking and name in states and states[name].leader != broker:
                leadership.move_leader(name, broker)
        states = self._world.target.view().partitions
        return {
            name: f"broker {broker} does not lead it"
            for name in self.workload.partitions
            if name not in states or states[name].leader != broker
        }

    def _read_to_end(self, drain: Drain) -> str:
        """Let it read; the words say why the machine was too slow for that, "" if it was not."""
        waited = self._until_served(lambda: drain.finished, self._spec.workload.drain_limit_ms * 1000 // 2)
        drain.end()
        self._pass(CLOSING_MS)
        return waited.slow

    def _ask_after_healing(self) -> None:
        for question in self.workload.after_healing:
            self._ask(question)

    def _ask(self, question: AfterHealing) -> None:
        """Put a question of the workload, with half the drain's limit."""
        question.start(self.workload.inputs)
        self._until_served(lambda: question.finished, self._spec.workload.drain_limit_ms * 1000 // 2)
        question.end()
        self._pass(CLOSING_MS)

    def _pass(self, duration_ms: int) -> None:
        self._world.drive(lambda: False, self._clock.now_us() + duration_ms * 1000)

    def _until_served(self, finished: Callable[[], bool], left_us: int) -> Waited:
        """Wait until ``finished()``, for ``left_us`` of served time at most."""
        served = ServedTime(self._clock, SERVED_EVERY_MS * 1000)
        latest_us = self._clock.now_us() + left_us * STARVED_TIMES_MAX

        def left() -> int:
            return left_us - served.look(self._world.hindrance())

        while not finished() and (more_us := left()) > 0 and self._clock.now_us() < latest_us:
            self._world.drive(finished, self._clock.now_us() + min(more_us, SERVED_EVERY_MS * 1000))
        still_us = left()
        return Waited(still_us, served.lost() if still_us > 0 and not finished() else "")

    def _record_fault(self, receipt: Receipt) -> None:
        record_fault(self._recorder, self._clock, receipt)


def _moved(leadership: Leadership, name: str, broker: int) -> bool:
    """Move the leader of a log of groups; True if ``broker`` leads it then."""
    return leadership.move_leader(name, broker).get("leader") == broker

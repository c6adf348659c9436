"""The phases of a run, from opening a world to closing it, the same for every world and for whatever is done to it.

Break, heal, drain: the *middle* of a run writes, and does to the cluster what is to be done, by a clock
(:mod:`harness.runs.run.scheduled`) or by a script (:mod:`harness.runs.stories.script.performer`). Then everything is
healed, and the cluster has time to be well again; then every write is answered, fresh producers write to each log
partition, and fresh consumers read it to the end that its leader names. Loss is claimed only of a log that was healed
and read to its end. What a workload does and asks beside that are its closings (:mod:`workloads.closings`), which are
done in their order. Every wait has a limit, and the world is closed whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

import msgspec

from checkers import PartitionEnd
from harness.ground.errors import HarnessError
from harness.plan import RunSpec
from harness.records.fault_events import record_broken_invariant, record_fault, record_refused_attempts
from harness.runs.phases.health import ends_of
from harness.runs.phases.leaders import TargetLeaders
from harness.runs.phases.missing_nodes import missing_nodes
from harness.runs.phases.unplanned_events import LOOK_EVERY_MS as LOOK_FOR_DEATHS_EVERY_MS
from harness.runs.phases.unplanned_events import CrashRecorder, unexplained_election
from harness.worlds.contract import NodeCrash, World
from nemesis.cluster import ClusterView
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import Recorder, ServedTime
from workloads.driver import (
    CLOSING_MS,
    SETTLE_MS,
    Begun,
    Closing,
    Drain,
    RecoveryWrites,
    RunEnding,
    SendCounts,
    Workload,
)

#: Pause between looks of a wait for the log whether it was served in time (:class:`workloads.ServedTime`), and the most
#: times its limit that the wait lasts. What is not done by then had no chance, and proves nothing against the log.
SERVED_EVERY_MS: Final = 100
STARVED_TIMES_MAX: Final = 4


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
            spec.workload,
            spec.chosen(),
            clients=world.clients,
            clock=world.clock,
            recorder=recorder,
            processes=None if spec.workload.application is None else world.instances,
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
        leaders = TargetLeaders(self._world.target)
        ending, closings = self.workload.begin_ending(leaders), self.workload.closings(leaders.brokers)
        fresh, written = self._write_afresh(middle, ending)
        self._close(ending, closings.before)
        lacking, drain = self._drain(middle, ending, fresh, written)
        self._close(ending, closings.after)
        self._look_for_unexplained(middle, before, begun_us)
        self._close(ending, closings.again)
        record_broken_invariant(self._recorder, self._clock, self._world.broken_invariant)
        record_refused_attempts(self._recorder, self._clock, self._world.refused_attempts())
        self.workload.mark("end")
        if (applied := self.workload.application) is not None and applied.complaint:
            raise HarnessError(applied.complaint)
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

    def _write_afresh(self, middle: Middle, ending: RunEnding) -> tuple[RecoveryWrites, Waited]:
        """Let fresh clients write, whatever the old ones could, and in the same time the cluster become whole again.

        An ISR may shrink late: a leader repeats a request that got lost, although its followers are back meanwhile.
        The wait says what of the limit is left after both, and why the machine was too slow for the writes.
        """
        fresh = ending.write(self.workload.partitions)
        left_us, slow = self._until_served(lambda: fresh.finished, self._spec.workload.recovery_limit_ms * 1000)
        fresh.end()
        settle_ms = self._settle_ms(left_us // 1000)
        self._pass(settle_ms)
        whole = self._until_served(lambda: not middle.lacking(), left_us - settle_ms * 1000)
        return fresh, Waited(whole.left_us, slow)

    def _settle_ms(self, left_ms: int) -> int:
        """The pause after fresh writes. Where nothing acknowledged them, a follower of the ISR may have none of them.

        It fetches within its lag time, or it leaves the ISR; before that no reader sees them. For this there are
        ``left_ms`` at most.
        """
        settings = self._spec.chosen()
        return SETTLE_MS + (min(settings.replica_lag_time_max_ms, max(0, left_ms)) if settings.acks == 0 else 0)

    def _close(self, ending: RunEnding, closings: Sequence[Closing]) -> None:
        """Do these closings of the workload, one after the other."""
        for closing in closings:
            self._finish(closing.begin(ending))

    def _finish(self, begun: Begun) -> str:
        """Let it work to its end; the words say why the machine was too slow for that, "" if it was not."""
        waited = self._until_served(lambda: begun.work.finished, begun.limit_ms * 1000)
        begun.work.end()
        if begun.pause_ms:
            self._pass(begun.pause_ms)
        return waited.slow

    def _drain(
        self, middle: Middle, ending: RunEnding, fresh: RecoveryWrites, written: Waited
    ) -> tuple[dict[str, str], Drain]:
        """Let fresh clients read, and record what they could do and what the cluster lacked.

        ``written`` is the wait for the writes of ``fresh``. What the cluster lacks is believed when its limit is over:
        an ISR that shrank late, or an answer of the controller that came late, is another by the next look.
        """
        looks: list[dict[str, str]] = []

        def is_whole() -> bool:
            looks.append(middle.lacking())
            return not looks[-1]

        self._until_served(is_whole, written.left_us)
        lacking = looks[-1]
        absent = missing_nodes(self._world.target.view(), self.workload.partitions, self._spec.chosen())
        drain = ending.begin_drain(lacking, fresh.values)
        slow_reading = self._finish(Begun(drain, self._spec.workload.drain_limit_ms // 2, CLOSING_MS))
        ending.record_recovery(
            fresh,
            drain,
            absent=absent,
            out_of_sync=self._world.out_of_sync(self._healed_us),
            slow_writing=written.slow,
            slow_reading=slow_reading,
        )
        return lacking, drain

    def _pass(self, duration_ms: int) -> None:
        self._world.drive(lambda: False, self._clock.now_us() + duration_ms * 1000)

    def _until_served(self, finished: Callable[[], bool], left_us: int) -> Waited:
        """Wait until ``finished()``, for ``left_us`` of served time at most."""
        served = ServedTime(self._clock, SERVED_EVERY_MS * 1000)
        latest_us = self._clock.now_us() + left_us * STARVED_TIMES_MAX

        def left() -> int:
            return left_us - served.look(self._world.hindrance())

        done = finished()
        while not done and (more_us := left()) > 0 and self._clock.now_us() < latest_us:
            done = self._world.drive(finished, self._clock.now_us() + min(more_us, SERVED_EVERY_MS * 1000))
        still_us = left()
        return Waited(still_us, "" if done or still_us <= 0 else served.lost())

    def _record_fault(self, receipt: Receipt) -> None:
        record_fault(self._recorder, self._clock, receipt)

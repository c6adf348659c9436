"""The phases of a run, from opening a world to closing it, the same for every world.

Break, heal, drain: work begins, and once the cluster is well there are faults besides for ``duration_ms``; then
everything is healed, and work goes on until it is well again; then every write is answered, fresh producers write to
each log partition, and fresh consumers read it to the end that its leader names. A cluster is well when a controller is
active and every log partition has a leader, a full ISR and a newly acknowledged write. Loss is claimed only of a log
that was healed and read to its end. Every wait has a limit, and the world is closed whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from checkers import PartitionEnd
from harness.missing_nodes import missing_nodes
from harness.plan import RunSpec, timings_of
from harness.records.fault_events import record_broken_invariant, record_fault
from harness.run.unplanned import LOOK_EVERY_MS as LOOK_FOR_DEATHS_EVERY_MS
from harness.run.unplanned import CrashRecorder, unexplained_election
from harness.worlds.contract import NodeCrash, World
from nemesis.cluster import ClusterView
from nemesis.player import Player
from nemesis.receipts import Receipt
from nemesis.roles import largest_rack
from nemesis.scenarios import Draw
from nemesis.schedule import Schedule, draw_schedule
from workloads import LISTED, Recorder, ServedTime
from workloads.driver import Drain, RecoveryWrites, SendCounts, Workload

#: How long a cluster has for its first writes before faults begin anyway: settings may let it acknowledge none.
WARM_UP_MS_MAX: Final = 15_000
#: How much longer than planned the break phase may be, for faults that took their time.
LATE_MS_MAX: Final = 60_000
#: How often the cluster's health is looked at after healing.
LOOK_EVERY_MS: Final = 50
#: A wait for the log to come back looks so often whether it was served in time (:class:`workloads.ServedTime`), and
#: lasts so many times its limit at most.
SERVED_EVERY_MS: Final = 100
STARVED_TIMES_MAX: Final = 4
#: After the last write was answered: for messages still under way (acks=0 has no answer) and the high watermark, which
#: lags behind by one fetch (rule 6).
SETTLE_MS: Final = 300
#: For outstanding calls of closed clients to end in the history.
CLOSING_MS: Final = 50
#: An adapter answers every send within the client's own delivery time-out; this much longer is waited for it.
ANSWER_MARGIN_MS: Final = 2_000


class RunReport(msgspec.Struct, kw_only=True):
    """How a run went, for the terminal and for tests; what it proves is in its history. Times are the run's clock.

    ``recovered_us`` is None if some log partition had not recovered in time, and ``unhealthy`` says which and why.
    ``drained`` is true if every log partition was read to its end. ``deaths`` are nodes that ended by themselves; they
    are not among ``faults``, nor are changes of leader that nobody asked for. ``ends`` is the cluster's last word about
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


def execute(spec: RunSpec, world: World, recorder: Recorder, draw: Draw) -> RunReport:
    """Do the run that ``spec`` describes in ``world``, which is fresh and is closed at the end in any case.

    Raises:
        HarnessError: the world could not do its work; what was recorded so far stands.
    """
    schedule = planned(spec, draw)
    try:
        world.open()
        return _Phases(spec, world, recorder, schedule).go_through()
    finally:
        world.close()


def planned(spec: RunSpec, draw: Draw) -> Schedule:
    """The schedule of faults that ``spec`` has, or asks chance for; a scripted story needs none."""
    if spec.schedule is not None:
        return spec.schedule
    if spec.story:
        return Schedule(steps=(), healed_ms=0)
    return draw_schedule(
        spec.faults,
        timings=timings_of(spec.chosen()),
        brokers=spec.brokers,
        partitions=spec.workload.partitions,
        duration_ms=spec.workload.duration_ms,
        draw=draw,
        rack_size=largest_rack(spec.racks),
    )


def unhealthy(view: ClusterView, partitions: Iterable[str]) -> dict[str, str]:
    """The log partitions that lack a running leader or a full ISR, and what they lack."""
    lacks = {name: _lack(view, name) for name in partitions}
    return {name: lack for name, lack in lacks.items() if lack}


def ends_of(view: ClusterView, partitions: Iterable[str], reached: Mapping[str, int]) -> dict[str, PartitionEnd]:
    """The state of ``partitions`` in ``view``; ``reached`` are the ends to which healthy ones were read."""
    return {
        name: PartitionEnd(
            leader=state.leader,
            isr=tuple(state.isr),
            running=tuple(node for node in state.isr if node in view.running),
            end_offset=reached.get(name),
        )
        for name in partitions
        if (state := view.partitions.get(name)) is not None
    }


def _lack(view: ClusterView, name: str) -> str:
    state = view.partitions.get(name)
    if state is None:
        return "the controller does not know it"
    if state.leader is None:
        return "it has no leader"
    if state.leader not in view.running:
        return f"its leader, broker {state.leader}, does not run"
    missing = sorted(set(state.replicas) - set(state.isr))
    return f"not in its ISR: {', '.join(f'broker {node}' for node in missing)}" if missing else ""


class _Phases:
    """Takes one run through its phases."""

    def __init__(self, spec: RunSpec, world: World, recorder: Recorder, schedule: Schedule) -> None:
        self._spec = spec
        self._world = world
        self._clock = world.clock
        self._recorder = recorder
        self._schedule = schedule
        self._workload = Workload(
            spec.workload, spec.chosen(), clients=world.clients, clock=world.clock, recorder=recorder
        )
        self._player = Player(
            schedule,
            # The clients are the workload's in every world.
            msgspec.structs.replace(world.target, clients=self._workload.producers),
            world.clock,
            dead_brokers_max=spec.faults.dead_brokers_max,
            witness=self._record_fault,
        )
        self._crash_recorder = CrashRecorder(self._record_fault)
        self._healed_us = 0
        self._recovered_us: int | None = None

    def go_through(self) -> RunReport:
        self._watch()
        before, begun_us = self._world.target.view(), self._clock.now_us()
        self._break()
        self._recover()
        self._answer()
        fresh = self._write_afresh()
        lacking, drain = self._drain(fresh)
        self._look_for_unexplained(before, begun_us)
        record_broken_invariant(self._recorder, self._clock, self._world.broken_invariant)
        self._workload.mark("end")
        return RunReport(
            schedule=self._schedule,
            sends=self._workload.producers.counts,
            records_read=self._workload.consumers.records_read,
            faults=self._player.receipts,
            healed_us=self._healed_us,
            recovered_us=self._recovered_us,
            unhealthy=lacking,
            drained=drain.complete,
            ended_us=self._clock.now_us(),
            deaths=tuple(self._look_for_deaths()),
            ends=ends_of(self._world.target.view(), self._workload.partitions, drain.ends),
        )

    def _watch(self) -> None:
        """Look for nodes that ended by themselves, now and then until the world is closed."""
        self._look_for_deaths()
        self._clock.call_at(self._clock.now_us() + LOOK_FOR_DEATHS_EVERY_MS * 1000, self._watch)

    def _look_for_deaths(self) -> Sequence[NodeCrash]:
        deaths = self._world.crashes()
        self._crash_recorder.look(deaths, self._clock.now_us())
        return deaths

    def _look_for_unexplained(self, before: ClusterView, begun_us: int) -> None:
        """Write down what changed leaders since the break phase began, if no fault that reached the cluster did."""
        self._look_for_deaths()
        faults = [*self._player.receipts, *self._crash_recorder.receipts]
        receipt = unexplained_election(before, self._world.target.view(), faults, (begun_us, self._clock.now_us()))
        if receipt is not None:
            self._record_fault(receipt)

    def _break(self) -> None:
        """Where nothing was acknowledged yet, a fault has nothing to take: the schedule begins after that.

        Listed writes have the schedule's own times: both begin at once.
        """
        self._workload.begin()
        if self._spec.workload.name != LISTED:
            self._until_well(WARM_UP_MS_MAX)
        planned_us = self._clock.now_us() + self._spec.workload.duration_ms * 1000
        self._player.start()
        while self._clock.now_us() < (end_us := planned_us + min(self._player.late_us, LATE_MS_MAX * 1000)):
            self._world.drive(lambda: False, end_us)
        self._player.heal_all()

    def _recover(self) -> None:
        """Work on until the cluster is well and no producer is in doubt; half the drain's limit is for this."""
        self._healed_us = self._clock.now_us()
        self._workload.mark("heal")
        limit_ms = self._spec.workload.drain_limit_ms // 2
        self._recovered_us = self._until_well(limit_ms)
        self._world.drive(lambda: self._workload.producers.settled, self._healed_us + limit_ms * 1000)

    def _until_well(self, limit_ms: int) -> int | None:
        """Work on until the cluster is well and has acknowledged a write of every log partition since now, if there are
        still writes to make.

        The moment at which this was seen, None if it was not within ``limit_ms``.
        """
        since_us = self._clock.now_us()
        producers = self._workload.producers
        while not (self._well() and (producers.exhausted or self._workload.all_acknowledged_since(since_us))):
            if self._clock.now_us() >= since_us + limit_ms * 1000:
                return None
            self._pass(LOOK_EVERY_MS)
        return self._clock.now_us()

    def _well(self) -> bool:
        view = self._world.target.view()
        return view.controller_active and not unhealthy(view, self._workload.partitions)

    def _answer(self) -> None:
        """Wait for every write's answer, then close the clients, whose late requests would otherwise still arrive."""
        self._workload.producers.stop()
        limit_ms = self._spec.chosen().answer_limit_ms + ANSWER_MARGIN_MS
        self._until(lambda: self._workload.producers.outstanding == 0, limit_ms)
        self._workload.close_clients()
        self._pass(SETTLE_MS)

    def _write_afresh(self) -> RecoveryWrites:
        """Let fresh clients write, whatever the old ones could, and in the same time the cluster become whole again.

        An ISR may shrink late: a leader repeats a request that got lost, although its followers are back meanwhile.
        """
        fresh = self._workload.begin_recovery()
        left_us = self._until_served(lambda: fresh.finished, self._spec.workload.recovery_limit_ms * 1000)
        fresh.end()
        self._pass(SETTLE_MS)
        self._until_served(lambda: not self._lacking(), left_us - SETTLE_MS * 1000)
        return fresh

    def _drain(self, fresh: RecoveryWrites) -> tuple[dict[str, str], Drain]:
        """Let fresh clients read, and record what they could do and what the cluster lacked."""
        lacking = self._lacking()
        away = missing_nodes(self._world.target.view(), self._workload.partitions, self._spec.chosen())
        drain = self._workload.begin_drain(lacking, fresh.values)
        self._until_served(lambda: drain.finished, self._spec.workload.drain_limit_ms * 1000 // 2)
        drain.end()
        self._pass(CLOSING_MS)
        self._workload.record_recovery(fresh, drain, lacking, away)
        return lacking, drain

    def _lacking(self) -> dict[str, str]:
        return unhealthy(self._world.target.view(), self._workload.partitions)

    def _pass(self, duration_ms: int) -> None:
        self._until(lambda: False, duration_ms)

    def _until(self, finished: Callable[[], bool], limit_ms: int) -> bool:
        return self._world.drive(finished, self._clock.now_us() + limit_ms * 1000)

    def _until_served(self, finished: Callable[[], bool], left_us: int) -> int:
        """Wait until ``finished()``, for ``left_us`` of served time at most; what is left of it."""
        served = ServedTime(self._clock, SERVED_EVERY_MS * 1000)
        latest_us = self._clock.now_us() + left_us * STARVED_TIMES_MAX
        while not finished() and (more_us := left_us - served.look()) > 0 and self._clock.now_us() < latest_us:
            self._world.drive(finished, self._clock.now_us() + min(more_us, SERVED_EVERY_MS * 1000))
        return left_us - served.look()

    def _record_fault(self, receipt: Receipt) -> None:
        record_fault(self._recorder, self._clock, receipt)

"""A run whose faults come by the clock: a workload writes and reads, and a schedule of faults is played meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from harness.plan import Kafka, RunSpec, timings_of
from harness.records.fault_events import record_fault
from harness.runs.phases import Phases, RunReport, opened, unhealthy
from harness.worlds.contract import World
from nemesis.cluster import CONTROLLER
from nemesis.faults import Upgrade
from nemesis.player import Player
from nemesis.receipts import Receipt
from nemesis.roles import largest_rack
from nemesis.rollout import Rollout, RolloutStep, rollout_steps
from nemesis.scenarios import Draw
from nemesis.schedule import Schedule, draw_schedule
from workloads import LISTED, Recorder
from workloads.driver import SendCounts, Workload

#: Time of a cluster for its first writes before faults begin anyway: settings may let it acknowledge none.
WARM_UP_MS_MAX: Final = 15_000
#: Time by which the break phase may be longer than planned, for faults that took their time.
LATE_MS_MAX: Final = 60_000
#: Time by which a rollout may be over later still, whose steps wait for the cluster.
ROLLOUT_LATE_MS_MAX: Final = 180_000
#: Pause between looks at the cluster's health after healing.
LOOK_EVERY_MS: Final = 50
#: An adapter answers every send within the client's own delivery time-out; this much longer is waited for it.
ANSWER_MARGIN_MS: Final = 2_000


def perform_schedule(
    spec: RunSpec, world: World, recorder: Recorder, draw: Draw, afterwards: Callable[[], object] = lambda: None
) -> RunReport:
    """Do the run that ``spec`` describes in ``world``, which is fresh and is closed at the end in any case.

    ``afterwards`` is called before that, when the run is over.

    Raises:
        HarnessError: the world could not do its work; what was recorded so far stands.
    """
    schedule = planned(spec, draw)
    with opened(world):
        phases = Phases(spec, world, recorder)
        report = phases.perform_phases(_Scheduled(spec, world, phases.workload, recorder, schedule))
        afterwards()
        return report


def late_ms_max(spec: RunSpec) -> int:
    """The time by which the break phase of such a run may be longer than planned."""
    return LATE_MS_MAX + (ROLLOUT_LATE_MS_MAX if rollout_of(spec) else 0)


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
        partitions=len(spec.workload.log_partitions),
        duration_ms=spec.workload.duration_ms,
        draw=draw,
        rack_size=largest_rack(spec.racks),
    )


def rollout_of(spec: RunSpec) -> list[RolloutStep]:
    """The steps of the rolling upgrade beside a drawn schedule; none without the family "upgrade"."""
    if spec.schedule is not None or Upgrade.family not in spec.faults.families:
        return []
    brokers, world = range(spec.brokers), spec.world
    if not isinstance(world, Kafka):
        return rollout_steps(brokers)
    controllers = range(CONTROLLER, CONTROLLER + world.controllers)
    finalizes = world.upgrade_end == "finalize" and bool(world.upgrade_to)
    nodes, back = [*controllers, *brokers], world.upgrade_end == "back"
    return rollout_steps(nodes, way=world.upgrade_by, back=back, finalize=finalizes)


class _Scheduled:
    """The middle of such a run (:class:`harness.runs.phases.Middle`)."""

    def __init__(self, spec: RunSpec, world: World, workload: Workload, recorder: Recorder, schedule: Schedule) -> None:
        self._spec = spec
        self._world = world
        self._clock = world.clock
        self._workload = workload
        self._recorder = recorder
        self._player = Player(
            schedule,
            # The clients are the workload's in every world.
            msgspec.structs.replace(
                world.target,
                clients=workload.producers,
                instances=None if workload.application is None else workload.application.instances,
            ),
            world.clock,
            dead_brokers_max=spec.faults.dead_brokers_max,
            witness=self._record_fault,
            settled=self._settled,
        )
        self._rollout = Rollout(
            rollout_of(spec),
            self._player.faults,
            world.target,
            world.clock,
            first_sequence=len(schedule.steps),
            first_group=1 + max((step.group for step in schedule.steps), default=-1),
        )
        self.schedule: Final = schedule

    @property
    def receipts(self) -> list[Receipt]:
        return self._player.receipts

    @property
    def sends(self) -> SendCounts:
        return self._workload.producers.counts

    def begin(self) -> None:
        self._workload.begin()

    def play(self) -> None:
        """Play the schedule, which begins after the first acknowledged writes: before, a fault has nothing to take.

        Listed writes have the schedule's own times: both begin at once.
        """
        if self._spec.workload.name != LISTED:
            self._until_well(WARM_UP_MS_MAX)
        if (applied := self._workload.application) is not None:
            self._world.drive(lambda: applied.ready, self._clock.now_us() + applied.plan.ready_limit_ms * 1000)
        planned_us = self._clock.now_us() + self._spec.workload.duration_ms * 1000
        self._player.start()
        self._rollout.start()
        while self._clock.now_us() < (end_us := planned_us + min(self._player.late_us, LATE_MS_MAX * 1000)):
            self._world.drive(lambda: False, end_us)
        # A rollout may be late too: writes go on, so the steps that are left are put to the test as those before.
        self._world.drive(lambda: self._rollout.over, end_us + ROLLOUT_LATE_MS_MAX * 1000)
        self._rollout.stop("the run's time was over before it was done; raise duration_ms")
        self._player.heal_all()

    def recover(self) -> int | None:
        """Work on until the cluster is well and no producer is in doubt; half the drain's limit is for this."""
        healed_us = self._clock.now_us()
        limit_ms = self._spec.workload.drain_limit_ms // 2
        recovered_us = self._until_well(limit_ms)
        self._world.drive(lambda: self._workload.producers.settled, healed_us + limit_ms * 1000)
        return recovered_us

    def answer(self) -> None:
        """Wait for every write's answer, then close the clients, whose late requests would otherwise still arrive."""
        self._workload.producers.stop()
        limit_us = (self._spec.chosen().answer_limit_ms + ANSWER_MARGIN_MS) * 1000
        self._world.drive(lambda: self._workload.producers.outstanding == 0, self._clock.now_us() + limit_us)
        self._workload.close_clients()

    def lacking(self) -> dict[str, str]:
        return unhealthy(self._world.target.view(), self._workload.partitions)

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
            self._world.drive(lambda: False, self._clock.now_us() + LOOK_EVERY_MS * 1000)
        return self._clock.now_us()

    def _well(self) -> bool:
        view = self._world.target.view()
        return view.controller_active and not unhealthy(view, self._workload.partitions)

    def _settled(self) -> bool:
        return self._rollout.settled()

    def _record_fault(self, receipt: Receipt) -> None:
        record_fault(self._recorder, self._clock, receipt)

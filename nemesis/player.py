"""Plays a schedule against a cluster: resolves roles, keeps the budget, undoes everything, and writes receipts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from nemesis.cluster import ClusterView, Target
from nemesis.faults import Aim
from nemesis.open_faults import Cause, OpenFaults
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule, ScheduledFault
from nemesis.topology import every_link

#: Pause between looks at the cluster while a fault lasts, to see leaders and in-sync replicas change.
LOOK_EVERY_MS: Final = 100
#: The longest wait of a scenario for a cluster that has settled: twice what a node of Kafka takes on a busy machine.
SETTLE_LIMIT_MS: Final = 120_000


class RunClock(Protocol):
    """The run's clock, as the workload's contract describes it."""

    def now_us(self) -> int:
        """Now, in microseconds since the run began."""
        ...

    def call_at(self, time_us: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` once, at ``time_us`` or as soon after it as possible."""
        ...


class Player:
    """Plays one schedule. ``witness`` is given every receipt as it is marked: begun, ended or skipped.

    On real machines a command takes a while to take effect, on a busy one longer than the time between two faults of a
    scenario. So the schedule's time stops meanwhile: what happens between two faults has as long as was drawn for it.
    It stops as well before a scenario while the cluster has not ``settled``, but not for long.
    """

    def __init__(
        self,
        schedule: Schedule,
        target: Target,
        clock: RunClock,
        *,
        dead_brokers_max: int,
        witness: Callable[[Receipt], None],
        settled: Callable[[], bool] = lambda: True,
    ) -> None:
        self._schedule = schedule
        self._target = target
        self._clock = clock
        self._settled = settled
        self._dead_brokers_max = dead_brokers_max
        self.faults: Final = OpenFaults(target, clock.now_us, witness)
        self._healed = self._looking = False
        self._late_us = 0

    @property
    def receipts(self) -> list[Receipt]:
        """The receipts of all faults that have begun or were skipped."""
        return self.faults.receipts

    @property
    def late_us(self) -> int:
        """The delay of the schedule so far; 0 in virtual time."""
        return self._late_us

    def start(self) -> None:
        """Arm every step; the break phase begins now."""
        zero_us, group = self._clock.now_us(), -1
        for sequence, step in enumerate(self._schedule.steps):
            begin = partial(self._begin, sequence, step, zero_us)
            planned_us = zero_us + step.begin_ms * 1000
            self._arm(planned_us, begin if step.group == group else partial(self._once_settled, planned_us, begin, 0))
            group = step.group

    def heal_all(self) -> None:
        """End every fault that lasts, forbid further ones, and then undo whatever may have been left. Idempotent.

        Faults whose turn has not come are marked as skipped, so that the run is not taken for one that met them.
        """
        self._skip_the_rest()
        self._healed = True
        self.faults.end_all()
        restore(self._target)

    def _arm(self, planned_us: int, do: Callable[[], None]) -> None:
        self._clock.call_at(planned_us + self._late_us, partial(self._when_due, planned_us, do))

    def _when_due(self, planned_us: int, do: Callable[[], None]) -> None:
        """Do it, unless the schedule has fallen behind since this was armed."""
        if self._clock.now_us() < planned_us + self._late_us:
            self._arm(planned_us, do)
            return
        do()
        self._late_us = max(self._late_us, self._clock.now_us() - planned_us)

    def _once_settled(self, planned_us: int, begin: Callable[[], None], waited_ms: int) -> None:
        """Begin a scenario, with the rest of the schedule later, when the cluster has settled, or has not for long."""
        if self._healed or waited_ms >= SETTLE_LIMIT_MS or self._settled():
            begin()
            return
        self._late_us += LOOK_EVERY_MS * 1000
        self._arm(planned_us, partial(self._once_settled, planned_us, begin, waited_ms + LOOK_EVERY_MS))

    def _begin(self, sequence: int, step: ScheduledFault, zero_us: int) -> None:
        if self._healed:
            return
        view = self._target.view()
        aim = self._within_budget(step, _aim(step, self._target, view), view)
        if aim.impossible:
            self.faults.skip(step.fault, aim, _cause(step), sequence)
            return
        self._look_later()
        self.faults.begin(step.fault, aim, _cause(step), view=view, sequence=sequence)
        self._arm(zero_us + step.end_ms * 1000, partial(self.faults.end, sequence))

    def _look_later(self) -> None:
        """Look again, once."""
        if not self._looking:
            self._looking = True
            self._clock.call_at(self._clock.now_us() + LOOK_EVERY_MS * 1000, self._look)

    def _look(self) -> None:
        self._looking = False
        self.faults.view()
        if self.faults:
            self._look_later()

    def _skip_the_rest(self) -> None:
        """In virtual time no fault is left; on real machines commands may have taken more time than a run has."""
        had_their_turn = {receipt.sequence for receipt in self.receipts}
        too_late = Aim(impossible="its turn did not come: earlier faults, or the cluster to settle, took too long")
        for sequence, step in enumerate(self._schedule.steps):
            if sequence not in had_their_turn:
                self.faults.skip(step.fault, too_late, _cause(step), sequence)

    def _within_budget(self, step: ScheduledFault, aim: Aim, view: ClusterView) -> Aim:
        """The aim, or an impossible one if it would stop more brokers than the plan allows at one time."""
        if not step.fault.stops_brokers or aim.impossible:
            return aim
        stopped = set(view.brokers) - set(view.running)
        if len(stopped | (set(aim.nodes) & set(view.brokers))) <= self._dead_brokers_max:
            return aim
        allowed = f"dead_brokers_max={self._dead_brokers_max}"
        return Aim(impossible=f"it would exceed {allowed}: {len(stopped)} are dead or frozen already")


def restore(target: Target) -> None:
    """Make every link whole, release every connection and message, and let what is frozen or dead run."""
    view = target.view()
    links, processes = every_link(view.brokers), target.processes
    if target.links is not None:
        target.links.heal(links)
    if target.connections is not None:
        target.connections.deliver(links)
    if target.packets is not None:
        target.packets.spare(links)
    if target.messages is not None:
        target.messages.release(links)
    if target.instances is not None:
        target.instances.restore_all()
    if processes is None:
        return
    running = {*view.running, *view.running_controllers}
    for node in (*view.controllers, *view.brokers):
        if node not in running:
            processes.resume(node)
            processes.restart(node)


def _aim(step: ScheduledFault, target: Target, view: ClusterView) -> Aim:
    """Aim the fault; at nothing where this world cannot do its kind."""
    why_not = target.why_not(step.fault.needs)
    return Aim(impossible=why_not) if why_not else step.fault.aim(view)


def _cause(step: ScheduledFault) -> Cause:
    fault = step.fault
    return Cause(step.family, step.scenario, str(fault.role), getattr(fault, "shape", None), step.group)

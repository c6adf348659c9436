"""The instances of an application under test: started, looked after, and broken.

An instance that ends by itself is started again after a pause, and its end is remembered. One that ends again and again
as soon as it was started is left alone. What a fault did to an instance stays until the fault ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypedDict

import msgspec

from workloads.application_facts import InstanceExit
from workloads.application_plan import ApplicationPlan
from workloads.client import Clock

#: Pause between looks at the instances.
LOOK_MS: Final = 100
#: An instance that lived no longer than this ended at once; after this number of such ends in a row it is left alone.
AT_ONCE_MS: Final = 5_000
AT_ONCE_MAX: Final = 5
#: The ends of instances that are remembered, the first ones: more only repeat.
EXITS_MAX: Final = 50


class InstanceProcesses(Protocol):
    """The processes of the instances, where the run's cluster is. Every call takes effect before it returns."""

    def start(self, instance: int) -> int:
        """Start an instance that does not run; its process id."""
        ...

    def exit(self, instance: int) -> str | None:
        """Say how the instance ended, None while it runs."""
        ...

    def words(self, instance: int) -> str:
        """The end of what the instance has printed."""
        ...

    def is_ready(self, instance: int, ready: str) -> bool:
        """Tell if an instance is ready as a plan's ``ready`` has it."""
        ...

    def ask_to_end(self, instance: int) -> None:
        """Ask the instance to end in order (SIGTERM)."""
        ...

    def kill(self, instance: int) -> None:
        """End the instance and every process that it started, at once (SIGKILL)."""
        ...

    def freeze(self, instance: int) -> None:
        """Let the instance and its processes stand still (SIGSTOP)."""
        ...

    def thaw(self, instance: int) -> None:
        """Let them go on (SIGCONT)."""
        ...

    def cut(self, instance: int, broker: int) -> bool:
        """Let nothing that the instance sends arrive at this broker; tells if that was done."""
        ...

    def mend(self, instance: int) -> int | None:
        """Let it reach every broker again; the packets that were dropped, None where it was not cut off."""
        ...

    def printed_effects(self) -> tuple[Sequence[str], str]:
        """The lines that the plan's command ``effects`` prints; and why they are not all, "" if they are."""
        ...

    def other_topics(self) -> tuple[str, ...]:
        """The topics of the cluster that are neither the run's nor the brokers' own; none where it does not answer."""
        ...


class InstanceState(TypedDict, total=False):
    """The evidence of an instance when a fault began or ended."""

    instance: int
    pid: int | str
    exit: str | None
    asked: bool
    frozen: bool
    broker: int
    lost_packets: int


class _Slot(msgspec.Struct):
    """The state of one instance, and what was done to it.

    Attributes:
        state: it runs; a fault holds it; it ended by itself and will be started again; it is left alone; or it was
            taken away.
        asked: it was asked to end, so that a start has to end it first.
        starts: how often it was started. started_us: when it was started last.
        at_once: how often in a row it ended at once.
    """

    state: Literal["runs", "held", "waits", "left alone", "gone"] = "runs"
    asked: bool = False
    starts: int = 0
    started_us: int = 0
    at_once: int = 0


class Instances:
    """All instances of one run (:class:`nemesis.cluster.ApplicationInstances`).

    Attributes:
        exits: the ends that nothing of the run asked for, in order of time.
    """

    def __init__(self, plan: ApplicationPlan, processes: InstanceProcesses, clock: Clock) -> None:
        self._plan, self._processes, self._clock = plan, processes, clock
        self._slots: dict[int, _Slot] = {}
        self._over = False
        self.exits: list[InstanceExit] = []

    @property
    def starts(self) -> int:
        """The number of starts of instances."""
        return sum(slot.starts for slot in self._slots.values())

    @property
    def crash_loops(self) -> tuple[int, ...]:
        """The instances that were left alone."""
        return tuple(number for number, slot in self._slots.items() if slot.state == "left alone")

    @property
    def hopeless(self) -> bool:
        """True if every instance was left alone, so that no input will have an effect any more."""
        return bool(self._slots) and len(self.crash_loops) == len(self._slots)

    @property
    def ready(self) -> bool:
        """True if every instance that was not left alone says that it is ready."""
        ready = self._plan.ready
        return all(
            slot.state == "left alone" or self._processes.is_ready(number, ready)
            for number, slot in self._slots.items()
        )

    def start_all(self) -> None:
        """Start the instances of the plan, and look after them from now on."""
        for number in range(self._plan.instances):
            self._start(number)
        self._look()

    def ask_all_to_end(self) -> None:
        """Ask every instance to end in order; none is started again."""
        self._over = True
        for number in self._running():
            self._processes.thaw(number)
            self._processes.ask_to_end(number)

    @property
    def all_ended(self) -> bool:
        """True if no instance runs."""
        return not self._running()

    def kill_all(self) -> None:
        """End every instance, and whatever it has left behind; a second call does nothing."""
        self._over = True
        for number in self._slots:
            self._processes.kill(number)

    # --- what faults do -----------------------------------------------------------------------------------------------

    def kill_instance(self, pick: int) -> InstanceState:
        """End an instance at once. ``pick``, modulo the plan's number, says which; nothing where it does not run."""
        if (number := self._take(pick % self._plan.instances, "held")) is None:
            return {}
        self._processes.kill(number)
        return {"instance": number, "exit": self._processes.exit(number)}

    def stop_instance(self, pick: int) -> InstanceState:
        """Ask an instance to end in order; after its time it is killed. Which one: as :meth:`kill_instance`."""
        number = self._take(pick % self._plan.instances, "held")
        return {} if number is None else self._ask_to_end(number)

    def freeze_instance(self, pick: int) -> InstanceState:
        """Let an instance stand still. Which one: as :meth:`kill_instance`."""
        if (number := self._take(pick % self._plan.instances, "held")) is None:
            return {}
        self._processes.freeze(number)
        return {"instance": number, "frozen": True}

    def cut_instance(self, pick: int, broker: int) -> InstanceState:
        """Let nothing that an instance sends arrive at ``broker``, also after it was started again. Which one: as
        :meth:`kill_instance`.
        """
        number = pick % self._plan.instances
        done = number in self._slots and not self._over and self._processes.cut(number, broker)
        return {"instance": number, "broker": broker} if done else {}

    def mend_instance(self, pick: int) -> InstanceState:
        """Let an instance reach every broker again."""
        dropped = self._processes.mend(pick % self._plan.instances)
        return {} if dropped is None else {"instance": pick % self._plan.instances, "lost_packets": dropped}

    def restore_instance(self, pick: int) -> InstanceState:
        """Let an instance run as before: thawed, or started again; one that still ends in order is killed first."""
        number = pick % self._plan.instances
        slot = self._slots.get(number)
        if slot is None or slot.state != "held" or self._over:
            return {}
        slot.state = "runs"
        self._processes.thaw(number)
        if self._processes.exit(number) is None and not slot.asked:
            return {"instance": number}
        self._processes.kill(number)
        return {"instance": number, "pid": self._start(number)}

    def add_instance(self) -> InstanceState:
        """Start one more instance than before."""
        if self._over:
            return {}
        number = len(self._slots)
        return {"instance": number, "pid": self._start(number)}

    def take_added_away(self) -> InstanceState:
        """Ask the newest instance beyond those of the plan to end, for good; nothing without one that runs."""
        for number in range(len(self._slots) - 1, self._plan.instances - 1, -1):
            if self._take(number, "gone") is not None:
                return self._ask_to_end(number)
        return {}

    def restore_all(self) -> InstanceState:
        """Let the instances of the plan run, and no others; the last act's evidence."""
        last: InstanceState = {}
        for number in range(self._plan.instances):
            last = self.mend_instance(number) or last
            last = self.restore_instance(number) or last
        while taken := self.take_added_away():
            last = taken
        return last

    def _take(self, number: int, state: Literal["held", "gone"]) -> int | None:
        """Give an instance that runs this state; None where it does not run, or is not to."""
        slot = self._slots.get(number)
        if slot is None or slot.state != "runs" or self._over or self._processes.exit(number) is not None:
            return None
        slot.state = state
        return number

    def _ask_to_end(self, number: int) -> InstanceState:
        slot, incarnation = self._slots[number], self._slots[number].starts
        slot.asked = True
        self._processes.ask_to_end(number)

        def kill_late() -> None:
            if slot.starts == incarnation and not self._over:
                self._processes.kill(number)

        self._clock.call_at(self._clock.now_us() + self._plan.stop_timeout_ms * 1000, kill_late)
        return {"instance": number, "asked": True}

    def _start(self, number: int) -> int:
        pid = self._processes.start(number)
        slot = self._slots.setdefault(number, _Slot())
        slot.started_us, slot.asked = self._clock.now_us(), False
        slot.starts += 1
        return pid

    def _running(self) -> list[int]:
        return [number for number in self._slots if self._processes.exit(number) is None]

    def _look(self) -> None:
        """Look for instances that ended by themselves, until it is over."""
        if self._over:
            return
        for number, slot in self._slots.items():
            if slot.state == "runs" and (how := self._processes.exit(number)) is not None:
                self._ended(number, slot, how)
        self._clock.call_at(self._clock.now_us() + LOOK_MS * 1000, self._look)

    def _ended(self, number: int, slot: _Slot, how: str) -> None:
        now_us = self._clock.now_us()
        lived_ms = (now_us - slot.started_us) // 1000
        slot.at_once = slot.at_once + 1 if lived_ms <= AT_ONCE_MS else 0
        if len(self.exits) < EXITS_MAX:
            words = self._processes.words(number)
            self.exits.append(InstanceExit(instance=number, time_us=now_us, exit=how, lived_ms=lived_ms, words=words))
        self._processes.kill(number)  # what it has left behind would work on beside its successor
        if slot.at_once >= AT_ONCE_MAX:
            slot.state = "left alone"
            return
        slot.state = "waits"
        self._clock.call_at(now_us + self._plan.restart_pause_ms * 1000, lambda: self._start_again(number, slot))

    def _start_again(self, number: int, slot: _Slot) -> None:
        if not self._over and slot.state == "waits":
            slot.state = "runs"
            self._start(number)

"""Storms: random single faults that overlap, for schedules that tell no story which somebody thought of.

Families of :mod:`nemesis.scenarios` perform whole stories one after the other, each written for a known weakness. A
storm has no purpose: some kinds of fault, around whoever holds a drawn role, at drawn times, several at once. Its times
come from the settings under test, as those of stories do. All faults of a storm are about one log partition, and after
each storm everything is healed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from nemesis.cluster import LOG_PARTS
from nemesis.faults import (
    CorruptRecord,
    FailDirectory,
    Fault,
    HoldMessages,
    Kill,
    MoveLeader,
    Partition,
    Pause,
    PowerLoss,
    SlowLink,
    Stop,
    WipeDisk,
)
from nemesis.plan import FaultPlan
from nemesis.roles import PICKS, Role, RoleKind
from nemesis.scenarios import Draw, Timings
from nemesis.schedule import Schedule, Step, most_stopped
from nemesis.topology import Shape

#: What steps of a storm have in the place of a family and a story.
STORM: Final = "storm"
#: The number of faults in one storm.
FAULTS_MIN, FAULTS_MAX = 2, 6
#: Who may be hit: mostly somebody whose role matters at the moment.
_ROLES: Final = (
    RoleKind.LEADER, RoleKind.LEADER, RoleKind.FOLLOWER, RoleKind.FOLLOWER, RoleKind.ISR_MEMBER, RoleKind.OUT_OF_ISR,
    RoleKind.BROKER,
)  # fmt: skip
_SHAPES: Final = (
    Shape.ISOLATE, Shape.FROM_BROKERS, Shape.FROM_BROKERS, Shape.FROM_CONTROLLER, Shape.FROM_CONTROLLER, Shape.NO_FETCH,
    Shape.DEAF, Shape.MUTE, Shape.NO_HEARTBEAT, Shape.MUTE_TO_CLIENTS, Shape.FROM_CLIENTS, Shape.BRIDGE, Shape.RING,
)  # fmt: skip
_HELD: Final = ("AlterPartition", "Fetch", "UpdateMetadata")
#: A moment that is over before anybody notices.
_BRIEF_MS: Final = (50, 400)
_MOVE_MS: Final = 200

#: Makes a fault around a role; chance decides what else it needs.
Make = Callable[[Role, Draw], Fault]

#: Every kind of fault that a storm may have, by a word for portfolios.
KINDS: Final[Mapping[str, Make]] = {
    "kill": lambda role, _: Kill(role),
    "pause": lambda role, _: Pause(role),
    "stop": lambda role, _: Stop(role),
    "power": lambda role, _: PowerLoss(role),
    "wipe": lambda role, _: WipeDisk(role),
    "corrupt": lambda role, draw: CorruptRecord(role, draw("record", LOG_PARTS)),
    "directory": lambda role, _: FailDirectory(role),
    "cut": lambda role, draw: Partition(role, _SHAPES[draw("shape", len(_SHAPES))]),
    "slow": lambda role, draw: SlowLink(role, _SHAPES[draw("shape", len(_SHAPES))]),
    "hold": lambda role, draw: HoldMessages(role, _SHAPES[draw("shape", len(_SHAPES))], _HELD[draw("api", len(_HELD))]),
    "move": lambda role, _: MoveLeader(replace(role, kind=RoleKind.FOLLOWERS)),
}


class Storms:
    """Draws storms of some ``kinds``, keys of :data:`KINDS`, for clusters and settings of one kind."""

    def __init__(
        self, kinds: Sequence[str], plan: FaultPlan, timings: Timings, *, brokers: int, partitions: int
    ) -> None:
        self._kinds = kinds
        self._plan = plan
        self._timings = timings
        self._brokers = brokers
        self._partitions = partitions

    def schedule(self, duration_ms: int, draw: Draw) -> Schedule:
        """Storm after storm, as many as fit in ``duration_ms``."""
        steps: list[Step] = []
        at_ms, group = self._plan.healed_ms_min, 0
        while True:
            storm = self._storm(at_ms, group, _labelled(draw, f"{STORM} {group}"))
            end_ms = max((step.end_ms for step in storm), default=duration_ms)
            if end_ms > duration_ms:
                return Schedule(steps=tuple(steps), healed_ms=duration_ms)
            steps += storm
            at_ms, group = end_ms + self._plan.healed_ms_min, group + 1

    def fault(self, at_ms: int, group: int, partition: int, draw: Draw) -> Step:
        """One fault that begins at ``at_ms``."""
        kind = self._kinds[draw("kind", len(self._kinds))]
        role = Role(_ROLES[draw("role", len(_ROLES))], partition, draw("pick", PICKS))
        lasting_ms = _MOVE_MS if kind == "move" else self.lasting_ms(draw)
        fault = KINDS[kind](role, draw)
        return Step(begin_ms=at_ms, end_ms=at_ms + lasting_ms, group=group, family=STORM, story=STORM, fault=fault)

    def lasting_ms(self, draw: Draw) -> int:
        """Brief, or just longer than what the settings wait for, or as long as the plan wants."""
        least_ms, most_ms = (
            _BRIEF_MS,
            (self._timings.fence_ms, self._timings.fence_ms + 500),
            (self._timings.shrink_ms, self._timings.shrink_ms + 800),
            (self._plan.fault_ms_min, self._plan.fault_ms_max),
        )[draw("length", 4)]
        return least_ms + draw("lasting-ms", most_ms - least_ms + 1)

    def keeps_budget(self, steps: Sequence[Step]) -> bool:
        """No more brokers are dead or frozen at one time than the plan allows."""
        return most_stopped(steps, self._brokers) <= self._plan.dead_brokers_max

    def _storm(self, at_ms: int, group: int, draw: Draw) -> list[Step]:
        """A fault that would stop too many brokers is left out."""
        partition = draw("partition", self._partitions)
        window_ms = (400, self._timings.fence_ms, 2 * self._timings.shrink_ms)[draw("window", 3)]
        storm: list[Step] = []
        for number in range(FAULTS_MIN + draw("faults", FAULTS_MAX - FAULTS_MIN + 1)):
            mine = _labelled(draw, str(number))
            step = self.fault(at_ms + mine("begin-ms", window_ms), group, partition, mine)
            if self.keeps_budget([*storm, step]):
                storm.append(step)
        return sorted(storm, key=lambda step: step.begin_ms)


def _labelled(draw: Draw, prefix: str) -> Draw:
    return lambda label, bound: draw(f"{prefix}: {label}", bound)

"""Storms: random single faults that overlap, for schedules without a purpose.

Families of :mod:`nemesis.scenarios` perform scenarios one after the other, each written for a known weakness. A storm
has some kinds of fault, around the holder of a drawn role, at drawn times, several at once. Its times come from the
settings under test, as those of scenarios do. All faults of a storm are about one log partition, and after
each storm everything is healed. Each storm has a few kinds, a few shapes of cuts and a few victims only, drawn for it:
where everything may happen, the same two things hardly ever happen together twice (swarm testing, Groce and others
2012).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from nemesis.faults import FAULTS, DelayMessages, Fault, HoldMessages, Kill, MoveLeader
from nemesis.plan import FaultPlan
from nemesis.roles import PICKS, Role, RoleKind
from nemesis.scenarios import Draw, Timings
from nemesis.schedule import Schedule, ScheduledFault, most_stopped
from nemesis.topology import Shape

#: The name of every fault of a storm, where others have that of their scenario.
STORM: Final = "storm"
#: The number of faults in one storm, at least and at most, where a portfolio has none of its own.
FAULTS_A_STORM: Final = (3, 7)
#: The most kinds, shapes and victims of one storm.
SWARM: Final = 3
One = TypeVar("One")
#: The targets: mostly a broker whose role matters at the moment, and now and then the same broker all the time.
_ROLES: Final = (
    RoleKind.LEADER, RoleKind.LEADER, RoleKind.FOLLOWER, RoleKind.FOLLOWER, RoleKind.ISR_MEMBER, RoleKind.OUT_OF_ISR,
    RoleKind.BROKER, RoleKind.NAMED, RoleKind.NAMED, RoleKind.NAMED,
)  # fmt: skip
#: The shapes of cuts where a portfolio has none of its own.
CUTS: Final = (
    Shape.FROM_BROKERS, Shape.FROM_BROKERS, Shape.FROM_CONTROLLER, Shape.FROM_CONTROLLER, Shape.FROM_CONTROLLER,
    # Of three brokers, a single link.
    Shape.BRIDGE, Shape.BRIDGE, Shape.BRIDGE,
    Shape.ISOLATE, Shape.NO_FETCH, Shape.DEAF, Shape.MUTE, Shape.NO_HEARTBEAT, Shape.MUTE_TO_CLIENTS,
    Shape.FROM_CLIENTS, Shape.RING,
)  # fmt: skip
#: A moment that is over before it is noticed.
_BRIEF_MS: Final = (50, 400)
#: The most moves of leadership one after the other.
TURNS_MAX: Final = 4
#: The faults of one storm begin within a share of the longest fault of the plan: one of this number of parts.
_WINDOWS: Final = (1, 2, 6)
#: An event for which the settings wait longer than this (a lag time as Kafka's own, 30 s) is never waited for.
WAITED_FOR_MS_MAX: Final = 4_500


class StormFault(NamedTuple):
    """A fault that storms may have: its family, which plans know, and the function that makes one.

    It is made around a role, of a shape where it has one; chance decides what else it needs.
    """

    family: str
    drawn: Callable[[Role, Shape, Draw], Fault]


class Late(NamedTuple):
    """Messages of one ``api`` that come late, around ``role`` and on the links that ``shape`` would cut.

    Of role and shape None is what is drawn for the storm.
    """

    api: str
    role: RoleKind | None = None
    shape: Shape | None = None


#: Messages that come late, by the name after `late-`, where all of them do, or `overtaken-`, where the first does.
LATE: Final[Mapping[str, Late]] = {
    "fetch": Late("Fetch"),
    "produce": Late("Produce", RoleKind.LEADER, Shape.FROM_CLIENTS),
    "proposal": Late("AlterPartition", RoleKind.LEADER, Shape.FROM_CONTROLLER),
    "commit": Late("OffsetCommit", RoleKind.COORDINATOR, Shape.FROM_CLIENTS),
    "offsets": Late("TxnOffsetCommit", RoleKind.COORDINATOR, Shape.FROM_CLIENTS),
    "end": Late("EndTxn", RoleKind.TRANSACTION_COORDINATOR, Shape.FROM_CLIENTS),
    "add": Late("AddPartitionsToTxn", RoleKind.TRANSACTION_COORDINATOR, Shape.FROM_CLIENTS),
    "marker": Late("WriteTxnMarkers", RoleKind.TRANSACTION_COORDINATOR, Shape.FROM_BROKERS),
}


def _late(kind: type[HoldMessages | DelayMessages], late: Late) -> StormFault:
    def drawn(role: Role, shape: Shape, _draw: Draw) -> Fault:
        around = role if late.role is None else Role(late.role, role.partition)
        return kind(around, late.shape or shape, late.api)

    return StormFault(kind.family, drawn)


#: Every fault by its verb, what comes late, and the death of the controller.
KINDS: Final[Mapping[str, StormFault]] = {
    **{fault.verb: StormFault(fault.family, fault.drawn) for fault in FAULTS},
    **{f"late-{name}": _late(HoldMessages, late) for name, late in LATE.items()},
    **{f"overtaken-{name}": _late(DelayMessages, late) for name, late in LATE.items()},
    "controller": StormFault("controller", lambda role, _shape, _draw: Kill(Role(RoleKind.CONTROLLER, role.partition))),
}


class Swarm(NamedTuple):
    """The kinds, shapes and victims of one storm."""

    kinds: Sequence[str]
    shapes: Sequence[Shape]
    victims: Sequence[Role]


class Storms:
    """Draws storms of some ``kinds`` and ``shapes``, for clusters and settings of one kind.

    ``kinds`` are keys of :data:`KINDS`; ``faults`` are how many each storm has, at least and
    at most; a move of leadership may be several moves.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        plan: FaultPlan,
        timings: Timings,
        *,
        brokers: int,
        partitions: int,
        shapes: Sequence[Shape] = CUTS,
        faults: tuple[int, int] = FAULTS_A_STORM,
    ) -> None:
        self._kinds = kinds
        self._shapes = shapes
        self._faults_min, self._faults_max = faults
        self._plan = plan
        self._timings = timings
        self._brokers = brokers
        self._partitions = partitions

    def schedule(self, duration_ms: int, draw: Draw) -> Schedule:
        """Storm after storm, as many as fit in ``duration_ms``."""
        steps: list[ScheduledFault] = []
        at_ms, group = self._plan.healed_ms_min, 0
        while True:
            storm = self._storm(at_ms, group, _labelled(draw, f"{STORM} {group}"))
            end_ms = max((step.end_ms for step in storm), default=duration_ms)
            if end_ms > duration_ms:
                return Schedule(steps=tuple(steps), healed_ms=duration_ms)
            steps += storm
            at_ms, group = end_ms + self._plan.healed_ms_min, group + 1

    def _faults(self, at_ms: int, group: int, draw: Draw, swarm: Swarm) -> list[ScheduledFault]:
        """One fault that begins at ``at_ms``; moves of leadership mostly come one after the other, as operators do."""
        kinds, shapes, victims = swarm
        kind = kinds[draw("kind", len(kinds))]
        times = 1 + draw("turns", TURNS_MAX) if kind == MoveLeader.verb else 1
        gap_ms = 50 + draw("gap-ms", 400)
        steps = []
        for turn in range(times):
            role = victims[draw("role", len(victims))]
            begin_ms = at_ms + turn * gap_ms
            end_ms = begin_ms + (gap_ms if kind == MoveLeader.verb else self._lasting_ms(draw))
            family, drawn = KINDS[kind]
            fault = drawn(role, shapes[draw("shape", len(shapes))], draw)
            steps.append(
                ScheduledFault(
                    begin_ms=begin_ms, end_ms=end_ms, group=group, family=family, scenario=STORM, fault=fault
                )
            )
        return steps

    def _lasting_ms(self, draw: Draw) -> int:
        """Brief, or just longer than what the settings wait for, or as long as the plan wants."""
        waits_ms = [ms for ms in (self._timings.fence_ms, self._timings.shrink_ms) if ms <= WAITED_FOR_MS_MAX]
        spans = [_BRIEF_MS, (self._plan.fault_ms_min, self._plan.fault_ms_max), *((ms, ms + 600) for ms in waits_ms)]
        least_ms, most_ms = spans[draw("length", len(spans))]
        return least_ms + draw("lasting-ms", most_ms - least_ms + 1)

    def _keeps_budget(self, steps: Sequence[ScheduledFault]) -> bool:
        """No more brokers are dead or frozen at one time than the plan allows."""
        return most_stopped(steps, self._brokers) <= self._plan.dead_brokers_max

    def _storm(self, at_ms: int, group: int, draw: Draw) -> list[ScheduledFault]:
        """A fault that would stop too many brokers is left out."""
        partition = draw("partition", self._partitions)
        victims = [self._victim(partition, _labelled(draw, f"victim {number}")) for number in range(SWARM)]
        swarm = Swarm(_some(self._kinds, "kinds", draw), _some(self._shapes, "shapes", draw), victims)
        window_ms = self._plan.fault_ms_max // _WINDOWS[draw("window", len(_WINDOWS))]
        storm: list[ScheduledFault] = []
        for number in range(self._faults_min + draw("faults", self._faults_max - self._faults_min + 1)):
            mine = _labelled(draw, str(number))
            steps = self._faults(at_ms + mine("begin-ms", window_ms), group, mine, swarm)
            if self._keeps_budget([*storm, *steps]):
                storm += steps
        return sorted(storm, key=lambda step: step.begin_ms)

    def _victim(self, partition: int, draw: Draw) -> Role:
        kind = _ROLES[draw("role", len(_ROLES))]
        return Role(kind, partition, draw("pick", self._brokers if kind is RoleKind.NAMED else PICKS))


def _some(choices: Sequence[One], label: str, draw: Draw) -> Sequence[One]:
    return [choices[draw(label, len(choices))] for _ in range(SWARM)]


def _labelled(draw: Draw, prefix: str) -> Draw:
    return lambda label, bound: draw(f"{prefix}: {label}", bound)

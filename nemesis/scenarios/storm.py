"""Faults of drawn kinds that overlap: what no scenario was written for.

Hunts in virtual time have storms of every kind of fault (:mod:`harness.lab.search.storms`). Those of this family have
the kinds that each world with processes and links can do, so that real clusters see overlapping faults too.
"""

from __future__ import annotations

from typing import Final

from nemesis.faults import Kill, MoveLeader, Partition, Pause
from nemesis.roles import PICKS, Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape

#: Brokers that stop, each after the one before it is back: no plan allows fewer than one at a time.
_STOPS: Final = (Kill, Pause)
_STOPPED: Final = (RoleKind.LEADER, RoleKind.FOLLOWER, RoleKind.ISR_MEMBER)
_CUT: Final = (RoleKind.LEADER, RoleKind.LEADER, RoleKind.FOLLOWER, RoleKind.ISR_MEMBER)
_SHAPES: Final = (
    Shape.FROM_BROKERS, Shape.FROM_CONTROLLER, Shape.FROM_CLIENTS, Shape.ISOLATE, Shape.NO_FETCH, Shape.NO_HEARTBEAT,
    Shape.DEAF, Shape.MUTE, Shape.MUTE_TO_CLIENTS, Shape.BRIDGE,
)  # fmt: skip
#: Cuts of one storm, at least and at most.
_CUTS: Final = (2, 4)


def _storm(scene: Scene) -> list[Part]:
    """A kill and a pause, one after the other; cuts over both of them at drawn moments; and a move of leadership."""
    partition = scene.partition()

    def role(kinds: tuple[RoleKind, ...], label: str) -> Role:
        return Role(kinds[scene.draw(f"{label}-role", len(kinds))], partition, scene.draw(f"{label}-pick", PICKS))

    storm: list[Part] = []
    at_ms, first = 0, scene.draw("first-stop", len(_STOPS))
    for stop in (_STOPS[first], _STOPS[1 - first]):
        begin_ms = at_ms + scene.between_ms(100, 1_000)
        at_ms = begin_ms + scene.lasting_ms()
        storm.append(Part(begin_ms, at_ms, stop(role(_STOPPED, "stop"))))
    for _ in range(_CUTS[0] + scene.draw("cuts", _CUTS[1] - _CUTS[0] + 1)):
        begin_ms = scene.draw("cut-begins-ms", at_ms)
        shape = _SHAPES[scene.draw("shape", len(_SHAPES))]
        storm.append(Part(begin_ms, begin_ms + scene.lasting_ms(), Partition(role(_CUT, "cut"), shape)))
    moves_at_ms = scene.draw("moves-ms", at_ms)
    follower = Role(RoleKind.FOLLOWERS, partition, scene.draw("move-pick", PICKS))
    return [*storm, Part(moves_at_ms, moves_at_ms + scene.lasting_ms(), MoveLeader(follower))]


STORM: Final = Family(
    "storm",
    (Scenario("storm", _storm),),
    about="Faults of drawn kinds overlap: a kill, a pause, several cuts, a move of leadership.",
)

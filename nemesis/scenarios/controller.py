"""The controller: it elects leaders, keeps the in-sync replicas, and stores no client's record.

While no controller is active nothing moves: leaders go on leading, and a leader that dies has no successor until there
is a controller again. Nothing that was acknowledged is lost by that. The faults are Kill and Pause; the role differs.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Pause
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.scenarios.shared import SUCCESSOR_MS, Strike

ACTIVE: Final = Role(RoleKind.CONTROLLER)
#: After which silence the others of a quorum have surely elected another: Kafka's fetch and election time-outs there.
QUORUM_MS: Final = 4_000


def _gone(scene: Scene, strike: Strike) -> list[Part]:
    """The active controller stops, long enough for another one to be elected where there is one."""
    return [Part(0, scene.lasting_ms(max(QUORUM_MS, scene.timings.fence_ms + SUCCESSOR_MS)), strike(ACTIVE))]


def _with_the_leader(scene: Scene) -> list[Part]:
    """The controller dies, and then a leader before it is back: a single controller leaves no node to elect another."""
    begins_ms = scene.between_ms(100, 400)
    leader_ends_ms = begins_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    # The controller is back first, and has time to elect before the leader returns.
    controller_ends_ms = leader_ends_ms - scene.timings.fence_ms
    return [
        Part(0, max(controller_ends_ms, begins_ms + SUCCESSOR_MS), Kill(ACTIVE)),
        Part(begins_ms, leader_ends_ms, Kill(Role(RoleKind.LEADER, scene.partition()))),
    ]


def _after_the_leader(scene: Scene) -> list[Part]:
    """A leader dies, and the controller while its successor is being elected or has just been."""
    # From before the session of the dead leader ends (no election yet) to after the election is surely done.
    between_ms = scene.between_ms(scene.timings.session_ms // 2, scene.timings.fence_ms)
    ends_ms = between_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [
        Part(0, ends_ms, Kill(Role(RoleKind.LEADER, scene.partition()))),
        Part(between_ms, ends_ms, Kill(ACTIVE)),
    ]


CONTROLLERS: Final = Family(
    "controller",
    (
        Scenario("gone", partial(_gone, strike=Kill)),
        Scenario("frozen", partial(_gone, strike=Pause)),
        Scenario("with-the-leader", _with_the_leader),
        Scenario("after-the-leader", _after_the_leader),
    ),
    about="The active controller is killed or frozen.",
)

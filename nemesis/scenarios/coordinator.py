"""The coordinators of a consumer group and of transactions, each the leader of a partition of an internal topic.

A group's coordinator deals log partitions out, and answers commits; a transaction's decides its end, and has the end
written to every log partition. While it is away no member can commit, and no transaction end. Its successor reads all
of the partition first. What was acknowledged is on every in-sync replica, so it survives that.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Pause
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.scenarios.shared import SUCCESSOR_MS, Strike


def _gone(scene: Scene, kind: RoleKind, strike: Strike) -> list[Part]:
    """The coordinator stops, long enough for another broker to take over."""
    return [Part(0, scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS), strike(_serving(scene, kind)))]


def _bounced(scene: Scene, kind: RoleKind) -> list[Part]:
    """The coordinator stops, and its successor right after it is back: what it serves moves twice."""
    who = _serving(scene, kind)
    ends_ms = scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    again_ms = ends_ms + scene.between_ms(100, 500)
    second_ms = scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [Part(0, ends_ms, Kill(who)), Part(again_ms, again_ms + second_ms, Kill(who))]


def _serving(scene: Scene, kind: RoleKind) -> Role:
    """The coordinator, of one transactional id where there are several."""
    return Role(kind) if kind is RoleKind.COORDINATOR else scene.role(kind)


def _without(kind: RoleKind) -> tuple[Scenario, ...]:
    return (
        Scenario("gone", partial(_gone, kind=kind, strike=Kill)),
        Scenario("frozen", partial(_gone, kind=kind, strike=Pause)),
        Scenario("bounced", partial(_bounced, kind=kind)),
    )


COORDINATORS: Final = Family(
    "coordinator",
    _without(RoleKind.COORDINATOR),
    about="The coordinator of the workload's consumer group is killed or frozen.",
)
TRANSACTION_COORDINATORS: Final = Family(
    "transaction-coordinator",
    _without(RoleKind.TRANSACTION_COORDINATOR),
    about="The coordinator of one of the workload's transactional ids is killed or frozen.",
)

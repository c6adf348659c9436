"""The coordinator of a consumer group: the leader of the partition of `__consumer_offsets` that has its commits.

It deals log partitions out, and answers commits. While it is away no member can commit. Its successor reads all of its
log first. An acknowledged commit is on every in-sync replica, so it survives that.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Pause
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.scenarios.shared import SUCCESSOR_MS, Strike

SERVING: Final = Role(RoleKind.COORDINATOR)


def _gone(scene: Scene, strike: Strike) -> list[Part]:
    """The coordinator stops, long enough for another broker to serve the group."""
    return [Part(0, scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS), strike(SERVING))]


def _bounced(scene: Scene) -> list[Part]:
    """The coordinator stops, and its successor right after it is back: the group moves twice."""
    ends_ms = scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    again_ms = ends_ms + scene.between_ms(100, 500)
    second_ms = scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [Part(0, ends_ms, Kill(SERVING)), Part(again_ms, again_ms + second_ms, Kill(SERVING))]


COORDINATORS: Final = Family(
    "coordinator",
    (
        Scenario("gone", partial(_gone, strike=Kill)),
        Scenario("frozen", partial(_gone, strike=Pause)),
        Scenario("bounced", _bounced),
    ),
    about="The coordinator of the workload's consumer group is killed or frozen.",
)

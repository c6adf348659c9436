"""Slow links: followers that lag without a connection breaking."""

from __future__ import annotations

from typing import Final

from nemesis.faults import Kill, SlowLink
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import OVERLAP_MS, SUCCESSOR_MS, hit_one
from nemesis.topology import Shape


def _leader_ahead(scene: Scene) -> list[Part]:
    """As S01, over slow links: followers lag behind the leader, which dies with what has not arrived."""
    leader, dies_at_ms = Role(RoleKind.LEADER, scene.partition()), scene.between_ms(1_000, 2_000)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    slow = SlowLink(leader, Shape.FROM_BROKERS)
    return [Part(0, dies_at_ms + OVERLAP_MS, slow), Part(dies_at_ms, end_ms, Kill(leader))]


def _around(name: str, shape: Shape, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return hit_one(scene, lambda role: SlowLink(role, shape), kind, scene.timings.shrink_ms)

    return Story(name, parts)


#: The first makes acks=1 lose whenever it fits.
SLOW_LINK: Final = Family(
    "slow-link",
    (
        Story("leader-ahead", _leader_ahead),
        _around("replication", Shape.FROM_BROKERS, RoleKind.LEADER),
        _around("one-follower", Shape.FROM_BROKERS, RoleKind.FOLLOWER),
        _around("leader-and-controller", Shape.FROM_CONTROLLER, RoleKind.LEADER),
        _around("leader-and-clients", Shape.FROM_CLIENTS, RoleKind.LEADER),
    ),
)

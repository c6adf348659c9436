"""Disks without room, and disks without speed."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import FullDisk, Kill, SlowDisk
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import hit_all, hit_one, last_in_sync, leader_ahead, two_overlapping


def _follower_full_past_lag(scene: Scene) -> list[Part]:
    """A follower cannot append what it fetches, until it is out of the ISR."""
    return hit_one(scene, FullDisk, RoleKind.FOLLOWER, scene.timings.shrink_ms)


def _leader_full_past_session(scene: Scene) -> list[Part]:
    """The leader has no room for as long as it takes to elect another."""
    return hit_all(scene, FullDisk, RoleKind.LEADER, scene.timings.fence_ms)


def _slow_leader_dies(scene: Scene) -> list[Part]:
    """The leader answers late, and is killed with writes under way."""
    leader = Role(RoleKind.LEADER, scene.partition())
    dies_at_ms = scene.lasting_ms()
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, dies_at_ms, SlowDisk(leader)), Part(dies_at_ms, end_ms, Kill(leader))]


def _slow_followers_leader_dies(scene: Scene) -> list[Part]:
    """Followers fall behind and out of the ISR while the leader goes on, then it dies."""
    partition = scene.partition()
    dies_at_ms = scene.timings.shrink_ms + scene.between_ms(200, 600)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [
        Part(0, dies_at_ms, SlowDisk(Role(RoleKind.FOLLOWERS, partition))),
        Part(dies_at_ms, end_ms, Kill(Role(RoleKind.LEADER, partition))),
    ]


def _slow(name: str, kind: RoleKind) -> Story:
    return Story(name, lambda scene: hit_one(scene, SlowDisk, kind, scene.timings.shrink_ms))


#: The first makes acks=1 lose where a broker ends over a full disk.
FULL_DISK: Final = Family(
    "full-disk",
    (
        Story("leader-ahead", partial(leader_ahead, strike=FullDisk)),
        Story("last-in-sync", partial(last_in_sync, strike=FullDisk)),
        Story("leader-past-session", _leader_full_past_session),
        Story("follower-past-lag", _follower_full_past_lag),
        Story("two-overlapping", partial(two_overlapping, strike=FullDisk)),
        Story("random-broker", partial(hit_one, strike=FullDisk, kind=RoleKind.BROKER)),
    ),
)

#: The first makes acks=1 lose where followers flush every record.
SLOW_DISK: Final = Family(
    "slow-disk",
    (
        Story("slow-followers-leader-dies", _slow_followers_leader_dies),
        Story("slow-leader-dies", _slow_leader_dies),
        _slow("leader", RoleKind.LEADER),
        _slow("follower", RoleKind.FOLLOWER),
    ),
)

"""Frozen brokers."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Pause
from nemesis.roles import RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import hit_all, hit_one, last_in_sync, leader_ahead, two_overlapping


def _leader_past_session(scene: Scene) -> list[Part]:
    """The leader wakes as a zombie, with the requests that its sockets kept for it."""
    return hit_all(scene, Pause, RoleKind.LEADER, scene.timings.fence_ms)


def _follower_past_lag(scene: Scene) -> list[Part]:
    """A follower sleeps until it is out of the ISR."""
    return hit_one(scene, Pause, RoleKind.FOLLOWER, scene.timings.shrink_ms)


def _all_followers_past_lag(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is then asked to hold what it promised alone."""
    return hit_all(scene, Pause, RoleKind.FOLLOWERS, scene.timings.shrink_ms + 300)


def _blink(scene: Scene) -> list[Part]:
    """Shorter than the session: nobody should lose a role."""
    return [Part(0, scene.timings.session_ms // 2, Pause(scene.role(RoleKind.BROKER)))]


#: The first makes acks=1 lose whenever it fits.
PAUSE: Final = Family(
    "pause",
    (
        Story("leader-ahead", partial(leader_ahead, strike=Pause)),
        Story("last-in-sync", partial(last_in_sync, strike=Pause)),
        Story("leader-past-session", _leader_past_session),
        Story("follower-past-lag", _follower_past_lag),
        Story("all-followers-past-lag", _all_followers_past_lag),
        Story("blink", _blink),
        Story("two-overlapping", partial(two_overlapping, strike=Pause)),
    ),
)

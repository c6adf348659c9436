"""Brokers that die, and some that come back at once; that freeze; that lose power; that an operator stops.

Power: what it takes, replication does not save, only flushing does. Stops are clean: one broker, or all in turn, ended
and started again (a rolling restart).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Pause, PowerLoss, Stop
from nemesis.roles import RoleKind
from nemesis.scenarios import shapes
from nemesis.scenarios.scene import Family, Part, Scene, Story


def _bounce_in_turn(scene: Scene) -> list[Part]:
    """S31: every broker dies and returns at once, in turn, without waiting for the ISR."""
    first = scene.draw("first", scene.brokers)
    return shapes.in_turn(
        scene, Kill, first=first, down_ms=scene.between_ms(100, 300), gap_ms=scene.between_ms(200, 500)
    )


def _bounce(scene: Scene, kind: RoleKind) -> list[Part]:
    """One broker dies and returns before its session ends."""
    who = scene.role(kind, scene.partition())
    return [Part(0, scene.between_ms(100, 300), Kill(who))]


BOUNCE_IN_TURN: Final = Story("bounce-in-turn", _bounce_in_turn, number="S31")

#: The first makes acks=1 lose whenever it fits.
KILL: Final = Family(
    "kill",
    (
        Story("leader-ahead", partial(shapes.leader_ahead, strike=Kill), number="S01"),
        Story("last-in-sync", partial(shapes.last_in_sync, strike=Kill), number="S06"),
        Story("two-overlapping", partial(shapes.two_overlapping, strike=Kill)),
        BOUNCE_IN_TURN,
        Story("leader", partial(shapes.hit_one, strike=Kill, kind=RoleKind.LEADER)),
        Story("follower", partial(shapes.hit_one, strike=Kill, kind=RoleKind.FOLLOWER)),
        Story("random-broker", partial(shapes.hit_one, strike=Kill, kind=RoleKind.BROKER)),
    ),
    scripted=(Story("everybody", partial(shapes.everybody, strike=Kill, apart_ms=shapes.APART_MS), number="S12"),),
)

RESTART: Final = Family(
    "restart",
    (
        BOUNCE_IN_TURN,
        Story("bounce-leader", partial(_bounce, kind=RoleKind.LEADER)),
        Story("bounce-isr-member", partial(_bounce, kind=RoleKind.ISR_MEMBER)),
    ),
)


def _leader_past_session(scene: Scene) -> list[Part]:
    """The leader wakes as a zombie, with the requests that its sockets kept for it."""
    return shapes.hit_all(scene, Pause, RoleKind.LEADER, scene.timings.fence_ms)


def _follower_past_lag(scene: Scene) -> list[Part]:
    """A follower sleeps until it is out of the ISR."""
    return shapes.hit_one(scene, Pause, RoleKind.FOLLOWER, scene.timings.shrink_ms)


def _all_followers_past_lag(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is then asked to hold what it promised alone."""
    return shapes.hit_all(scene, Pause, RoleKind.FOLLOWERS, scene.timings.shrink_ms + 300)


def _blink(scene: Scene) -> list[Part]:
    """Shorter than the session: nobody should lose a role."""
    return [Part(0, scene.timings.session_ms // 2, Pause(scene.role(RoleKind.BROKER)))]


#: The first makes acks=1 lose whenever it fits.
PAUSE: Final = Family(
    "pause",
    (
        Story("leader-ahead", partial(shapes.leader_ahead, strike=Pause)),
        Story("last-in-sync", partial(shapes.last_in_sync, strike=Pause)),
        Story("leader-past-session", _leader_past_session),
        Story("follower-past-lag", _follower_past_lag),
        Story("all-followers-past-lag", _all_followers_past_lag),
        Story("blink", _blink),
        Story("two-overlapping", partial(shapes.two_overlapping, strike=Pause)),
    ),
)


#: The first makes acks=all lose without flush.messages=1 whenever it fits: the last in-sync replica forgets.
POWER: Final = Family(
    "power",
    (
        Story("last-in-sync", partial(shapes.last_in_sync, strike=PowerLoss), number="S09"),
        Story("leader-ahead", partial(shapes.leader_ahead, strike=PowerLoss)),
        Story("everybody", partial(shapes.everybody, strike=PowerLoss)),
        Story("two-overlapping", partial(shapes.two_overlapping, strike=PowerLoss)),
        # It fetches again what it lost.
        Story("follower", partial(shapes.hit_one, strike=PowerLoss, kind=RoleKind.FOLLOWER), number="S10"),
    ),
    scripted=(
        Story(
            "everybody-one-by-one", partial(shapes.everybody, strike=PowerLoss, apart_ms=shapes.APART_MS), number="S11"
        ),
    ),
)


def _leader_ahead(scene: Scene) -> list[Part]:
    """S03 by a clean stop: followers lag, still in the ISR, when the leader hands over to one of them (KAFKA-20554)."""
    return shapes.leader_stops(scene, Stop, scene.behind_ms(), overlap_ms=scene.timings.fence_ms)


def _last_in_sync(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is stopped and comes back: everything it acknowledged is on its disk."""
    alone_at_ms = scene.timings.shrink_ms + shapes.alone_ms(scene)
    return shapes.leader_stops(scene, Stop, alone_at_ms, overlap_ms=scene.timings.fence_ms)


def _one_after_the_other(scene: Scene) -> list[Part]:
    """A rolling restart as it should be: every broker has time to return to the ISR before the next one stops."""
    return _in_turn(scene, down_ms=scene.between_ms(800, 1_500), gap_ms=2 * scene.timings.lag_ms + 2_000)


def _in_haste(scene: Scene) -> list[Part]:
    """A rolling restart that waits for nobody: the next broker stops while the last one starts (S31, cleanly)."""
    return _in_turn(scene, down_ms=scene.between_ms(800, 1_500), gap_ms=scene.between_ms(100, 500))


def _in_turn(scene: Scene, down_ms: int, gap_ms: int) -> list[Part]:
    first = scene.draw("first", scene.brokers)
    return shapes.in_turn(scene, Stop, first=first, down_ms=down_ms, gap_ms=gap_ms)


#: The first makes acks=1 lose whenever it fits.
ROLLING: Final = Family(
    "rolling",
    (
        Story("leader-ahead", _leader_ahead, number="S03"),
        Story("last-in-sync", _last_in_sync),
        Story("one-after-the-other", _one_after_the_other),
        Story("in-haste", _in_haste),
        Story("leader", partial(shapes.hit_all, strike=Stop, kind=RoleKind.LEADER)),
    ),
)

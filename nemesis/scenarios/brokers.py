"""Brokers that die, and some that come back at once; that freeze; that lose power; that an operator stops.

Power: what it takes, replication does not save, only flushing does. Stops are clean: one broker, or all in turn, ended
and started again (a rolling restart).
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill, Partition, Pause, PowerLoss, Stop
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape


def _bounce_in_turn(scene: Scene) -> list[Part]:
    """S31: every broker dies and returns at once, in turn, without waiting for the ISR."""
    first = scene.draw("first", scene.brokers)
    return shared.in_turn(
        scene, Kill, first=first, down_ms=scene.between_ms(100, 300), gap_ms=scene.between_ms(200, 500)
    )


def _bounce(scene: Scene, kind: RoleKind) -> list[Part]:
    """One broker dies and returns before its session ends."""
    who = scene.role(kind, scene.partition())
    # Shorter than a session: no broker is fenced, and only the new broker epoch shows it (rule 20).
    return [Part(0, scene.between_ms(100, 300), Kill(who))]


BOUNCE_IN_TURN: Final = Scenario("bounce-in-turn", _bounce_in_turn, number="S31")

#: The first makes acks=1 lose whenever it fits.
KILL: Final = Family(
    "kill",
    (
        shared.leader_ahead(Kill, "S01"),
        shared.last_in_sync(Kill, "S06"),
        shared.two_overlapping(Kill),
        BOUNCE_IN_TURN,
        shared.hit_one("leader", Kill, RoleKind.LEADER),
        shared.hit_one("follower", Kill, RoleKind.FOLLOWER),
        shared.hit_one("random-broker", Kill, RoleKind.BROKER),
    ),
    on_request=(shared.everybody("everybody", Kill, "S12", apart_ms=shared.APART_MS),),
    about="Brokers are killed (SIGKILL), and return after seconds.",
)


def _two_while_third_lags(scene: Scene, strike: shared.Strike) -> list[Part]:
    """One follower lags a little, still in the ISR, when the leader and the other follower stop: it leads alone.

    What it lacks, it must have held back.
    """
    partition, pick = scene.partition(), scene.draw("pick", 2)
    stops_at_ms = scene.behind_ms()
    end_ms = stops_at_ms + scene.lasting_ms(scene.timings.fence_ms + shared.SUCCESSOR_MS)
    return [
        Part(
            0,
            stops_at_ms + shared.OVERLAP_MS,
            Partition(Role(RoleKind.FOLLOWER, partition, pick), Shape.FROM_BROKERS),
        ),
        Part(stops_at_ms, end_ms, strike(Role(RoleKind.LEADER, partition))),
        Part(stops_at_ms, end_ms, strike(Role(RoleKind.FOLLOWER, partition, 1 - pick))),
    ]


#: Most brokers stop, and the one that is left leads: with acks=1 what it lacks is lost, with acks=all nothing.
OUTAGE: Final = Family(
    "outage",
    tuple(
        Scenario(
            f"two-{word}-while-third-lags",
            partial(_two_while_third_lags, strike=strike),
            preparation=shared.LAGGING,
        )
        for word, strike in (("killed", Kill), ("frozen", Pause))
    ),
    about=(
        "One follower lags, still in sync, when the leader and the other follower die or freeze. What it lacks must "
        "not have been acknowledged with `acks=all`."
    ),
)

RESTART: Final = Family(
    "restart",
    (
        BOUNCE_IN_TURN,
        Scenario("bounce-leader", partial(_bounce, kind=RoleKind.LEADER)),
        Scenario("bounce-isr-member", partial(_bounce, kind=RoleKind.ISR_MEMBER)),
    ),
    about="Brokers are killed and return at once, before their session ends.",
)


def _blink(scene: Scene) -> list[Part]:
    """A pause shorter than the session: no broker should lose a role."""
    return [Part(0, scene.timings.session_ms // 2, Pause(scene.role(RoleKind.BROKER)))]


#: The first makes acks=1 lose whenever it fits.
PAUSE: Final = Family(
    "pause",
    (
        *shared.silent(Pause),
        # The ISR shrinks to the leader, which is then asked to hold what it promised alone.
        shared.hit_all(
            "all-followers-past-lag", Pause, RoleKind.FOLLOWERS, at_least_ms=lambda timings: timings.shrink_ms + 300
        ),
        Scenario("blink", _blink),
        shared.two_overlapping(Pause),
    ),
    about="Brokers freeze (SIGSTOP) and go on (SIGCONT).",
)

#: The first makes acks=all lose without flush.messages=1 whenever it fits: the last in-sync replica forgets.
POWER: Final = Family(
    "power",
    (
        shared.last_in_sync(PowerLoss, "S09"),
        shared.leader_ahead(PowerLoss),
        shared.everybody("everybody", PowerLoss),
        shared.two_overlapping(PowerLoss),
        # It fetches again what it lost.
        shared.hit_one("follower", PowerLoss, RoleKind.FOLLOWER, "S10"),
    ),
    on_request=(shared.everybody("everybody-one-by-one", PowerLoss, "S11", apart_ms=shared.APART_MS),),
    about="Brokers are killed, and what was not forced to their disks is gone.",
)


def _leader_ahead(scene: Scene) -> list[Part]:
    """S03 by a clean stop: followers lag, still in the ISR, when the leader hands over to one of them (KAFKA-20554)."""
    return shared.leader_stops(scene, Stop, scene.behind_ms(), overlap_ms=scene.timings.fence_ms)


def _last_in_sync(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is stopped and comes back: everything it acknowledged is on its disk."""
    return shared.leader_stops(scene, Stop, shared.alone_at_ms(scene), overlap_ms=scene.timings.fence_ms)


def _one_after_the_other(scene: Scene) -> list[Part]:
    """A rolling restart as it should be: every broker has time to return to the ISR before the next one stops."""
    return _in_turn(scene, scene.between_ms(800, 1_500), gap_ms=2 * scene.timings.lag_ms + 2_000)


def _in_haste(scene: Scene) -> list[Part]:
    """A rolling restart that does not wait: the next broker stops while the last one starts (S31, cleanly)."""
    return _in_turn(scene, scene.between_ms(800, 1_500), gap_ms=scene.between_ms(100, 500))


def _in_turn(scene: Scene, down_ms: int, gap_ms: int) -> list[Part]:
    return shared.in_turn(scene, Stop, first=scene.draw("first", scene.brokers), down_ms=down_ms, gap_ms=gap_ms)


#: The first makes acks=1 lose whenever it fits.
ROLLING: Final = Family(
    "rolling",
    (
        Scenario("leader-ahead", _leader_ahead, "S03", shared.LAGGING),
        Scenario("last-in-sync", _last_in_sync, preparation=shared.OUT_OF_SYNC),
        Scenario("one-after-the-other", _one_after_the_other),
        Scenario("in-haste", _in_haste),
        shared.hit_all("leader", Stop, RoleKind.LEADER),
    ),
    about="Brokers are stopped in order (SIGTERM) and started again: one of them, or all in turn.",
)

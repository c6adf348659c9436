"""Death of brokers, and brokers that die and come back at once: one fault, two families."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Kill
from nemesis.roles import RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import (
    APART_MS,
    everybody,
    hit_one,
    in_turn,
    last_in_sync,
    leader_ahead,
    two_overlapping,
)


def _bounce_in_turn(scene: Scene) -> list[Part]:
    """S31: every broker dies and returns at once, in turn, without waiting for the ISR."""
    first = scene.draw("first", scene.brokers)
    return in_turn(scene, Kill, first=first, down_ms=scene.between_ms(100, 300), gap_ms=scene.between_ms(200, 500))


def _bounce(scene: Scene, kind: RoleKind) -> list[Part]:
    """One broker dies and returns before its session ends."""
    who = scene.role(kind, scene.partition())
    return [Part(0, scene.between_ms(100, 300), Kill(who))]


BOUNCE_IN_TURN: Final = Story("bounce-in-turn", _bounce_in_turn, number="S31")

#: The first makes acks=1 lose whenever it fits.
KILL: Final = Family(
    "kill",
    (
        Story("leader-ahead", partial(leader_ahead, strike=Kill), number="S01"),
        Story("last-in-sync", partial(last_in_sync, strike=Kill), number="S06"),
        Story("two-overlapping", partial(two_overlapping, strike=Kill)),
        BOUNCE_IN_TURN,
        Story("leader", partial(hit_one, strike=Kill, kind=RoleKind.LEADER)),
        Story("follower", partial(hit_one, strike=Kill, kind=RoleKind.FOLLOWER)),
        Story("random-broker", partial(hit_one, strike=Kill, kind=RoleKind.BROKER)),
    ),
    scripted=(Story("everybody", partial(everybody, strike=Kill, apart_ms=APART_MS), number="S12"),),
)

RESTART: Final = Family(
    "restart",
    (
        BOUNCE_IN_TURN,
        Story("bounce-leader", partial(_bounce, kind=RoleKind.LEADER)),
        Story("bounce-isr-member", partial(_bounce, kind=RoleKind.ISR_MEMBER)),
    ),
)

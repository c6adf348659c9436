"""Wall clocks that are wrong: what stamps records and expires them, and must move no offset."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import ClockStep, Kill
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.scenarios.shared import hit_one

#: Two hours, more than most things that are kept by time are; and what a machine drifts whose clock is not set.
HOURS_MS: Final = 7_200_000
DRIFT_MS: Final = 5_000
#: The least time for which a clock is wrong, so that records are stamped by it.
WRONG_MS: Final = 2_500


def _leader_dies_in_the_future(scene: Scene) -> list[Part]:
    """The leader stamps its records with a time to come, and dies; its successor's time is earlier."""
    leader, dies_at_ms = Role(RoleKind.LEADER, scene.partition()), scene.between_ms(2_000, 3_000)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, end_ms, ClockStep(leader, HOURS_MS)), Part(dies_at_ms, end_ms, Kill(leader))]


def _step(name: str, kind: RoleKind, offset_ms: int) -> Scenario:
    strike = partial(ClockStep, offset_ms=offset_ms)
    return hit_one(name, strike, kind, at_least_ms=lambda _: WRONG_MS)


CLOCK: Final = Family(
    "clock",
    (
        Scenario("leader-dies-in-the-future", _leader_dies_in_the_future),
        _step("leader-ahead-of-time", RoleKind.LEADER, HOURS_MS),
        _step("leader-behind-the-times", RoleKind.LEADER, -HOURS_MS),
        _step("follower-ahead-of-time", RoleKind.FOLLOWER, HOURS_MS),
        _step("random-broker-drifts", RoleKind.BROKER, DRIFT_MS),
    ),
    about="Wall clocks are wrong.",
)

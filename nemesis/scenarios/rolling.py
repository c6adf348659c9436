"""Clean stops: brokers that an operator ends and starts again, one or all in turn (a rolling restart)."""

from __future__ import annotations

from functools import partial
from typing import Final

from nemesis.faults import Stop
from nemesis.roles import RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import alone_ms, hit_all, in_turn, leader_stops


def _leader_ahead(scene: Scene) -> list[Part]:
    """S03 by a clean stop: followers lag, still in the ISR, when the leader hands over to one of them (KAFKA-20554)."""
    return leader_stops(scene, Stop, scene.behind_ms(), overlap_ms=scene.timings.fence_ms)


def _last_in_sync(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is stopped and comes back: everything it acknowledged is on its disk."""
    alone_at_ms = scene.timings.shrink_ms + alone_ms(scene)
    return leader_stops(scene, Stop, alone_at_ms, overlap_ms=scene.timings.fence_ms)


def _one_after_the_other(scene: Scene) -> list[Part]:
    """A rolling restart as it should be: every broker has time to return to the ISR before the next one stops."""
    return _in_turn(scene, down_ms=scene.between_ms(800, 1_500), gap_ms=2 * scene.timings.lag_ms + 2_000)


def _in_haste(scene: Scene) -> list[Part]:
    """A rolling restart that waits for nobody: the next broker stops while the last one starts (S31, cleanly)."""
    return _in_turn(scene, down_ms=scene.between_ms(800, 1_500), gap_ms=scene.between_ms(100, 500))


def _in_turn(scene: Scene, down_ms: int, gap_ms: int) -> list[Part]:
    first = scene.draw("first", scene.brokers)
    return in_turn(scene, Stop, first=first, down_ms=down_ms, gap_ms=gap_ms)


#: The first makes acks=1 lose whenever it fits.
ROLLING: Final = Family(
    "rolling",
    (
        Story("leader-ahead", _leader_ahead, number="S03"),
        Story("last-in-sync", _last_in_sync),
        Story("one-after-the-other", _one_after_the_other),
        Story("in-haste", _in_haste),
        Story("leader", partial(hit_all, strike=Stop, kind=RoleKind.LEADER)),
    ),
)

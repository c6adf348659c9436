"""Clean stops: brokers that an operator ends and starts again, one or all in turn (a rolling restart).

A broker that is asked to end hands over what it leads, writes everything to disk and says so; nothing of it is lost.
What is lost all the same, writes with acks=1 that its successor had not fetched, is lost without any accident.
"""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.cut import alone_ms
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.stopping import leader_stops
from nemesis.story import Part, Scene, Story


class Stop(Fault, frozen=True, tag="stop"):
    """Ask the processes of the holders of ``role`` to end (SIGTERM); start them again at the end."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The processes to end."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Ask."""
        return by_node(present(target.processes).stop, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start again."""
        return by_node(present(target.processes).restart, aim.nodes)


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
    turns = [(first + turn) % scene.brokers for turn in range(scene.brokers)]
    begins = [turn * (down_ms + gap_ms) for turn in range(scene.brokers)]
    return [
        Part(begin_ms, begin_ms + down_ms, Stop(Role(RoleKind.NAMED, pick=broker)))
        for begin_ms, broker in zip(begins, turns, strict=True)
    ]


def _leader(scene: Scene) -> list[Part]:
    """The leader alone, in good order."""
    return [Part(0, scene.lasting_ms(), Stop(Role(RoleKind.LEADER, scene.partition())))]


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("leader-ahead", _leader_ahead, number="S03"),
    Story("last-in-sync", _last_in_sync),
    Story("one-after-the-other", _one_after_the_other),
    Story("in-haste", _in_haste),
    Story("leader", _leader),
)

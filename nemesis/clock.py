"""Wall clocks that are wrong: one broker's time jumps for a while. Nothing that is replicated depends on it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind
from nemesis.story import Part, Scene, Story

#: Two hours, more than most things that are kept by time are; and what a machine drifts whose clock nobody sets.
HOURS_MS: Final = 7_200_000
DRIFT_MS: Final = 5_000


class ClockStep(Fault, frozen=True, tag="clockstep"):
    """Let the wall clocks of the holders of ``role`` be off by ``offset_ms``; set them right at the end."""

    offset_ms: int
    needs: ClassVar[tuple[Capability, ...]] = (Capability.CLOCKS,)

    def aim(self, view: ClusterView) -> Aim:
        """Whose clocks."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Step."""
        return by_node(partial(_step, target, self.offset_ms), aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Set right."""
        return by_node(partial(_step, target, 0), aim.nodes)


def _step(target: Target, offset_ms: int, node: int) -> Evidence:
    return present(target.clocks).set(node, offset_ms)


def _leader_dies_in_the_future(scene: Scene) -> list[Part]:
    """The leader stamps its records with a time to come, and dies; its successor's time is earlier."""
    leader, dies_at_ms = Role(RoleKind.LEADER, scene.partition()), scene.between_ms(2_000, 3_000)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, end_ms, ClockStep(leader, HOURS_MS)), Part(dies_at_ms, end_ms, Kill(leader))]


def _step_of(name: str, kind: RoleKind, offset_ms: int) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(2_500), ClockStep(scene.role(kind, scene.partition()), offset_ms))]

    return Story(name, parts)


STORIES: Final = (
    Story("leader-dies-in-the-future", _leader_dies_in_the_future),
    _step_of("leader-ahead-of-time", RoleKind.LEADER, HOURS_MS),
    _step_of("leader-behind-the-times", RoleKind.LEADER, -HOURS_MS),
    _step_of("follower-ahead-of-time", RoleKind.FOLLOWER, HOURS_MS),
    _step_of("random-broker-drifts", RoleKind.BROKER, DRIFT_MS),
)

"""Slow disks: whoever waits for a disk waits long; and the stories that are made of it.

Only what is forced to the disk waits (rule 24): with flush.messages=1 every append, otherwise hardly anything.
"""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind
from nemesis.story import Part, Scene, Story


class SlowDisk(Fault, frozen=True, tag="slowdisk"):
    """Let the disks of the holders of ``role`` write slowly, until the end."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPEED,)

    def aim(self, view: ClusterView) -> Aim:
        """The disks that wear out."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Slow down."""
        return by_node(present(target.disk_speed).slow, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Speed up."""
        return by_node(present(target.disk_speed).restore, aim.nodes)


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


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        end_ms = scene.lasting_ms(scene.timings.shrink_ms)
        return [Part(0, end_ms, SlowDisk(scene.role(kind, scene.partition())))]

    return Story(name, parts)


#: The first makes acks=1 lose where followers flush every record.
STORIES: Final = (
    Story("slow-followers-leader-dies", _slow_followers_leader_dies),
    Story("slow-leader-dies", _slow_leader_dies),
    _one("leader", RoleKind.LEADER),
    _one("follower", RoleKind.FOLLOWER),
)

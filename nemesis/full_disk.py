"""Full disks: nothing more can be appended, and a broker may end over it; and the stories that are made of it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.stopping import last_in_sync, leader_ahead, two_overlapping
from nemesis.story import Part, Scene, Story


class FullDisk(Fault, frozen=True, tag="fulldisk"):
    """Leave no room on the disks of the holders of ``role``; make room again at the end, and start who ended over it.

    Kafka ends when the directory of its only log fails (rule 29). What was written before is there afterwards.
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.DISK_SPACE, Capability.PROCESSES)
    #: It may, at the next append; the budget counts it as if it did.
    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The disks to fill."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Fill."""
        return by_node(present(target.disk_space).fill, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Make room. The evidence names how the process ended, if it did, and that it was started again."""
        return by_node(
            lambda node: {**present(target.disk_space).free(node), **present(target.processes).restart(node)}, aim.nodes
        )


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), FullDisk(scene.role(kind, scene.partition())))]

    return Story(name, parts)


def _follower_past_lag(scene: Scene) -> list[Part]:
    """A follower cannot append what it fetches, until it is out of the ISR."""
    end_ms = scene.lasting_ms(scene.timings.shrink_ms)
    return [Part(0, end_ms, FullDisk(scene.role(RoleKind.FOLLOWER, scene.partition())))]


def _leader_past_session(scene: Scene) -> list[Part]:
    """The leader has no room for as long as it takes to elect another."""
    end_ms = scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, end_ms, FullDisk(Role(RoleKind.LEADER, scene.partition())))]


#: The first makes acks=1 lose where a broker ends over a full disk.
STORIES: Final = (
    Story("leader-ahead", partial(leader_ahead, stop=FullDisk)),
    Story("last-in-sync", partial(last_in_sync, stop=FullDisk)),
    Story("leader-past-session", _leader_past_session),
    Story("follower-past-lag", _follower_past_lag),
    Story("two-overlapping", partial(two_overlapping, stop=FullDisk)),
    _one("random-broker", RoleKind.BROKER),
)

"""Emptied disks: the broker returns as on a new machine, with its old number; and the stories that are made of it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.cut import Partition
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind
from nemesis.stopping import last_in_sync, two_overlapping
from nemesis.story import Part, Scene, Story
from nemesis.topology import Shape

#: For how long a returned follower may fetch again what it lost, before the next fault.
REFETCH_MS: Final = 500
#: After this, a Java process has surely started and told the controller of its disk.
START_MS: Final = 10_000


class WipeDisk(Fault, frozen=True, tag="wipedisk"):
    """End the processes of the holders of ``role`` at once and empty their disks; start them again at the end.

    Nothing that a broker flushed survives it (rule 24 does not help), and it registers under its old number (rule 29).
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    shows: ClassVar[str] = "wiped"

    def aim(self, view: ClusterView) -> Aim:
        """The machines to replace."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Kill, then empty."""
        return by_node(
            lambda node: {**present(target.processes).kill(node), **present(target.files).wipe(node)}, aim.nodes
        )

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start on nothing."""
        return by_node(present(target.processes).restart, aim.nodes)


def _last_in_sync_restarted(scene: Scene) -> list[Part]:
    """S08, and the broker is started once more when it is back and nobody leads.

    A formatted disk has a new identity. Since 3.7 (KIP-858) Kafka elects no replica whose disk it does not know, and
    learns of the new one too late for this election; the next start makes the empty replica lead.
    """
    parts = last_in_sync(scene, WipeDisk)
    member = Role(RoleKind.ISR_MEMBER, parts[-1].fault.role.partition)
    again_at_ms = max(part.end_ms for part in parts) + START_MS
    return [*parts, Part(again_at_ms, again_at_ms + scene.between_ms(100, 300), Kill(member))]


def _all_in_sync(scene: Scene) -> list[Part]:
    """S25: one replica is out of sync, then all others lose their disks: more copies than min.insync.replicas - 1."""
    partition = scene.partition()
    away = scene.role(RoleKind.FOLLOWER, partition)
    emptied_at_ms = scene.timings.shrink_ms + scene.between_ms(300, 600)
    end_ms = emptied_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    emptied = [
        Part(emptied_at_ms, end_ms, WipeDisk(Role(RoleKind.ISR_MEMBER, partition, pick=member))) for member in range(2)
    ]
    return [Part(0, end_ms, Partition(away, Shape.ISOLATE)), *emptied]


def _follower_then_leader(scene: Scene) -> list[Part]:
    """A follower returns empty and fetches everything again; then the leader dies."""
    partition, down_ms = scene.partition(), scene.lasting_ms()
    dies_at_ms = down_ms + scene.timings.fence_ms + scene.between_ms(0, REFETCH_MS)
    return [
        Part(0, down_ms, WipeDisk(scene.role(RoleKind.FOLLOWER, partition))),
        Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
    ]


def _faster_than_detection(scene: Scene) -> list[Part]:
    """S36 with an empty disk: an in-sync replica is back before its session ends, then the leader dies."""
    partition, down_ms = scene.partition(), scene.between_ms(100, 300)
    dies_at_ms = down_ms + scene.between_ms(100, 300)
    return [
        Part(0, down_ms, WipeDisk(scene.role(RoleKind.FOLLOWER, partition))),
        Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
    ]


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), WipeDisk(scene.role(kind, scene.partition())))]

    return Story(name, parts)


#: The first makes acks=all lose whatever is flushed, unless there are eligible leader replicas (KAFKA-15495).
STORIES: Final = (
    Story("last-in-sync", partial(last_in_sync, stop=WipeDisk), number="S08"),
    Story("all-in-sync", _all_in_sync, number="S25"),
    Story("two-overlapping", partial(two_overlapping, stop=WipeDisk)),
    Story("follower-then-leader", _follower_then_leader),
    Story("faster-than-detection", _faster_than_detection, number="S36"),
    _one("leader", RoleKind.LEADER),
    _one("follower", RoleKind.FOLLOWER),
)

SCRIPTED: Final = (Story("last-in-sync-restarted", _last_in_sync_restarted),)

"""Changes of who replicates a log partition, and the stories that are made of them."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, PartitionView, Target, present
from nemesis.cut import SUCCESSOR_MS, Partition
from nemesis.faults import Aim, Fault, by_node, listed
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind, partition_of, resolve
from nemesis.stopping import OVERLAP_MS
from nemesis.story import Part, Scene, Story
from nemesis.topology import Shape


class Reassign(Fault, frozen=True, tag="reassign"):
    """Take a log partition from the holder of ``role`` and give it to a broker that has none of it.

    Where every broker has a replica there is one replica less. At the end the replicas are as before, and whoever had
    to leave comes back with an empty log.
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.REASSIGNMENT,)

    def aim(self, view: ClusterView) -> Aim:
        """The broker that is to leave."""
        holders = resolve(self.role, view)
        partition = partition_of(self.role, view)
        if not holders or not partition:
            return Aim(impossible=f"nobody is {self.role} now")
        state = view.partitions[partition]
        able = [node for node in holders if node in state.replicas and _in_sync_without(node, state, view)]
        if not able:
            return Aim(impossible=f"without {listed(holders)} no in-sync replica of {partition} would run")
        return Aim(
            nodes=(able[0],),
            partition=partition,
            replicas=_without(able[0], state, view),
            replicas_before=state.replicas,
        )

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Reassign."""
        return by_node(lambda _: present(target.reassignment).reassign(aim.partition, aim.replicas), aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Reassign back, which also calls off what has not come to its end."""
        return by_node(lambda _: present(target.reassignment).reassign(aim.partition, aim.replicas_before), aim.nodes)


def _in_sync_without(node: int, state: PartitionView, view: ClusterView) -> bool:
    return bool(set(state.isr) & set(view.running) - {node})


def _without(node: int, state: PartitionView, view: ClusterView) -> tuple[int, ...]:
    """The replicas with a running broker that is none of them in ``node``'s place, or with the place gone."""
    spare = sorted(set(view.running) - set(state.replicas))
    return tuple(other for replica in state.replicas for other in ([replica] if replica != node else spare[:1]))


def _leader_while_lagging(scene: Scene) -> list[Part]:
    """S03 by reassignment: followers lag a little when the leader loses its place to them."""
    leader = Role(RoleKind.LEADER, scene.partition())
    leaves_at_ms = scene.behind_ms()
    return [
        Part(0, leaves_at_ms + OVERLAP_MS, Partition(leader, Shape.FROM_BROKERS)),
        Part(leaves_at_ms, leaves_at_ms + scene.lasting_ms(), Reassign(leader)),
    ]


def _then_dies(scene: Scene) -> list[Part]:
    """The leader leaves, and its successor dies."""
    leader = Role(RoleKind.LEADER, scene.partition())
    dies_at_ms = scene.between_ms(100, 600)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [Part(0, end_ms, Reassign(leader)), Part(dies_at_ms, end_ms, Kill(leader))]


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), Reassign(scene.role(kind, scene.partition())))]

    return Story(name, parts)


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("reassign-while-lagging", _leader_while_lagging, number="S03"),
    Story("reassign-then-dies", _then_dies),
    _one("reassign-leader", RoleKind.LEADER),
    _one("reassign-follower", RoleKind.FOLLOWER),
)

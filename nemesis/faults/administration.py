"""What operators change on purpose: who leads a log partition, and who replicates it."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, ClusterView, Evidence, PartitionView, Target, present
from nemesis.faults.fault import Aim, NodeFault, listed
from nemesis.roles import partition_of, resolve


class MoveLeader(NodeFault, frozen=True):
    """Hand the leadership of the role's log partition to a holder of ``role``, an in-sync follower (rule 13).

    Nobody dies, and acks=1 loses (KAFKA-20554). Of several that can lead, the role's pick decides. It is done at once
    and nothing undoes it; until its end it counts as the fault that is in effect.
    """

    kind: ClassVar[str] = "moveleader"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LEADERSHIP,)
    spares_process: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The follower that is to lead."""
        holders, partition = resolve(self.role, view), partition_of(self.role, view)
        if not holders or not partition:
            return Aim(impossible=f"nobody is {self.role} now")
        state = view.partitions[partition]
        able = [node for node in holders if node in state.isr and node in view.running and node != state.leader]
        if not able:
            why_not = "leads already, is not in sync, or does not run"
            return Aim(impossible=f"{self.role} ({listed(holders)}) {why_not}")
        return Aim(nodes=(able[self.role.pick % len(able)],), partition=partition)

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Move."""
        return present(target.leadership).move_leader(aim.partition, node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Nothing: whoever leads now may go on."""
        return {}


class Reassign(NodeFault, frozen=True):
    """Take a log partition from the holder of ``role`` and give it to a broker that has none of it.

    Where every broker has a replica there is one replica less. At the end the replicas are as before, and whoever had
    to leave comes back with an empty log.
    """

    kind: ClassVar[str] = "reassign"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.REASSIGNMENT,)
    replaces_replica: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The broker that is to leave."""
        holders, partition = resolve(self.role, view), partition_of(self.role, view)
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

    def hit(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Reassign."""
        return present(target.reassignment).reassign(aim.partition, aim.replicas)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Reassign back, which also calls off what has not come to its end."""
        return present(target.reassignment).reassign(aim.partition, aim.replicas_before)


def _in_sync_without(node: int, state: PartitionView, view: ClusterView) -> bool:
    return bool(set(state.isr) & set(view.running) - {node})


def _without(node: int, state: PartitionView, view: ClusterView) -> tuple[int, ...]:
    """The replicas with a running broker that is none of them in ``node``'s place, or with the place gone."""
    spare = sorted(set(view.running) - set(state.replicas))
    return tuple(other for replica in state.replicas for other in ([replica] if replica != node else spare[:1]))

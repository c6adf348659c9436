"""Planned moves of leadership: nobody dies, and acks=1 loses (KAFKA-20554)."""

from __future__ import annotations

from typing import ClassVar

from nemesis.cluster import Capability, ClusterView, Evidence, Target, require
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
        return require(target.leadership).move_leader(aim.partition, node)

    def undo(self, target: Target, aim: Aim, node: int) -> Evidence:
        """Nothing: whoever leads now may go on."""
        return {}

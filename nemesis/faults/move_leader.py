"""Planned moves of leadership: no broker dies, and acks=1 loses (KAFKA-20554)."""

from __future__ import annotations

from typing import ClassVar, Self

from typing_extensions import override

from nemesis.cluster import Capability, ClusterView, Target, require
from nemesis.evidence import LeaderMoved
from nemesis.faults.fault import Aim, Draw, NodeFault, listed
from nemesis.roles import Role, RoleKind, partition_of, resolve
from nemesis.topology import Shape


class MoveLeader(NodeFault, frozen=True):
    """Hand the leadership of the role's log partition to a holder of ``role``, an in-sync follower (rule 13).

    No broker dies, and acks=1 loses (KAFKA-20554). Of several that can lead, the role's pick decides. It is done at
    once and nothing undoes it; until its end it counts as the fault that is in effect.
    """

    kind: ClassVar[str] = "moveleader"
    verb: ClassVar[str] = "move"
    operands: ClassVar[str] = "leader to NODE:nodes"
    in_a_script: ClassVar[str] = "Hand the leadership over, as planned"
    lasts: ClassVar[bool] = False
    family: ClassVar[str] = "move"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LEADERSHIP,)
    spares_process: ClassVar[bool] = True

    @classmethod
    def drawn(cls, role: Role, shape: Shape, draw: Draw) -> Self:  # noqa: ARG003
        """To one broker all the time, or to any follower that can lead."""
        return cls(role if role.kind is RoleKind.NAMED else Role(RoleKind.FOLLOWERS, role.partition, role.pick))

    def aim(self, view: ClusterView) -> Aim:
        """The follower that is to lead."""
        holders, partition = resolve(self.role, view), partition_of(self.role, view)
        if not holders or not partition:
            return Aim(impossible=f"{self.role} does not exist now")
        state = view.partitions[partition]
        able = [node for node in holders if node in state.isr and node in view.running and node != state.leader]
        if not able:
            why_not = "leads already, is not in sync, or does not run"
            return Aim(impossible=f"{self.role} ({listed(holders)}) {why_not}")
        return Aim(nodes=(able[self.role.pick % len(able)],), partition=partition)

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> LeaderMoved:
        return require(target.leadership).move_leader(aim.partition, node)

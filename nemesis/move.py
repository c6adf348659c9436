"""Planned moves of leadership, and the stories that are made of them: nobody dies, and acks=1 loses (KAFKA-20554)."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.cut import SUCCESSOR_MS, Partition
from nemesis.faults import Aim, Fault, by_node, listed
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind, partition_of, resolve
from nemesis.stopping import OVERLAP_MS
from nemesis.story import Part, Scene, Story
from nemesis.topology import Shape

#: Moves of one story that goes back and forth.
TURNS: Final = 4


class MoveLeader(Fault, frozen=True, tag="moveleader"):
    """Hand the leadership of the role's log partition to a holder of ``role``, an in-sync follower (rule 13).

    Of several that can lead, the role's pick decides.
    It is done at once and nothing undoes it; until its end it counts as the fault that is in effect.
    """

    needs: ClassVar[tuple[Capability, ...]] = (Capability.LEADERSHIP,)

    def aim(self, view: ClusterView) -> Aim:
        """The follower that is to lead."""
        holders = resolve(self.role, view)
        partition = partition_of(self.role, view)
        if not holders or not partition:
            return Aim(impossible=f"nobody is {self.role} now")
        state = view.partitions[partition]
        able = [node for node in holders if node in state.isr and node in view.running and node != state.leader]
        if not able:
            why_not = "leads already, is not in sync, or does not run"
            return Aim(impossible=f"{self.role} ({listed(holders)}) {why_not}")
        return Aim(nodes=(able[self.role.pick % len(able)],), partition=partition)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Move."""
        return by_node(lambda node: present(target.leadership).move_leader(aim.partition, node), aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:  # noqa: ARG002
        """Nothing: whoever leads now may go on."""
        return {}


def _while_lagging(scene: Scene) -> list[Part]:
    """S03: followers lag a little, still in the ISR, when one of them is made the leader on purpose."""
    partition = scene.partition()
    moves_at_ms = scene.behind_ms()
    return [
        Part(0, moves_at_ms + OVERLAP_MS, Partition(Role(RoleKind.LEADER, partition), Shape.FROM_BROKERS)),
        Part(moves_at_ms, moves_at_ms + scene.lasting_ms(), MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
    ]


def _then_dies(scene: Scene) -> list[Part]:
    """S39: the others become followers of a new leader, which dies before they fetched from it what they had.

    The leader before it leads by a move too, so that it is not the one whom the controller prefers after the death.
    """
    partition = scene.partition()
    leader = Role(RoleKind.LEADER, partition)
    moves_at_ms = scene.between_ms(300, 600)
    dies_at_ms = moves_at_ms + scene.between_ms(20, 200)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [
        Part(0, moves_at_ms, MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
        Part(moves_at_ms, end_ms, MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
        Part(moves_at_ms + 1, dies_at_ms + OVERLAP_MS, Partition(leader, Shape.FROM_BROKERS)),
        Part(dies_at_ms, end_ms, Kill(leader)),
    ]


def _back_and_forth(scene: Scene) -> list[Part]:
    """Leadership goes round between replicas, faster than clients learn of it."""
    follower = scene.role(RoleKind.FOLLOWERS, scene.partition())
    gap_ms = scene.between_ms(150, 500)
    return [Part(turn * gap_ms, (turn + 1) * gap_ms, MoveLeader(follower)) for turn in range(TURNS)]


def _once(scene: Scene) -> list[Part]:
    """What a preferred leader election does."""
    return [Part(0, scene.lasting_ms(), MoveLeader(scene.role(RoleKind.FOLLOWERS, scene.partition())))]


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("move-while-lagging", _while_lagging, number="S03"),
    Story("move-then-dies", _then_dies, number="S39"),
    Story("move-back-and-forth", _back_and_forth),
    Story("move-once", _once),
)

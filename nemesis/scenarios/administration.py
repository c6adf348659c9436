"""Changes that operators make on purpose: who leads, and who replicates. With acks=1 they lose writes by themselves."""

from __future__ import annotations

from typing import Final

from nemesis.faults import Kill, MoveLeader, Partition, Reassign
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape

#: Moves of one scenario that goes back and forth.
TURNS: Final = 4


def _move_while_lagging(scene: Scene) -> list[Part]:
    """S03: followers lag a little, still in the ISR, when one of them is made the leader on purpose."""
    partition = scene.partition()
    moves_at_ms = scene.behind_ms()
    # The cut outlasts the move: a follower that caught up at the last moment would have nothing to lose.
    return [
        Part(0, moves_at_ms + shared.OVERLAP_MS, Partition(Role(RoleKind.LEADER, partition), Shape.FROM_BROKERS)),
        Part(moves_at_ms, moves_at_ms + scene.lasting_ms(), MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
    ]


def _move_then_dies(scene: Scene) -> list[Part]:
    """S39: the others become followers of a new leader, which dies before they fetched from it what they had.

    The leader before it leads by a move too, so that it is not the one whom the controller prefers after the death.
    """
    partition = scene.partition()
    leader = Role(RoleKind.LEADER, partition)
    moves_at_ms = scene.between_ms(300, 600)
    dies_at_ms = moves_at_ms + scene.between_ms(20, 200)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + shared.SUCCESSOR_MS)
    return [
        Part(0, moves_at_ms, MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
        Part(moves_at_ms, end_ms, MoveLeader(scene.role(RoleKind.FOLLOWERS, partition))),
        Part(moves_at_ms + 1, dies_at_ms + shared.OVERLAP_MS, Partition(leader, Shape.FROM_BROKERS)),
        Part(dies_at_ms, end_ms, Kill(leader)),
    ]


def _move_back_and_forth(scene: Scene) -> list[Part]:
    """Leadership goes round between replicas, faster than clients learn of it."""
    follower = scene.role(RoleKind.FOLLOWERS, scene.partition())
    gap_ms = scene.between_ms(150, 500)
    return [Part(turn * gap_ms, (turn + 1) * gap_ms, MoveLeader(follower)) for turn in range(TURNS)]


def _reassign_while_lagging(scene: Scene) -> list[Part]:
    """S03 by reassignment: followers lag a little when the leader loses its place to them."""
    leader = Role(RoleKind.LEADER, scene.partition())
    leaves_at_ms = scene.behind_ms()
    return [
        Part(0, leaves_at_ms + shared.OVERLAP_MS, Partition(leader, Shape.FROM_BROKERS)),
        Part(leaves_at_ms, leaves_at_ms + scene.lasting_ms(), Reassign(leader)),
    ]


def _reassign_then_dies(scene: Scene) -> list[Part]:
    """The leader leaves, and its successor dies."""
    leader = Role(RoleKind.LEADER, scene.partition())
    dies_at_ms = scene.between_ms(100, 600)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + shared.SUCCESSOR_MS)
    return [Part(0, end_ms, Reassign(leader)), Part(dies_at_ms, end_ms, Kill(leader))]


#: The first makes acks=1 lose whenever it fits.
MOVE: Final = Family(
    "move",
    (
        Scenario("move-while-lagging", _move_while_lagging, number="S03"),
        Scenario("move-then-dies", _move_then_dies, number="S39"),
        Scenario("move-back-and-forth", _move_back_and_forth),
        # What a preferred leader election does.
        shared.hit_one("move-once", MoveLeader, RoleKind.FOLLOWERS),
    ),
    about="An operator moves leadership to another in-sync replica.",
)

#: The first makes acks=1 lose whenever it fits.
REASSIGN: Final = Family(
    "reassign",
    (
        Scenario("reassign-while-lagging", _reassign_while_lagging, number="S03"),
        Scenario("reassign-then-dies", _reassign_then_dies),
        shared.hit_one("reassign-leader", Reassign, RoleKind.LEADER),
        shared.hit_one("reassign-follower", Reassign, RoleKind.FOLLOWER),
    ),
    about="An operator takes a replica from one broker and gives it to another.",
)

"""Death of brokers (SIGKILL), and the stories that are made of it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.stopping import APART_MS, everybody, last_in_sync, leader_ahead, two_overlapping
from nemesis.story import Part, Scene, Story


class Kill(Fault, frozen=True, tag="kill"):
    """End the processes of the holders of ``role`` at once; start them again on their old disks at the end."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The processes to end."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Kill."""
        return by_node(present(target.processes).kill, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start again."""
        return by_node(present(target.processes).restart, aim.nodes)


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), Kill(scene.role(kind, scene.partition())))]

    return Story(name, parts)


def bounce_in_turn(scene: Scene) -> list[Part]:
    """S31: every broker dies and returns at once, in turn, without waiting for the ISR."""
    first, down_ms, gap_ms = scene.draw("first", scene.brokers), scene.between_ms(100, 300), scene.between_ms(200, 500)
    turns = [(first + turn) % scene.brokers for turn in range(scene.brokers)]
    begins = [turn * (down_ms + gap_ms) for turn in range(scene.brokers)]
    return [
        Part(begin_ms, begin_ms + down_ms, Kill(Role(RoleKind.NAMED, pick=broker)))
        for begin_ms, broker in zip(begins, turns, strict=True)
    ]


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("leader-ahead", partial(leader_ahead, stop=Kill), number="S01"),
    Story("last-in-sync", partial(last_in_sync, stop=Kill), number="S06"),
    Story("two-overlapping", partial(two_overlapping, stop=Kill)),
    Story("bounce-in-turn", bounce_in_turn, number="S31"),
    _one("leader", RoleKind.LEADER),
    _one("follower", RoleKind.FOLLOWER),
    _one("random-broker", RoleKind.BROKER),
)

#: Played only where a plan asks for them.
SCRIPTED: Final = (Story("everybody", partial(everybody, stop=Kill, apart_ms=APART_MS), number="S12"),)

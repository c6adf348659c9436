"""Death of brokers (SIGKILL), and the stories that are made of it."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.contract import ClusterView, Evidence, Target
from nemesis.cut import leader_without_followers, writes_in_vain_ms
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.story import Part, Scene, Story


class Kill(Fault, frozen=True, tag="kill"):
    """End the processes of the holders of ``role`` at once; start them again on their old disks at the end."""

    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The processes to end."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Kill."""
        return by_node(target.kill, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start again."""
        return by_node(target.restart, aim.nodes)


def _leader_ahead(scene: Scene) -> list[Part]:
    """S01: followers lag a little, still in the ISR, when the leader dies; it returns after the next was elected."""
    partition = scene.partition()
    dies_at_ms = scene.behind_ms()
    returns_at_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [
        Part(0, dies_at_ms + 100, leader_without_followers(partition)),
        Part(dies_at_ms, returns_at_ms, Kill(Role(RoleKind.LEADER, partition))),
    ]


def _last_in_sync(scene: Scene) -> list[Part]:
    """S06: the ISR shrinks to the leader, writes go on, then it dies: wait for it, or elect uncleanly."""
    partition = scene.partition()
    dies_at_ms = scene.timings.shrink_ms + writes_in_vain_ms(scene)
    returns_at_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + 300)
    return [
        Part(0, dies_at_ms + 100, leader_without_followers(partition)),
        Part(dies_at_ms, returns_at_ms, Kill(Role(RoleKind.LEADER, partition))),
    ]


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), Kill(scene.role(kind, scene.partition())))]

    return Story(name, parts)


def _two(scene: Scene) -> list[Part]:
    """The leader dies, and its successor before it returns."""
    partition = scene.partition()
    first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms()
    overlap_at_ms = first_ms * 2 // 3
    return [
        Part(0, first_ms, Kill(Role(RoleKind.LEADER, partition))),
        Part(overlap_at_ms, overlap_at_ms + second_ms, Kill(scene.role(RoleKind.FOLLOWER, partition))),
    ]


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
    Story("leader-ahead", _leader_ahead),
    Story("last-in-sync", _last_in_sync),
    Story("two-overlapping", _two),
    Story("bounce-in-turn", bounce_in_turn),
    _one("leader", RoleKind.LEADER),
    _one("follower", RoleKind.FOLLOWER),
    _one("random-broker", RoleKind.BROKER),
)

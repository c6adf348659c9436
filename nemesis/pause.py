"""Frozen brokers (SIGSTOP), and the stories that are made of them."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.contract import ClusterView, Evidence, Target
from nemesis.cut import leader_without_followers
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.story import Part, Scene, Story


class Pause(Fault, frozen=True, tag="pause"):
    """Freeze the processes of the holders of ``role``, sockets open; let them run at the end."""

    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The processes to freeze."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Freeze."""
        return by_node(target.pause, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Let run."""
        return by_node(target.resume, aim.nodes)


def _leader_ahead(scene: Scene) -> list[Part]:
    """S01 with a freeze: followers lag a little when the leader stops; it wakes as a zombie, after its successor."""
    partition = scene.partition()
    stops_at_ms = scene.behind_ms()
    wakes_at_ms = stops_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [
        Part(0, stops_at_ms + 100, leader_without_followers(partition)),
        Part(stops_at_ms, wakes_at_ms, Pause(Role(RoleKind.LEADER, partition))),
    ]


def _leader_past_session(scene: Scene) -> list[Part]:
    """The leader wakes as a zombie, with the requests that its sockets kept for it."""
    end_ms = scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, end_ms, Pause(Role(RoleKind.LEADER, scene.partition())))]


def _follower_past_lag(scene: Scene) -> list[Part]:
    """A follower sleeps until it is out of the ISR."""
    end_ms = scene.lasting_ms(scene.timings.shrink_ms)
    return [Part(0, end_ms, Pause(scene.role(RoleKind.FOLLOWER, scene.partition())))]


def _all_followers_past_lag(scene: Scene) -> list[Part]:
    """The ISR shrinks to the leader, which is then asked to hold what it promised alone."""
    end_ms = scene.lasting_ms(scene.timings.shrink_ms + 300)
    return [Part(0, end_ms, Pause(Role(RoleKind.FOLLOWERS, scene.partition())))]


def _blink(scene: Scene) -> list[Part]:
    """Shorter than the session: nobody should lose a role."""
    return [Part(0, scene.timings.session_ms // 2, Pause(scene.role(RoleKind.BROKER)))]


def _two(scene: Scene) -> list[Part]:
    """The leader stops, and a follower before it wakes."""
    partition = scene.partition()
    first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms()
    overlap_at_ms = first_ms * 2 // 3
    return [
        Part(0, first_ms, Pause(Role(RoleKind.LEADER, partition))),
        Part(overlap_at_ms, overlap_at_ms + second_ms, Pause(scene.role(RoleKind.FOLLOWER, partition))),
    ]


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("leader-ahead", _leader_ahead),
    Story("leader-past-session", _leader_past_session),
    Story("follower-past-lag", _follower_past_lag),
    Story("all-followers-past-lag", _all_followers_past_lag),
    Story("blink", _blink),
    Story("two-overlapping", _two),
)

"""Frozen brokers (SIGSTOP), and the stories that are made of them."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import Role, RoleKind
from nemesis.stopping import last_in_sync, leader_ahead, two_overlapping
from nemesis.story import Part, Scene, Story


class Pause(Fault, frozen=True, tag="pause"):
    """Freeze the processes of the holders of ``role``, sockets open; let them run at the end."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.PROCESSES,)
    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The processes to freeze."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Freeze."""
        return by_node(present(target.processes).pause, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Let run."""
        return by_node(present(target.processes).resume, aim.nodes)


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


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("leader-ahead", partial(leader_ahead, stop=Pause)),
    Story("last-in-sync", partial(last_in_sync, stop=Pause)),
    Story("leader-past-session", _leader_past_session),
    Story("follower-past-lag", _follower_past_lag),
    Story("all-followers-past-lag", _all_followers_past_lag),
    Story("blink", _blink),
    Story("two-overlapping", partial(two_overlapping, stop=Pause)),
)

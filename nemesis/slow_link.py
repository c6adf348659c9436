"""Slow links: everything arrives, late. Followers fall behind without a connection breaking or a session ending."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.cut import SUCCESSOR_MS
from nemesis.faults import Aim, Fault
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind, resolve
from nemesis.story import Part, Scene, Story
from nemesis.topology import Shape, links_of


class SlowLink(Fault, frozen=True, tag="slowlink"):
    """Make those links slow that the ``shape`` of a partition would cut; let them be as before at the end."""

    shape: Shape
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINK_SPEED,)

    def aim(self, view: ClusterView) -> Aim:
        """The links."""
        anchor = resolve(self.role, view)
        return Aim(
            links=tuple(sorted(links_of(self.shape, view.brokers, anchor))) if anchor else (),
            impossible="" if anchor else f"nobody is {self.role} now",
        )

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Slow down."""
        return present(target.link_speed).slow(aim.links)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """As before."""
        return present(target.link_speed).restore(aim.links)


def _leader_ahead(scene: Scene) -> list[Part]:
    """As S01, over slow links: followers lag behind the leader, which dies with what has not arrived."""
    leader, dies_at_ms = Role(RoleKind.LEADER, scene.partition()), scene.between_ms(1_000, 2_000)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [Part(0, dies_at_ms + 100, SlowLink(leader, Shape.FROM_BROKERS)), Part(dies_at_ms, end_ms, Kill(leader))]


def _around_one(name: str, shape: Shape, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        slow = SlowLink(scene.role(kind, scene.partition()), shape)
        return [Part(0, scene.lasting_ms(scene.timings.shrink_ms), slow)]

    return Story(name, parts)


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("leader-ahead", _leader_ahead),
    _around_one("replication", Shape.FROM_BROKERS, RoleKind.LEADER),
    _around_one("one-follower", Shape.FROM_BROKERS, RoleKind.FOLLOWER),
    _around_one("leader-and-controller", Shape.FROM_CONTROLLER, RoleKind.LEADER),
    _around_one("leader-and-clients", Shape.FROM_CLIENTS, RoleKind.LEADER),
)

"""Network partitions, and the stories that are made of them."""

from __future__ import annotations

from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault
from nemesis.roles import Role, RoleKind, resolve
from nemesis.story import Part, Scene, Story
from nemesis.topology import Shape, links_of

#: For how long a successor leads before the old leader is back.
SUCCESSOR_MS: Final = 300


class Partition(Fault, frozen=True, tag="partition"):
    """Cut links so that the network takes ``shape`` around the holders of ``role``; heal them at the end."""

    shape: Shape
    needs: ClassVar[tuple[Capability, ...]] = (Capability.LINKS,)

    def aim(self, view: ClusterView) -> Aim:
        """The links to cut."""
        anchor = resolve(self.role, view)
        if not anchor:
            return Aim(impossible=f"nobody is {self.role} now")
        links = sorted(links_of(self.shape, view.brokers, anchor))
        return (
            Aim(links=tuple(links)) if links else Aim(impossible=f"{self.shape} cuts nothing in a cluster this small")
        )

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Cut."""
        return present(target.links).cut(aim.links)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Heal."""
        return present(target.links).heal(aim.links)


def alone_ms(scene: Scene) -> int:
    """For how long the leader is the only one in sync, so that it acknowledges writes alone."""
    return scene.between_ms(400, 800)


def _zombie_leader(scene: Scene) -> list[Part]:
    """S04: the leader reaches clients only, another is elected, both take writes."""
    end_ms = scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [Part(0, end_ms, Partition(Role(RoleKind.LEADER, scene.partition()), Shape.ISOLATE))]


def _last_in_sync_fenced(scene: Scene) -> list[Part]:
    """S06 without a death: the ISR shrinks to the leader, which then loses the controller; followers are well."""
    leader = Role(RoleKind.LEADER, scene.partition())
    fenced_at_ms = scene.timings.shrink_ms + alone_ms(scene)
    end_ms = fenced_at_ms + scene.timings.fence_ms + SUCCESSOR_MS
    shape = (Shape.FROM_CONTROLLER, Shape.ISOLATE_ALSO_FROM_CLIENTS)[scene.draw("also-clients", 2)]
    return [
        Part(0, end_ms, Partition(leader, Shape.FROM_BROKERS)),
        Part(fenced_at_ms, end_ms, Partition(leader, shape)),
    ]


def _around_one(name: str, shape: Shape, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), Partition(scene.role(kind, scene.partition()), shape))]

    return Story(name, parts)


def _fenced_while_lagging(scene: Scene) -> list[Part]:
    """Two overlapping cuts in one direction each: followers cannot fetch, then the leader cannot be heard."""
    leader = Role(RoleKind.LEADER, scene.partition())
    muted_at_ms = scene.behind_ms()
    end_ms = muted_at_ms + scene.timings.fence_ms + SUCCESSOR_MS
    return [
        Part(0, end_ms, Partition(leader, Shape.NO_FETCH)),
        Part(muted_at_ms, end_ms, Partition(leader, Shape.NO_HEARTBEAT)),
    ]


def _write_parked(scene: Scene) -> list[Part]:
    """S21: writes with acks=all wait for followers in vain, their clients send them again, the followers come back."""
    leader = Role(RoleKind.LEADER, scene.partition())
    end_ms = max(scene.timings.shrink_ms, scene.timings.unanswered_ms) + alone_ms(scene)
    return [Part(0, end_ms, Partition(leader, Shape.FROM_BROKERS))]


def _reply_lost(scene: Scene) -> list[Part]:
    """S22: the leader takes writes whose answers never arrive, and their clients send them again."""
    end_ms = scene.timings.unanswered_ms + scene.between_ms(200, 700)
    return [Part(0, end_ms, Partition(Role(RoleKind.LEADER, scene.partition()), Shape.MUTE_TO_CLIENTS))]


#: The first makes acks=1 lose whenever it fits, so every schedule of the family begins with it.
STORIES: Final = (
    Story("zombie-leader", _zombie_leader, number="S04"),
    Story("last-in-sync-fenced", _last_in_sync_fenced),
    Story("fenced-while-lagging", _fenced_while_lagging),
    _around_one("follower-isolated", Shape.ISOLATE, RoleKind.FOLLOWER),
    _around_one("follower-without-leader", Shape.FROM_BROKERS, RoleKind.FOLLOWER),
    _around_one("leader-without-controller", Shape.FROM_CONTROLLER, RoleKind.LEADER),
    _around_one("leader-without-clients", Shape.FROM_CLIENTS, RoleKind.LEADER),
    _around_one("leader-deaf", Shape.DEAF, RoleKind.LEADER),
    _around_one("leader-mute", Shape.MUTE, RoleKind.LEADER),
    _around_one("halves", Shape.HALVES, RoleKind.BROKER),
    _around_one("bridge", Shape.BRIDGE, RoleKind.BROKER),
    _around_one("ring", Shape.RING, RoleKind.BROKER),
)

SCRIPTED: Final = (
    Story("write-parked", _write_parked, number="S21"),
    Story("reply-lost", _reply_lost, number="S22"),
)

"""Loss of power: the process ends and what was not yet on its disk is gone; and the stories that are made of it."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Final

from nemesis.cluster import Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.roles import RoleKind
from nemesis.stopping import APART_MS, everybody, last_in_sync, leader_ahead, two_overlapping
from nemesis.story import Part, Scene, Story


class PowerLoss(Fault, frozen=True, tag="powerloss"):
    """Take the power from the holders of ``role``: SIGKILL, and the page cache of their disks with it (rule 24)."""

    needs: ClassVar[tuple[Capability, ...]] = (Capability.POWER, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The machines to cut power to."""
        return aim_at_running(self.role, view)

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Cut the power."""
        return by_node(present(target.power).cut_power, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start again on what the disks hold."""
        return by_node(present(target.processes).restart, aim.nodes)


def _follower(scene: Scene) -> list[Part]:
    """S10: it fetches again what it lost."""
    return [Part(0, scene.lasting_ms(), PowerLoss(scene.role(RoleKind.FOLLOWER, scene.partition())))]


#: The first makes acks=all lose without flush.messages=1 whenever it fits (S09): the last in-sync replica forgets.
STORIES: Final = (
    Story("last-in-sync", partial(last_in_sync, stop=PowerLoss), number="S09"),
    Story("leader-ahead", partial(leader_ahead, stop=PowerLoss)),
    # Replication does not help, only what was flushed.
    Story("everybody", partial(everybody, stop=PowerLoss)),
    Story("two-overlapping", partial(two_overlapping, stop=PowerLoss)),
    Story("follower", _follower, number="S10"),
)

#: Played only where a plan asks for them.
SCRIPTED: Final = (Story("everybody-one-by-one", partial(everybody, stop=PowerLoss, apart_ms=APART_MS), number="S11"),)

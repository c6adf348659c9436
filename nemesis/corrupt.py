"""Damaged records: one byte of a log changes while its broker is down; and the stories that are made of it."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec.structs import replace

from nemesis.cluster import LOG_PARTS, Capability, ClusterView, Evidence, Target, present
from nemesis.faults import Aim, Fault, aim_at_running, by_node
from nemesis.kill import Kill
from nemesis.roles import Role, RoleKind, partition_of
from nemesis.stopping import last_in_sync, two_overlapping
from nemesis.story import Part, Scene, Story
from nemesis.wipe import REFETCH_MS


class CorruptRecord(Fault, frozen=True, tag="corruptrecord"):
    """End the processes of the holders of ``role`` at once and change one byte of a record in their logs.

    Started again at the end, they recover (rule 25): a log ends where its checksum is wrong for the first time.
    ``pick`` says how far into the log the record is, in parts of LOG_PARTS.
    """

    pick: int = 0
    needs: ClassVar[tuple[Capability, ...]] = (Capability.FILES, Capability.PROCESSES)
    stops_brokers: ClassVar[bool] = True
    #: An empty log has no record to damage; then this was a kill.
    shows: ClassVar[str] = "corrupted"

    def aim(self, view: ClusterView) -> Aim:
        """The machines with the bad disk block, and the log it is in."""
        return replace(aim_at_running(self.role, view), partition=partition_of(self.role, view))

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Kill, then change the byte."""

        def hit(node: int) -> Evidence:
            return {
                **present(target.processes).kill(node),
                **present(target.files).corrupt(node, aim.partition, self.pick),
            }

        return by_node(hit, aim.nodes)

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Start again; recovery finds the byte, or nobody does."""
        return by_node(present(target.processes).restart, aim.nodes)


def _corrupt(scene: Scene, role: Role) -> CorruptRecord:
    return CorruptRecord(role, scene.draw("record", LOG_PARTS))


def _last_in_sync(scene: Scene) -> list[Part]:
    """S34: the ISR shrinks to the leader, which ends its own log at the bad record and leads again."""
    return last_in_sync(scene, lambda role: _corrupt(scene, role))


def _two_overlapping(scene: Scene) -> list[Part]:
    return two_overlapping(scene, lambda role: _corrupt(scene, role))


def _follower_then_leader(scene: Scene) -> list[Part]:
    """S35: a follower cuts its log and fetches the rest again; then the leader dies."""
    partition, down_ms = scene.partition(), scene.lasting_ms()
    dies_at_ms = down_ms + scene.timings.fence_ms + scene.between_ms(0, REFETCH_MS)
    return [
        Part(0, down_ms, _corrupt(scene, scene.role(RoleKind.FOLLOWER, partition))),
        Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
    ]


def _one(name: str, kind: RoleKind) -> Story:
    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(), _corrupt(scene, scene.role(kind, scene.partition())))]

    return Story(name, parts)


#: The first makes acks=all lose unless there are eligible leader replicas: nobody else may lead.
STORIES: Final = (
    Story("last-in-sync", _last_in_sync, number="S34"),
    Story("follower-then-leader", _follower_then_leader, number="S35"),
    Story("two-overlapping", _two_overlapping),
    _one("leader", RoleKind.LEADER),
    _one("follower", RoleKind.FOLLOWER),
)

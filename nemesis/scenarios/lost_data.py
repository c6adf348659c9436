"""Disks that lose what was on them: all of it, or one record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nemesis.cluster import LOG_PARTS
from nemesis.faults import CorruptRecord, Kill, Partition, WipeDisk
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.scenarios.shapes import Strike, follower_then_leader, hit_one, last_in_sync, two_overlapping
from nemesis.topology import Shape

#: After this, a Java process has surely started and registered its disk with the controller.
START_MS: Final = 10_000


def _last_in_sync_restarted(scene: Scene) -> list[Part]:
    """S08, and the broker is started once more when it is back and nobody leads.

    A formatted disk has a new identity. Since 3.7 (KIP-858) Kafka elects no replica whose disk it does not know, and
    learns of the new one too late for this election; the next start makes the empty replica lead.
    """
    parts = last_in_sync(scene, WipeDisk)
    member = Role(RoleKind.ISR_MEMBER, parts[-1].fault.role.partition)
    again_at_ms = max(part.end_ms for part in parts) + START_MS
    return [*parts, Part(again_at_ms, again_at_ms + scene.between_ms(100, 300), Kill(member))]


def _all_in_sync(scene: Scene) -> list[Part]:
    """S25: one replica is out of sync, then all others lose their disks: more copies than min.insync.replicas - 1."""
    partition = scene.partition()
    away = scene.role(RoleKind.FOLLOWER, partition)
    emptied_at_ms = scene.timings.shrink_ms + scene.between_ms(300, 600)
    end_ms = emptied_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    emptied = [
        Part(emptied_at_ms, end_ms, WipeDisk(Role(RoleKind.ISR_MEMBER, partition, pick=member))) for member in range(2)
    ]
    return [Part(0, end_ms, Partition(away, Shape.ISOLATE)), *emptied]


def _faster_than_detection(scene: Scene) -> list[Part]:
    """S36 with an empty disk: an in-sync replica is back before its session ends, then the leader dies."""
    partition, down_ms = scene.partition(), scene.between_ms(100, 300)
    dies_at_ms = down_ms + scene.between_ms(100, 300)
    return [
        Part(0, down_ms, WipeDisk(scene.role(RoleKind.FOLLOWER, partition))),
        Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
    ]


#: The first makes acks=all lose whatever is flushed, unless there are eligible leader replicas (KAFKA-15495).
WIPE: Final = Family(
    "wipe",
    (
        Story("last-in-sync", partial(last_in_sync, strike=WipeDisk), number="S08"),
        Story("all-in-sync", _all_in_sync, number="S25"),
        Story("two-overlapping", partial(two_overlapping, strike=WipeDisk)),
        Story("follower-then-leader", partial(follower_then_leader, strike=WipeDisk)),
        Story("faster-than-detection", _faster_than_detection, number="S36"),
        Story("leader", partial(hit_one, strike=WipeDisk, kind=RoleKind.LEADER)),
        Story("follower", partial(hit_one, strike=WipeDisk, kind=RoleKind.FOLLOWER)),
    ),
    scripted=(Story("last-in-sync-restarted", _last_in_sync_restarted),),
)


def _corrupt(name: str, shape: Callable[[Scene, Strike], list[Part]], number: str = "") -> Story:
    """A shared script in which a record is damaged, which one is drawn."""

    def parts(scene: Scene) -> list[Part]:
        return shape(scene, lambda role: CorruptRecord(role, scene.draw("record", LOG_PARTS)))

    return Story(name, parts, number)


#: The first makes acks=all lose unless there are eligible leader replicas: the ISR shrinks to the leader, which ends
#: its own log at the bad record and leads again, and nobody else may.
CORRUPT: Final = Family(
    "corrupt",
    (
        _corrupt("last-in-sync", last_in_sync, number="S34"),
        _corrupt("follower-then-leader", follower_then_leader, number="S35"),
        _corrupt("two-overlapping", two_overlapping),
        _corrupt("leader", partial(hit_one, kind=RoleKind.LEADER)),
        _corrupt("follower", partial(hit_one, kind=RoleKind.FOLLOWER)),
    ),
)

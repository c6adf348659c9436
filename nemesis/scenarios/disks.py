"""Disks without room, disks without speed, and disks that lose what was on them: all of it, or one record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from nemesis.disk_parts import LOG_PARTS
from nemesis.faults import (
    CorruptRecord,
    FailDirectory,
    FullDisk,
    Kill,
    LyingDisk,
    Partition,
    PowerLoss,
    SlowDisk,
    WipeDisk,
)
from nemesis.roles import Role, RoleKind
from nemesis.scenarios import shared
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape


def _slow_leader_dies(scene: Scene) -> list[Part]:
    """The leader answers late, and is killed with writes under way."""
    leader = Role(RoleKind.LEADER, scene.partition())
    dies_at_ms = scene.lasting_ms()
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [Part(0, dies_at_ms, SlowDisk(leader)), Part(dies_at_ms, end_ms, Kill(leader))]


def _slow_followers_leader_dies(scene: Scene) -> list[Part]:
    """Followers fall behind and out of the ISR while the leader goes on, then it dies."""
    partition = scene.partition()
    dies_at_ms = scene.timings.shrink_ms + scene.between_ms(200, 600)
    end_ms = dies_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    return [
        Part(0, dies_at_ms, SlowDisk(Role(RoleKind.FOLLOWERS, partition))),
        Part(dies_at_ms, end_ms, Kill(Role(RoleKind.LEADER, partition))),
    ]


#: The first makes acks=1 lose where a broker ends over a full disk.
FULL_DISK: Final = Family(
    "full-disk",
    (
        *shared.silent(FullDisk),
        shared.two_overlapping(FullDisk),
        shared.hit_one("random-broker", FullDisk, RoleKind.BROKER),
    ),
    about="A disk has no room, and later has room again.",
)

#: The first makes acks=1 lose where followers flush every record.
SLOW_DISK: Final = Family(
    "slow-disk",
    (
        Scenario("slow-followers-leader-dies", _slow_followers_leader_dies),
        Scenario("slow-leader-dies", _slow_leader_dies),
        shared.hit_one("leader", SlowDisk, RoleKind.LEADER, at_least_ms=lambda timings: timings.shrink_ms),
        shared.hit_one("follower", SlowDisk, RoleKind.FOLLOWER, at_least_ms=lambda timings: timings.shrink_ms),
    ),
    about="A disk does twenty writes a second.",
)


#: The time for which a disk lies before its power goes: writes are acknowledged meanwhile.
LIES_MS: Final = 500


def _lying(scenario: Scenario) -> Scenario:
    """A scenario of losses of power on disks that lie: a node that loses power has such a disk before, and keeps it."""

    def parts(scene: Scene) -> list[Part]:
        later = [Part(part.begin_ms + LIES_MS, part.end_ms + LIES_MS, part.fault) for part in scenario.parts(scene)]
        powerless = [part for part in later if isinstance(part.fault, PowerLoss)]
        return [*(Part(0, part.end_ms, LyingDisk(part.fault.role)) for part in powerless), *later]

    return replace(scenario, parts=parts)


#: The first makes acks=all with flush.messages=1 lose unless there are eligible leader replicas.
LYING_DISK: Final = Family(
    "lying-disk",
    (
        _lying(shared.last_in_sync(PowerLoss)),
        _lying(shared.hit_one("follower", PowerLoss, RoleKind.FOLLOWER)),
        _lying(shared.everybody("everybody", PowerLoss)),
    ),
    on_request=(_lying(shared.everybody("everybody-one-by-one", PowerLoss, "S33", apart_ms=shared.APART_MS)),),
    about="As `power`, on disks that acknowledge flushes (fsync) and do not do them.",
)

#: After this, a Java process has surely started and registered its disk with the controller.
START_MS: Final = 10_000


def _last_in_sync_restarted(scene: Scene) -> list[Part]:
    """S08, and the broker is started once more when it is back and there is no leader.

    A formatted disk has a new identity. Since 3.7 (KIP-858) Kafka elects no replica whose disk it does not know, and
    learns of the new one too late for this election; the next start makes the empty replica lead.
    """
    parts = shared.last_in_sync(WipeDisk).parts(scene)
    member = Role(RoleKind.ISR_MEMBER, parts[-1].fault.role.partition)
    again_at_ms = max(part.end_ms for part in parts) + START_MS
    return [*parts, Part(again_at_ms, again_at_ms + scene.between_ms(100, 300), Kill(member))]


def _all_in_sync(scene: Scene) -> list[Part]:
    """S25: one replica is out of sync, then all others lose their disks: more copies than min.insync.replicas - 1."""
    partition = scene.partition()
    away = scene.role(RoleKind.FOLLOWER, partition)
    # Some writes after the third replica is surely out of the ISR: only the other two have these.
    emptied_at_ms = scene.timings.shrink_ms + scene.between_ms(300, 600)
    end_ms = emptied_at_ms + scene.lasting_ms(scene.timings.fence_ms)
    emptied = [
        Part(emptied_at_ms, end_ms, WipeDisk(Role(RoleKind.ISR_MEMBER, partition, pick=member))) for member in range(2)
    ]
    return [Part(0, end_ms, Partition(away, Shape.ISOLATE)), *emptied]


def _faster_than_detection(scene: Scene) -> list[Part]:
    """S36 with an empty disk: an in-sync replica is back before its session ends, then the leader dies."""
    # Shorter than a session: the controller goes on counting the empty replica as in sync.
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
        shared.last_in_sync(WipeDisk, "S08"),
        Scenario("all-in-sync", _all_in_sync, number="S25"),
        shared.two_overlapping(WipeDisk),
        shared.follower_then_leader(WipeDisk),
        Scenario("faster-than-detection", _faster_than_detection, number="S36"),
        shared.hit_one("leader", WipeDisk, RoleKind.LEADER),
        shared.hit_one("follower", WipeDisk, RoleKind.FOLLOWER),
    ),
    on_request=(Scenario("last-in-sync-restarted", _last_in_sync_restarted),),
    about="Brokers are killed, and return with empty disks.",
)


#: The first makes acks=all lose unless there are eligible leader replicas: S08 by one disk of several.
DIRECTORY: Final = Family(
    "log-directory",
    (
        shared.last_in_sync(FailDirectory),
        shared.hit_one("leader", FailDirectory, RoleKind.LEADER),
        shared.hit_one("follower", FailDirectory, RoleKind.FOLLOWER),
        shared.follower_then_leader(FailDirectory),
    ),
    about=(
        "The log directory of a log partition fails, with all that is in it. At the end an empty one takes its place, "
        "and the broker is started again. A broker whose only directory fails ends."
    ),
)


def _corrupt(shape: Callable[[shared.Strike], Scenario]) -> Scenario:
    """A shared scenario in which a record is damaged, which one is drawn."""

    def parts(scene: Scene) -> list[Part]:
        return shape(lambda role: CorruptRecord(role, scene.draw("record", LOG_PARTS))).parts(scene)

    return replace(shape(CorruptRecord), parts=parts)


#: The first makes acks=all lose unless there are eligible leader replicas: the ISR shrinks to the leader, which ends
#: its own log at the bad record and leads again, and no other broker may.
CORRUPT: Final = Family(
    "corrupt",
    (
        _corrupt(partial(shared.last_in_sync, number="S34")),
        _corrupt(partial(shared.follower_then_leader, number="S35")),
        _corrupt(shared.two_overlapping),
        _corrupt(lambda strike: shared.hit_one("leader", strike, RoleKind.LEADER)),
        _corrupt(lambda strike: shared.hit_one("follower", strike, RoleKind.FOLLOWER)),
    ),
    about="Brokers are killed, and one byte of a record in their logs is changed.",
)

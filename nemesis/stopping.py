"""Stories in which a broker stops, by death or by frost: what matters is how far its followers are when it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nemesis.cut import SUCCESSOR_MS, Partition, alone_ms
from nemesis.faults import Fault
from nemesis.roles import Role, RoleKind
from nemesis.story import Part, Scene
from nemesis.topology import Shape

#: Makes the fault that stops the holder of a role.
Stop = Callable[[Role], Fault]

#: Replication comes back only after the leader stopped, or followers could catch up in between.
OVERLAP_MS: Final = 100
#: Between returns, where all stopped at once: some are back, and take writes, while others are still away.
APART_MS: Final = 3_000


def leader_ahead(scene: Scene, stop: Stop) -> list[Part]:
    """S01: followers lag a little, still in the ISR, when the leader stops; it returns after the next was elected."""
    return leader_stops(scene, stop, scene.behind_ms())


def last_in_sync(scene: Scene, stop: Stop) -> list[Part]:
    """S06: the ISR shrinks to the leader, writes go on, then it stops: wait for it, or elect uncleanly."""
    return leader_stops(scene, stop, scene.timings.shrink_ms + alone_ms(scene))


def leader_stops(scene: Scene, stop: Stop, stops_at_ms: int, overlap_ms: int = OVERLAP_MS) -> list[Part]:
    """The leader stops ``stops_at_ms`` after its replication did, for long enough that it loses its session.

    ``overlap_ms`` after it began to stop, nothing keeps its followers from it any more.
    """
    leader = Role(RoleKind.LEADER, scene.partition())
    returns_at_ms = stops_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [
        Part(0, stops_at_ms + overlap_ms, Partition(leader, Shape.FROM_BROKERS)),
        Part(stops_at_ms, returns_at_ms, stop(leader)),
    ]


def everybody(scene: Scene, stop: Stop, apart_ms: int = 0) -> list[Part]:
    """All brokers stop at once: one rack, one cable (S11, S12). They return ``apart_ms`` after each other."""
    end_ms = scene.lasting_ms()
    return [
        Part(0, end_ms + apart_ms * broker, stop(Role(RoleKind.NAMED, pick=broker))) for broker in range(scene.brokers)
    ]


def two_overlapping(scene: Scene, stop: Stop) -> list[Part]:
    """The leader stops, and a follower, maybe its successor, before it is back."""
    partition = scene.partition()
    first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms()
    overlap_at_ms = first_ms * 2 // 3
    return [
        Part(0, first_ms, stop(Role(RoleKind.LEADER, partition))),
        Part(overlap_at_ms, overlap_at_ms + second_ms, stop(scene.role(RoleKind.FOLLOWER, partition))),
    ]

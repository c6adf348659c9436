"""Scripts that several families share: who is hit, and how far the followers are when it happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nemesis.faults import Fault, Kill, Partition
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scene, Story
from nemesis.topology import Shape

#: Makes a fault of those who hold a role.
Strike = Callable[[Role], Fault]

#: For how long a successor leads before the old leader is back.
SUCCESSOR_MS: Final = 300
#: Replication comes back only after the leader stopped, or followers could catch up in between.
OVERLAP_MS: Final = 100
#: For how long a returned follower may fetch again what it lost, before the next fault.
REFETCH_MS: Final = 500
#: Between returns, where all stopped at once: some are back, and take writes, while others are still away.
APART_MS: Final = 3_000


def alone_ms(scene: Scene) -> int:
    """For how long the leader is the only one in sync, so that it acknowledges writes alone."""
    return scene.between_ms(400, 800)


def hit_one(scene: Scene, strike: Strike, kind: RoleKind, at_least_ms: int = 0) -> list[Part]:
    """One holder of a role, drawn among several, is hit for as long as the plan wants and ``at_least_ms``."""
    return [Part(0, scene.lasting_ms(at_least_ms), strike(scene.role(kind, scene.partition())))]


def hit_all(scene: Scene, strike: Strike, kind: RoleKind, at_least_ms: int = 0) -> list[Part]:
    """All holders of a role are hit, for as long as the plan wants and ``at_least_ms``."""
    return [Part(0, scene.lasting_ms(at_least_ms), strike(Role(kind, scene.partition())))]


def leader_ahead(scene: Scene, strike: Strike) -> list[Part]:
    """S01: followers lag a little, still in the ISR, when the leader stops; it returns after the next was elected."""
    return leader_stops(scene, strike, scene.behind_ms())


def last_in_sync(scene: Scene, strike: Strike) -> list[Part]:
    """S06: the ISR shrinks to the leader, writes go on, then it stops: wait for it, or elect uncleanly."""
    return leader_stops(scene, strike, scene.timings.shrink_ms + alone_ms(scene))


def leader_stops(scene: Scene, strike: Strike, stops_at_ms: int, overlap_ms: int = OVERLAP_MS) -> list[Part]:
    """The leader stops ``stops_at_ms`` after its replication did, for long enough that it loses its session.

    ``overlap_ms`` after it began to stop, nothing keeps its followers from it any more.
    """
    who = Role(RoleKind.LEADER, scene.partition())
    returns_at_ms = stops_at_ms + scene.lasting_ms(scene.timings.fence_ms + SUCCESSOR_MS)
    return [
        Part(0, stops_at_ms + overlap_ms, Partition(who, Shape.FROM_BROKERS)),
        Part(stops_at_ms, returns_at_ms, strike(who)),
    ]


def everybody(scene: Scene, strike: Strike, apart_ms: int = 0) -> list[Part]:
    """All brokers stop at once: one rack, one cable (S11, S12). They return ``apart_ms`` after each other."""
    end_ms = scene.lasting_ms()
    return [
        Part(0, end_ms + apart_ms * broker, strike(Role(RoleKind.NAMED, pick=broker)))
        for broker in range(scene.brokers)
    ]


def two_overlapping(scene: Scene, strike: Strike) -> list[Part]:
    """The leader stops, and a follower, maybe its successor, before it is back."""
    partition = scene.partition()
    first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms()
    overlap_at_ms = first_ms * 2 // 3
    return [
        Part(0, first_ms, strike(Role(RoleKind.LEADER, partition))),
        Part(overlap_at_ms, overlap_at_ms + second_ms, strike(scene.role(RoleKind.FOLLOWER, partition))),
    ]


def in_turn(scene: Scene, strike: Strike, *, first: int, down_ms: int, gap_ms: int) -> list[Part]:
    """Every broker stops for ``down_ms``, from ``first`` on, ``gap_ms`` after the one before it is back."""
    pace_ms = down_ms + gap_ms
    turns = [
        (turn * pace_ms, Role(RoleKind.NAMED, pick=(first + turn) % scene.brokers)) for turn in range(scene.brokers)
    ]
    return [Part(begin_ms, begin_ms + down_ms, strike(who)) for begin_ms, who in turns]


def follower_then_leader(scene: Scene, strike: Strike) -> list[Part]:
    """A follower is hit, returns and fetches again what it lost; then the leader dies."""
    partition, down_ms = scene.partition(), scene.lasting_ms()
    dies_at_ms = down_ms + scene.timings.fence_ms + scene.between_ms(0, REFETCH_MS)
    return [
        Part(0, down_ms, strike(scene.role(RoleKind.FOLLOWER, partition))),
        Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
    ]


def family_of(fault: type[Fault]) -> Family:
    """The family of a fault that needs no script: each story hits one of its roles for a while."""
    stories = (Story(kind.value, partial(hit_one, strike=fault, kind=kind)) for kind in fault.hits)
    return Family(fault.family, tuple(stories))

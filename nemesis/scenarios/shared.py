"""Scenarios that several families share, each for a fault of the family: who is hit, and how far followers are then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nemesis.faults import Fault, Kill, Partition
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene, Timings
from nemesis.topology import Shape

#: Makes a fault of those who hold a role.
Strike = Callable[[Role], Fault]
#: A duration in milliseconds that follows from the settings under test.
Lasting = Callable[[Timings], int]

#: The time for which a successor leads before the old leader is back.
SUCCESSOR_MS: Final = 300
#: Replication comes back only after the leader stopped, or followers could catch up in between.
OVERLAP_MS: Final = 100
#: The time in which a returned follower may fetch again what it lost, before the next fault.
REFETCH_MS: Final = 500
#: The reason for a cut at the begin of a scenario: only the leader has the records that it acknowledges meanwhile.
LAGGING: Final = "this lets followers fall a little behind, still in sync, before the leader is hit"
OUT_OF_SYNC: Final = "this drives followers out of sync, so that the leader alone has the writes when it is hit"
#: Between returns, where all stopped at once: some are back, and take writes, while others are still away.
APART_MS: Final = 3_000


def alone_ms(scene: Scene) -> int:
    """The time for which the leader is the only one in sync, so that it acknowledges writes alone."""
    return scene.between_ms(400, 800)


def alone_at_ms(scene: Scene) -> int:
    """The moment at which the leader, cut off from its followers at 0, has acknowledged writes alone."""
    return scene.timings.shrink_ms + alone_ms(scene)


def hit_one(
    name: str, strike: Strike, kind: RoleKind, number: str = "", at_least_ms: Lasting = lambda _: 0
) -> Scenario:
    """One holder of a role, drawn among several, is hit for as long as the plan wants and ``at_least_ms``."""

    def parts(scene: Scene) -> list[Part]:
        end_ms = scene.lasting_ms(at_least_ms(scene.timings))
        return [Part(0, end_ms, strike(scene.role(kind, scene.partition())))]

    return Scenario(name, parts, number)


def hit_all(
    name: str, strike: Strike, kind: RoleKind, number: str = "", at_least_ms: Lasting = lambda _: 0
) -> Scenario:
    """All holders of a role are hit, for as long as the plan wants and ``at_least_ms``."""

    def parts(scene: Scene) -> list[Part]:
        return [Part(0, scene.lasting_ms(at_least_ms(scene.timings)), strike(Role(kind, scene.partition())))]

    return Scenario(name, parts, number)


def leader_ahead(strike: Strike, number: str = "") -> Scenario:
    """S01: followers lag a little, still in the ISR, when the leader stops; it returns after the next was elected."""
    return Scenario("leader-ahead", lambda scene: leader_stops(scene, strike, scene.behind_ms()), number, LAGGING)


def last_in_sync(strike: Strike, number: str = "") -> Scenario:
    """S06: the ISR shrinks to the leader, writes go on, then it stops: wait for it, or elect uncleanly."""
    return Scenario("last-in-sync", lambda scene: leader_stops(scene, strike, alone_at_ms(scene)), number, OUT_OF_SYNC)


def silent(strike: Strike) -> tuple[Scenario, ...]:
    """Scenarios of brokers that do nothing for a while, with their sockets open.

    A leader past its session comes back as a zombie, with the requests that its sockets kept for it; a follower past
    the lag time is out of the ISR.
    """
    return (
        leader_ahead(strike),
        last_in_sync(strike),
        hit_all("leader-past-session", strike, RoleKind.LEADER, at_least_ms=lambda timings: timings.fence_ms),
        hit_one("follower-past-lag", strike, RoleKind.FOLLOWER, at_least_ms=lambda timings: timings.shrink_ms),
    )


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


def everybody(name: str, strike: Strike, number: str = "", apart_ms: int = 0) -> Scenario:
    """All brokers stop at once: one rack, one cable (S11, S12). They return ``apart_ms`` after each other."""

    def parts(scene: Scene) -> list[Part]:
        end_ms = scene.lasting_ms()
        return [
            Part(0, end_ms + apart_ms * broker, strike(Role(RoleKind.NAMED, pick=broker)))
            for broker in range(scene.brokers)
        ]

    return Scenario(name, parts, number)


def two_overlapping(strike: Strike) -> Scenario:
    """The leader stops, and a follower, maybe its successor, before it is back."""

    def parts(scene: Scene) -> list[Part]:
        partition = scene.partition()
        first_ms, second_ms = scene.lasting_ms(), scene.lasting_ms()
        overlap_at_ms = first_ms * 2 // 3
        return [
            Part(0, first_ms, strike(Role(RoleKind.LEADER, partition))),
            Part(overlap_at_ms, overlap_at_ms + second_ms, strike(scene.role(RoleKind.FOLLOWER, partition))),
        ]

    return Scenario("two-overlapping", parts)


def in_turn(scene: Scene, strike: Strike, *, first: int, down_ms: int, gap_ms: int) -> list[Part]:
    """Every broker stops for ``down_ms``, from ``first`` on, ``gap_ms`` after the one before it is back."""
    pace_ms = down_ms + gap_ms
    turns = [
        (turn * pace_ms, Role(RoleKind.NAMED, pick=(first + turn) % scene.brokers)) for turn in range(scene.brokers)
    ]
    return [Part(begin_ms, begin_ms + down_ms, strike(who)) for begin_ms, who in turns]


def follower_then_leader(strike: Strike, number: str = "") -> Scenario:
    """A follower is hit, returns and fetches again what it lost; then the leader dies."""

    def parts(scene: Scene) -> list[Part]:
        partition, down_ms = scene.partition(), scene.lasting_ms()
        dies_at_ms = down_ms + scene.timings.fence_ms + scene.between_ms(0, REFETCH_MS)
        return [
            Part(0, down_ms, strike(scene.role(RoleKind.FOLLOWER, partition))),
            Part(dies_at_ms, dies_at_ms + scene.lasting_ms(), Kill(Role(RoleKind.LEADER, partition))),
        ]

    return Scenario("follower-then-leader", parts, number)


def family_of(fault: type[Fault]) -> Family:
    """The family of a fault that needs no script: each scenario hits one of its roles for a while."""
    return Family(fault.family, tuple(hit_one(kind.value, fault, kind) for kind in fault.hits))

"""Absences of brokers that are longer than delete.retention.ms, with their return as a leader."""

from __future__ import annotations

from typing import Final

from nemesis.faults import Away, AwayWiped, MoveLeader
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene

#: A broker that was away returns to the in-sync replicas within this time, on a busy machine too.
RETURN_MS: Final = 8_000
#: Beyond the retention: the leader's cleaner needs two rounds, the first for the time limit and the second to remove.
ROUNDS_MS: Final = 6_000
#: No run waits longer for a retention to be over.
RETENTION_MS_MAX: Final = 20_000
#: A broker that leads as planned stays the leader for this time.
LEADS_MS: Final = 1_000


def _of(fault: type[Away]) -> tuple[Scenario, ...]:
    def returns(scene: Scene) -> list[Part]:
        away_ms = scene.lasting_ms(min(scene.timings.retention_ms, RETENTION_MS_MAX) + ROUNDS_MS)
        return [Part(0, away_ms, fault(Role(RoleKind.NAMED, pick=scene.draw("broker", scene.brokers))))]

    def leads(scene: Scene) -> list[Part]:
        (away,) = returns(scene)
        begin_ms = away.end_ms + RETURN_MS
        moves = [
            MoveLeader(Role(RoleKind.NAMED, partition, away.fault.role.pick)) for partition in range(scene.partitions)
        ]
        return [away, *(Part(begin_ms, begin_ms + LEADS_MS, move) for move in moves)]

    return (Scenario("returns-and-leads", leads), Scenario("returns", returns))


AWAY: Final = Family(
    "away",
    _of(Away),
    about="A broker is stopped in order, is away for longer than delete.retention.ms, and returns with its disk.",
)
AWAY_WIPED: Final = Family(
    "away-wiped",
    _of(AwayWiped),
    about="A broker is stopped in order, is away for longer than delete.retention.ms, and returns with an empty disk.",
)

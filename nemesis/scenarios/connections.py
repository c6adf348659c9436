"""Connections that are held for longer than a client waits, so that a request arrives after its repetition."""

from __future__ import annotations

from typing import Final

from nemesis.faults import HoldConnections
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene
from nemesis.topology import Shape

#: The time for which a client works on another connection before the first request arrives.
REPEATED_MS: Final = (500, 2_500)


def _late(name: str, kind: RoleKind, shape: Shape) -> Scenario:
    """A request to the holder of a role arrives when it was long repeated on another connection."""

    def parts(scene: Scene) -> list[Part]:
        who = scene.role(kind, scene.partition())
        lasting_ms = scene.timings.unanswered_ms + scene.between_ms(*REPEATED_MS)
        return [Part(0, lasting_ms, HoldConnections(who, shape))]

    return Scenario(name, parts)


def _marker_late(scene: Scene) -> list[Part]:
    """Requests of a transaction coordinator to other brokers arrive late, markers above all."""
    who: Role = scene.role(RoleKind.TRANSACTION_COORDINATOR)
    return [Part(0, scene.lasting_ms(scene.timings.lag_ms * 2), HoldConnections(who, Shape.FROM_BROKERS))]


CONNECTIONS: Final = Family(
    "connection",
    (
        _late("write-late", RoleKind.LEADER, Shape.FROM_CLIENTS),
        _late("end-late", RoleKind.TRANSACTION_COORDINATOR, Shape.FROM_CLIENTS),
        _late("commit-late", RoleKind.COORDINATOR, Shape.FROM_CLIENTS),
        Scenario("marker-late", _marker_late),
        _late("fetch-late", RoleKind.LEADER, Shape.FROM_BROKERS),
    ),
    about="Open connections are held, and what was sent on them arrives late; new connections work.",
)

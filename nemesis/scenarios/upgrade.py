"""Rolling upgrades, beside whatever else strikes: every node in turn, each once the one before is in sync again."""

from __future__ import annotations

from typing import Final

from nemesis.faults import Upgrade
from nemesis.roles import Role, RoleKind
from nemesis.scenarios.scene import Family, Part, Scenario, Scene


def _one_by_one(scene: Scene) -> list[Part]:
    """The brokers in their order; when each begins and ends, the cluster decides."""
    return [Part(0, 0, Upgrade(Role(RoleKind.NAMED, pick=broker))) for broker in range(scene.brokers)]


UPGRADE: Final = Family(
    "upgrade",
    (Scenario("one-by-one", _one_by_one),),
    about=(
        "Every node is stopped in order and started again with another release (`upgrade_to`), other settings "
        "(`change`), or as it was: controllers first, one at a time, each once every replica is in sync again. Other "
        "families strike meanwhile. At the end the features are finalized."
    ),
    beside=True,
)

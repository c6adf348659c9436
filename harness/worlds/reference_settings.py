"""The settings of a run as the reference broker's core wants them, in virtual time as on sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.errors import PlanError
from harness.reference.core.types import BrokerConfig, TopicConfig
from nemesis.cluster import Capability
from workloads import Settings

#: What the reference broker lacks wherever it runs.
LACKS: Final = {
    Capability.REASSIGNMENT: "the reference broker's controller never changes who replicates a log partition"
}


#: Planted bugs that would change nothing in a world, by the name of the world, and why.
WITHOUT_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "simulated": {
        "commit-offsets-after-append": "is about consumer groups, and clients in virtual time are in none; use the "
        'world "processes"'
    },
    "processes": dict.fromkeys(
        ("skip-bad-batch", "checkpoint-log-end"), 'is in the log that lives in memory; use the world "simulated"'
    ),
}


def refuse_what_it_lacks(settings: Settings, world: str = "") -> None:
    """Refuse settings that the reference broker cannot follow, or that would change nothing in ``world``.

    Raises:
        PlanError: with the setting to change.
    """
    if settings.eligible_leader_replicas and not (settings.strict_min_isr and settings.broker_epochs):
        raise PlanError(
            "eligible.leader.replicas=true needs strict.min.isr=true and broker.epochs=true (KIP-966); leave "
            "both out, which makes them true"
        )
    bug = settings.planted_bug
    if why := WITHOUT_EFFECT.get(world, {}).get(bug):
        raise PlanError(f"planted.bug={bug} {why}")


def broker_config(settings: Settings) -> BrokerConfig:
    """The settings of a broker, and the rules of replication."""
    return BrokerConfig(**_common(settings, BrokerConfig.__struct_fields__))


def topic_config(settings: Settings) -> TopicConfig:
    """The settings of a topic."""
    return TopicConfig(**_common(settings, TopicConfig.__struct_fields__))


def _common(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """The core's records name their fields as ``Settings`` does; what only they have keeps its default."""
    return {name: getattr(settings, name) for name in names if hasattr(settings, name)}

"""Turns the settings of a run into those of the reference broker's core, in virtual time and on sockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness.broker.core.types import NONE, BrokerConfig, TopicConfig
from harness.ground.errors import PlanError
from nemesis.cluster import Capability
from workloads import Settings

#: The capabilities that the reference broker lacks in every world.
LACKS: Final = {
    Capability.REASSIGNMENT: "the reference broker's controller never changes the replicas of a log partition",
    Capability.SUCCESSION: "the reference broker has one release; only nodes of Apache Kafka are upgraded",
}
#: Planted bugs that would change nothing in a world, by the name of the world, and why.
WITHOUT_EFFECT: Final[Mapping[str, Mapping[str, str]]] = {
    "processes": dict.fromkeys(
        ("skip-bad-batch", "checkpoint-log-end"), 'changes only the log in memory; use the world "simulated"'
    )
    | {"assign-unrevoked": 'is of KIP-848, which brokers over sockets do not have; use the world "simulated"'},
}


def refuse_what_it_lacks(settings: Settings, world: str = "") -> None:
    """Refuse settings that the reference broker cannot follow, or that would change nothing in ``world``.

    Raises:
        PlanError: a setting has to be changed; the text names it.
    """
    if settings.eligible_leader_replicas and not (settings.strict_min_isr and settings.broker_epochs):
        raise PlanError(
            "eligible.leader.replicas=true needs strict.min.isr=true and broker.epochs=true (KIP-966); leave "
            "both out, which makes them true"
        )
    if world == "processes" and settings.expires:
        raise PlanError(
            f"retention.ms={settings.retention_ms} drops records in virtual time and on Apache Kafka only; leave it "
            "out, or [worlds.processes]"
        )
    bug = settings.planted_bug
    if why := WITHOUT_EFFECT.get(world, {}).get(bug):
        raise PlanError(f"planted.bug={bug} {why}")


def broker_config(settings: Settings) -> BrokerConfig:
    """The settings of a broker, and the rules of replication."""
    return BrokerConfig(**_common(settings, BrokerConfig.__struct_fields__))


def topic_config(settings: Settings) -> TopicConfig:
    """The settings of a topic."""
    chosen = _common(settings, TopicConfig.__struct_fields__)
    return TopicConfig(**{**chosen, "retention_ms": settings.retention_ms if settings.expires else NONE})


def _common(settings: Settings, names: Sequence[str]) -> dict[str, Any]:
    """The fields that ``Settings`` has under the same name; the core's other fields keep their defaults."""
    return {name: getattr(settings, name) for name in names if hasattr(settings, name)}

"""Tells, before a run starts, which faults its world, its host or this machine cannot do.

A run makes its target from the same facts: each reason is written in the part that lacks the capability.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.ground.errors import HostError
from harness.plan import AnyWorld, Existing, Kafka, Loopback, Namespaces, Processes, RealTime, RunSpec, Simulated
from harness.worlds.hosts import probe_namespaces
from nemesis.cluster import Capability
from nemesis.limits import Limit, limits
from nemesis.scenarios import needs_of

# ruff: noqa: PLC0415 - each world is loaded when it is needed: the clients of real ones take a third of a second


def out_of_reach(spec: RunSpec) -> Mapping[Capability, str]:
    """The capabilities that the nodes of the run ``spec`` lack on any machine, and why."""
    match spec.world:
        case Simulated():
            from harness.worlds.simulated import OUT_OF_REACH

            return OUT_OF_REACH
        case Processes():
            from harness.worlds.processes import processes_lacks

            return processes_lacks(spec)
        case Kafka():
            from harness.worlds.kafka import kafka_lacks

            return kafka_lacks(spec)
        case Existing():
            from harness.worlds.existing import existing_lacks

            return existing_lacks(spec)


def limits_of(spec: RunSpec) -> list[Limit]:
    """The limits of the families of ``spec`` in its world and host; a story (harness.runs.stories) has none."""
    return [] if spec.story else list(limits(spec.faults, spec.schedule, out_of_reach(spec)))


def possible_in_namespaces(spec: RunSpec, family: str) -> bool:
    """True if ``family`` is impossible only because of the host: with namespaces the same world could do it."""
    world = spec.world
    if not isinstance(world, Processes | Kafka) or not isinstance(world.host, Loopback):
        return False
    moved = msgspec.structs.replace(spec, world=msgspec.structs.replace(world, host=Namespaces()))
    return not any(limit.nothing_left for limit in limits_of(moved) if limit.family == family)


def limits_here(spec: RunSpec) -> list[Limit]:
    """The limits of the families of ``spec`` that come from this machine, if the run's nodes are on it."""
    world = spec.world
    if spec.story or not isinstance(world, Processes | Kafka) or not isinstance(world.host, Loopback | Namespaces):
        return []
    from harness.worlds.real import machine_lacks

    never = out_of_reach(spec)
    needs = frozenset[Capability]().union(*map(needs_of, spec.faults.families)) - never.keys()
    return list(limits(spec.faults, spec.schedule, machine_lacks(needs)))


def host_lacks(world: AnyWorld) -> str:
    """The reason why this machine cannot be the host of ``world``, and what to do; "" if it can."""
    if not isinstance(world, Processes | Kafka) or not isinstance(world.host, Namespaces):
        return ""
    try:
        probe_namespaces()
    except HostError as error:
        return str(error)
    return ""


def foreign_to(world: Kafka, chosen: Mapping[str, object]) -> str:
    """The first of these settings, as a sentence, that the release of Kafka in ``world`` does not work by; "" if none.

    Raises:
        PlanError: there is no such release.
    """
    from harness.worlds.kafka import foreign_rule, release_of

    version = release_of(world)
    rule = foreign_rule(chosen, version)
    return f"{rule}, and Apache Kafka {version} does not work so" if rule else ""


def release_lacks(spec: RunSpec) -> str:
    """The reason why a release of Kafka in ``spec`` cannot be started here, and what to do; "" if it can.

    Raises:
        PlanError: it cannot do what the settings ask for, on any machine, or its Java client is too old.
    """
    world = spec.world
    if not isinstance(world, Kafka) and not (isinstance(world, RealTime) and world.client == "java"):
        return ""
    from harness.worlds.kafka import client_release, release_for, successor_for, with_one_library

    try:
        if isinstance(world, Kafka):
            successor_for(world, release_for(world, spec.chosen(), spec.workload))
        for alone in with_one_library(world):
            if alone.client == "java":
                client_release(alone)
    except HostError as error:
        return str(error)
    return ""

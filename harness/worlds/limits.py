"""What a run's world and its host can never do, and what this machine lacks for it: asked before anything is started.

The facts are those by which a run makes its target: what is lacking, and why, is written where it is lacking.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from harness.errors import HostError
from harness.hosts import probe_namespaces
from harness.plan import AnyWorld, Existing, Kafka, Loopback, Namespaces, Processes, RunSpec, Simulated
from nemesis.cluster import Capability
from nemesis.limits import Limit, limits
from nemesis.scenarios import needs_of

# ruff: noqa: PLC0415 - each world is loaded where it is wanted: the clients of real ones take a third of a second


def out_of_reach(spec: RunSpec) -> Mapping[Capability, str]:
    """What is not done to the nodes of the run ``spec``, on whichever machine, and why."""
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
            from harness.worlds.existing import OUT_OF_REACH

            return OUT_OF_REACH


def limits_of(spec: RunSpec) -> list[Limit]:
    """What of the families of ``spec`` its world and host can never do, but for scripted stories (harness.stories)."""
    return [] if spec.story else list(limits(spec.faults, spec.schedule, out_of_reach(spec)))


def possible_in_namespaces(spec: RunSpec, family: str) -> bool:
    """It is only for its host that the world of ``spec`` can do nothing of ``family``: in namespaces it could."""
    world = spec.world
    if not isinstance(world, Processes | Kafka) or not isinstance(world.host, Loopback):
        return False
    there = msgspec.structs.replace(spec, world=msgspec.structs.replace(world, host=Namespaces()))
    return not any(one.nothing_left for one in limits_of(there) if one.family == family)


def limits_here(spec: RunSpec) -> list[Limit]:
    """What of the families of ``spec`` only this machine cannot do, where nodes of the run live on it."""
    world = spec.world
    if spec.story or not isinstance(world, Processes | Kafka) or not isinstance(world.host, Loopback | Namespaces):
        return []
    from harness.worlds.real import machine_lacks

    never = out_of_reach(spec)
    needs = frozenset[Capability]().union(*map(needs_of, spec.faults.families)) - never.keys()
    return list(limits(spec.faults, spec.schedule, machine_lacks(needs)))


def host_lacks(world: AnyWorld) -> str:
    """Why this machine cannot be the host of ``world`` at all, and what to do; "" where nothing speaks against."""
    if not isinstance(world, Processes | Kafka) or not isinstance(world.host, Namespaces):
        return ""
    try:
        probe_namespaces()
    except HostError as error:
        return str(error)
    return ""


def release_lacks(spec: RunSpec) -> str:
    """Why the release of Kafka that ``spec`` asks for cannot be started here, and what to do; "" where it can.

    Raises:
        PlanError: it cannot do what the settings ask for, on whichever machine.
    """
    if not isinstance(spec.world, Kafka):
        return ""
    from harness.worlds.kafka import release_for

    try:
        release_for(spec.world, spec.chosen())
    except HostError as error:
        return str(error)
    return ""

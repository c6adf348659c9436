"""Says before anything starts what a plan asks for that its worlds, hosts or this machine cannot do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from checkers import counted
from harness.ground.errors import HostError, PlanError
from harness.plan import AnyWorld, RunSpec
from harness.worlds.limits import host_lacks, limits_here, limits_of, possible_in_namespaces, release_lacks
from nemesis.limits import Limit

#: Scenarios that are named where some of their faults are skipped.
SCENARIOS_MAX: Final = 4


def refuse_the_impossible(runs: Sequence[RunSpec]) -> None:
    """Refuse families that a world cannot do on its host at all: their cells could never be exercised.

    Raises:
        PlanError: which they are, why, and what to write.
    """
    families: dict[tuple[AnyWorld, str, bool], dict[str, None]] = {}
    for run in _each(runs):
        for limit in limits_of(run):
            if limit.nothing_left:
                elsewhere = possible_in_namespaces(run, limit.family)
                families.setdefault((run.world, limit.why, elsewhere), {})[limit.family] = None
    several = len({run.world for run in runs}) > 1
    if families:
        raise PlanError("; and ".join(_refusal(*where, [*names], several=several) for where, names in families.items()))


def limits_where_all_can_run(runs: Sequence[RunSpec]) -> list[str]:
    """As :func:`limit_sentences`, for runs that begin now.

    Raises:
        HostError: this machine cannot carry a world: what it lacks, and what to do.
        PlanError: a release of Kafka cannot do what the settings ask for.
    """
    for world, lack in _lacking(runs).items():
        raise HostError(f"{_named(world)} cannot run on this machine: {lack}")
    return _sentences(runs, {})


def limit_sentences(runs: Sequence[RunSpec]) -> list[str]:
    """Say what is not done of a plan that can be run: by world and family, then what only this machine lacks."""
    return _sentences(runs, _lacking(runs))


def _lacking(runs: Sequence[RunSpec]) -> dict[AnyWorld, str]:
    """By world that this machine cannot carry, why. Hosts are tried, so once; releases are asked for each cell."""
    hosts = {world: host_lacks(world) for world in {run.world: None for run in runs}}
    cells = {(run.world, run.cell): run for run in runs}.values()
    releases = {run.world: release_lacks(run) for run in cells}
    return {world: why for world, host in hosts.items() if (why := host or releases[world])}


def _sentences(runs: Sequence[RunSpec], lacking: Mapping[AnyWorld, str]) -> list[str]:
    each = _each(runs)
    sentences = [f"In {_without(run, limit)}: {limit.why}." for run in each for limit in limits_of(run)]
    for world, lack in lacking.items():
        sentences.append(f"On this machine {_named(world)} cannot run: {lack}; ackproof doctor says what is there.")
    for run in each:
        if run.world not in lacking:
            sentences += _here(run)
    return list(dict.fromkeys(sentences))


def _here(run: RunSpec) -> Iterator[str]:
    for limit in limits_here(run):
        if limit.nothing_left:
            what = f"{_named(run.world)} can perform no fault of {limit.family}"
            yield f"On this machine {what}: {limit.why}; run it elsewhere, or leave {limit.family} out."
        else:
            yield f"On this machine, in {_without(run, limit)}: {limit.why}."


def _refusal(world: AnyWorld, why: str, elsewhere: bool, families: Sequence[str], *, several: bool) -> str:
    names = ", ".join(families)
    host = f'write host = "namespaces" under [worlds.{world.name}], or ' if elsewhere else ""
    alone = f"give {world.name} a plan of its own without {names}"
    return f"{_named(world)} can perform no fault of {names}: {why}; {host}{alone if several else f'leave {names} out'}"


def _without(run: RunSpec, limit: Limit) -> str:
    scenarios = counted(len(limit.scenarios), "scenario")
    named = ", ".join(limit.scenarios[:SCENARIOS_MAX]) + (", ..." if len(limit.scenarios) > SCENARIOS_MAX else "")
    return f"{_named(run.world)}, {limit.family} goes without {' or '.join(limit.kinds)} in {scenarios} ({named})"


def _named(world: AnyWorld) -> str:
    return f"the world {world.name}" + (f' with host = "{world.host_name}"' if world.host_name else "")


def _each(runs: Sequence[RunSpec]) -> list[RunSpec]:
    """One run of each family of each world: settings and seeds change nothing of what can be done."""
    first: dict[tuple[AnyWorld, str], RunSpec] = {}
    for run in runs:
        first.setdefault((run.world, run.family), run)
    return list(first.values())

"""Estimates the time of a plan on this machine: from earlier campaigns of each world, else from the plan's times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from checkers import counted
from harness.campaigns.campaign.room import runs_needed
from harness.campaigns.campaign.runs import PendingRuns, side_by_side
from harness.campaigns.campaign.simulated_cost import simulated_s
from harness.ground.errors import AckproofError
from harness.ground.machine.versions import cores
from harness.plan import Kafka, Plan, WorldPlan, planned_writes, read_plan
from harness.records.campaign_record import CampaignRecord, read_campaign_record
from harness.records.files import CAMPAIGN_FILE, PLAN_FILE

#: Seconds of a real run beside its workload: start, recovery, drain; of three Java brokers and of three Python ones.
AROUND_KAFKA_S: Final = 17.0
AROUND_PROCESSES_S: Final = 6.0
#: Seconds of the stages that follow: Spark starts, and reads these numbers of runs and of writes a second.
CHECKING_S: Final = 10.0
CHECKED_A_SECOND: Final = 150.0
WRITES_CHECKED_A_SECOND: Final = 1_000_000


class WorldEstimate(NamedTuple):
    """The time of one world: ``run_s`` of one run, ``total_s`` of all, ``parallel`` at a time; its ``basis``."""

    world: str
    runs: int
    parallel: int
    run_s: float
    total_s: float
    basis: str


class Estimate(NamedTuple):
    """The time of a plan: its worlds, ``runs_s`` for all their runs, and what follows."""

    worlds: tuple[WorldEstimate, ...]
    runs_s: float
    checking_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.runs_s + self.checking_s


class _Earlier(NamedTuple):
    """A completed campaign, and the plan that it kept."""

    name: str
    record: CampaignRecord
    plan: Plan


def estimate(plan: Plan, results: Path) -> Estimate:
    """Estimate the time of ``plan`` from the newest campaign below ``results`` that has each world."""
    runs = plan.runs()
    earlier = _earlier_campaigns(results)
    groups = [PendingRuns(world, [run for run in runs if run.world == world.world]) for world in plan.worlds]
    worlds = {group.name: _world_estimate(group.world, len(group.runs), earlier) for group in groups}
    runs_s = sum(max(worlds[group.name].total_s for group in turn) for turn in side_by_side(groups))
    writes = sum(planned_writes(run.workload) for run in runs)
    checking_s = CHECKING_S + len(runs) / CHECKED_A_SECOND + writes / WRITES_CHECKED_A_SECOND
    return Estimate(tuple(worlds.values()), runs_s, checking_s)


def soak_estimate(plan: Plan, results: Path) -> tuple[WorldEstimate, ...]:
    """Estimate the time in which a soak of ``plan`` puts each cell to the test; its worlds go side by side."""
    earlier, needed = _earlier_campaigns(results), runs_needed(plan.runs())
    return tuple(_world_estimate(world, max(needed[world.world.name], 1), earlier) for world in plan.worlds)


def _world_estimate(world: WorldPlan, runs: int, earlier: Sequence[_Earlier]) -> WorldEstimate:
    own_s = _own_s(world)
    run_s, basis = _by_the_plan(world), "the plan's times"
    for campaign in earlier:
        then = next((plan for plan in campaign.plan.worlds if plan.world.name == world.world.name), None)
        performed = campaign.record.worlds.get(world.world.name)
        if then is None or performed is None or not performed.completed:
            continue
        before_s, took_s = _own_s(then), performed.wall_ms / performed.completed / 1000
        run_s = own_s * took_s / before_s if world.world.virtual_time else own_s + max(took_s - before_s, 0.0)
        basis = f"{counted(performed.completed, 'run')} of {campaign.name}"
        break
    parallel = min(world.parallel or cores(), runs)
    return WorldEstimate(world.world.name, runs, parallel, run_s, -(-runs // parallel) * run_s, basis)


def _own_s(world: WorldPlan) -> float:
    """Seconds of the workload alone: in virtual time those of the processor."""
    return simulated_s(world.workload) if world.world.virtual_time else world.workload.duration_ms / 1000


def _by_the_plan(world: WorldPlan) -> float:
    if world.world.virtual_time:
        return _own_s(world)
    return _own_s(world) + (AROUND_KAFKA_S if isinstance(world.world, Kafka) else AROUND_PROCESSES_S)


def _earlier_campaigns(results: Path) -> list[_Earlier]:
    """Completed campaigns, the newest first; one that cannot be read any more is left out."""
    campaigns: dict[Path, _Earlier] = {}
    for file in results.glob(f"*/{CAMPAIGN_FILE}"):
        try:
            record, plan = read_campaign_record(file.parent), read_plan(file.parent / PLAN_FILE)
        except AckproofError:
            continue
        if record is not None and record.status == "completed":
            campaigns[file.parent.resolve()] = _Earlier(file.parent.resolve().name, record, plan)
    return sorted(campaigns.values(), key=lambda campaign: campaign.record.began, reverse=True)

"""Real Kafka: leaders that die, are moved or lose their place, and controllers that die."""

from pathlib import Path

import pytest

from checkers import Judgement
from harness.ground.observations import ControllerActivated, LeaderElected
from harness.plan import Kafka, Namespaces, RunSpec
from harness.records.cluster_file import read_observations
from nemesis.cluster import CONTROLLER
from nemesis.plan import FaultPlan
from tests.harness.needs import needs_root
from tests.harness.worlds.trials import hit_by, lose_or_hold, tale
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [
    pytest.mark.system,
    pytest.mark.kafka,
    pytest.mark.root,
    pytest.mark.xdist_group("kafka"),
    pytest.mark.usefixtures("real_kafka"),
    needs_root("ip", "nft", "nsenter"),
]


def spec(world: Kafka, faults: FaultPlan, acks: object, duration_ms: int, brokers: int = 3) -> RunSpec:
    return RunSpec(
        world=world,
        cell="cell/planned",
        family="+".join(faults.families),
        settings=Settings.from_mapping({"min.insync.replicas": 2, "acks": acks}).to_mapping(),
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=duration_ms, drain_limit_ms=60_000),
        faults=faults,
        seed=11,
        brokers=brokers,
    )


def test_acks_1_loses_by_a_planned_move_and_nobody_dies(tmp_path: Path) -> None:
    """S03, KAFKA-20554: in this story nothing else happens but a cut that lets followers lag."""
    run_spec = spec(Kafka(host=Namespaces()), FaultPlan(families=("move",), scenarios=("S03",), count=6), 1, 10_000)
    lose_or_hold(run_spec, tmp_path, loses=True, exercised=hit_by("partition", "moveleader"))


def dead_controllers(run: Judgement) -> list[int]:
    return [node for fault in run.faults if fault.kind == "kill" for node in fault.nodes if node >= CONTROLLER]


def test_acks_all_holds_while_nodes_die_leaders_move_and_replicas_are_replaced(
    tmp_path: Path,
) -> None:
    """S03 and S01, and the active one of three controllers."""
    families = ("move", "reassign", "kill", "controller")
    # On a busy machine a follower that lags leaves the in-sync replicas before it can be made the leader.
    scenarios = (*["move/move-while-lagging"] * 3, "reassign/reassign-while-lagging", "S01", "controller/gone")
    world, faults = Kafka(host=Namespaces(), controllers=3), FaultPlan(families=families, scenarios=scenarios, count=1)

    def exercised(run: Judgement) -> bool:
        return hit_by("partition", "moveleader", "reassign", "kill")(run) and len(dead_controllers(run)) == 1

    run_spec = spec(world, faults, "all", 22_000, brokers=4)
    judgement, run = lose_or_hold(run_spec, tmp_path, loses=False, exercised=exercised)
    assert any(fault.kind == "kill" and max(fault.nodes) < CONTROLLER for fault in judgement.faults)
    (victim,) = dead_controllers(judgement)
    observed = list(read_observations(run))
    active = [seen.node for seen in observed if isinstance(seen.fact, ControllerActivated)]
    after = active[active.index(victim) + 1 :]
    assert after, tale(run)
    assert after[0] != victim
    born = [(seen.partition, seen.fact.partition_epoch) for seen in observed if isinstance(seen.fact, LeaderElected)]
    assert len(born) == len(set(born))

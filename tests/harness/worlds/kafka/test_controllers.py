"""The quorum of controllers on real Kafka: the active one dies while clients write."""

from pathlib import Path

import pytest

from harness.observations import ControllerActivated, LeaderElected
from harness.plan import Kafka, RunSpec
from harness.records.cluster_file import read_observations
from nemesis.cluster import CONTROLLER
from nemesis.plan import FaultPlan
from tests.harness.worlds.trials import hit_by, lose_or_hold, tale
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka")]


@pytest.mark.usefixtures("real_kafka")
def test_nothing_is_lost_when_the_active_controller_dies_and_another_takes_over(tmp_path: Path) -> None:
    spec = RunSpec(
        world=Kafka(controllers=3),
        cell="cell/controller",
        family="controller",
        settings=Settings.from_mapping({"acks": "all", "min.insync.replicas": 2}).to_mapping(),
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=9_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=("controller",), stories=("controller/gone",), count=1),
        seed=1,
    )
    judgement, run = lose_or_hold(spec, tmp_path, loses=False, exercised=hit_by("kill"))
    (victim,) = judgement.faults[0].nodes
    assert victim >= CONTROLLER
    observed = list(read_observations(run))
    active = [seen.node for seen in observed if isinstance(seen.fact, ControllerActivated)]
    after = active[active.index(victim) + 1 :]
    assert after, tale(run)
    assert after[0] != victim
    born = [(seen.partition, seen.fact.partition_epoch) for seen in observed if isinstance(seen.fact, LeaderElected)]
    assert len(born) == len(set(born))

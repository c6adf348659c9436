"""Planned moves of leadership on real processes (S03): nobody dies, and acks=1 loses."""

from pathlib import Path

import msgspec
import pytest

from nemesis.cluster import Capability
from nemesis.plan import FaultPlan
from tests.harness.worlds.trials import hit_by, lose_or_hold
from workloads.operations import EventType
from workloads.plan import WorkloadPlan

pytestmark = pytest.mark.system


def test_leadership_moves_and_the_controller_confirms_it(cluster) -> None:
    old = cluster.leads()
    before = cluster.target.view().partitions["ackproof-0"].leader_epoch
    new = next(node for node in (0, 1, 2) if node != old)
    evidence = cluster.target.leadership.move_leader("ackproof-0", new)
    assert evidence == {"leader": new, "leader_epoch": before + 1}
    assert cluster.leads() == new
    assert cluster.write(1, process=cluster.next_process())[0].type is EventType.OK


def test_a_dead_broker_is_not_made_the_leader(cluster) -> None:
    old = cluster.leads()
    new = next(node for node in (0, 1, 2) if node != old)
    cluster.target.processes.kill(new)
    assert cluster.until(lambda: new not in cluster.target.view().partitions["ackproof-0"].isr)
    assert "not a live member" in str(cluster.target.leadership.move_leader("ackproof-0", new)["refused"])
    assert cluster.leads() == old
    cluster.target.processes.restart(new)
    assert "never changes the replicas" in cluster.target.lacks[Capability.REASSIGNMENT]


@pytest.mark.parametrize(("acks", "loses"), [(1, True), ("all", False)])
def test_a_planned_move_while_followers_lag_loses_with_acks_1_only(make_spec, tmp_path: Path, acks, loses) -> None:
    run_spec = make_spec({"acks": acks, "min.insync.replicas": 2})
    run_spec = msgspec.structs.replace(
        run_spec,
        cell="cell/move",
        family="move",
        workload=WorkloadPlan(writes_per_second=100.0, duration_ms=6_000, drain_limit_ms=30_000),
        faults=FaultPlan(families=("move",), scenarios=("S03",), count=4),
    )
    lose_or_hold(run_spec, tmp_path, loses=loses, exercised=hit_by("partition", "moveleader"))

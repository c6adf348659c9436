"""Apache Kafka 0.10.2.2 on today's Java, end to end: fetched with Maven, started with ZooKeeper, broken, judged."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.ground.observations import (
    BecameFollower,
    BecameLeader,
    BrokerRegistered,
    IsrChanged,
    LeaderElected,
    ReplicaRecovered,
    Truncated,
)
from harness.plan import Kafka, Namespaces, RunSpec
from harness.records.cluster_file import read_observations
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from nemesis.cluster import PartitionView
from nemesis.plan import FaultPlan
from tests.harness.needs import missing_for_root
from tests.harness.worlds.trials import hit_by, lose_or_hold
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.root, pytest.mark.xdist_group("kafka-eras")]
RELEASE = "0.10.2.2"
#: The rules of that release.
ERA = {
    "broker.epochs": False,
    "strict.min.isr": False,
    "fetch.fencing": False,
    "isr.join.epoch.rule": False,
    "truncation": "high-watermark",
}


@pytest.fixture(scope="module", autouse=True)
def release(kafka_release: Callable[[str], Installation]) -> None:
    if why := missing_for_root("ip", "nft", "nsenter"):
        pytest.skip(why)
    kafka_release(RELEASE)


def spec(**settings: object) -> RunSpec:
    return RunSpec(
        world=Kafka(host=Namespaces(), version=RELEASE, mode="zookeeper"),
        cell="cell/kill",
        family="kill",
        settings=Settings.from_mapping({"min.insync.replicas": 2} | ERA | settings).to_mapping(),
        workload=WorkloadPlan(partitions=1, writes_per_second=60.0, duration_ms=8_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=("kill",), count=1),
        seed=11,
    )


def test_a_run_is_told_and_judged_as_on_any_other_release(tmp_path: Path) -> None:
    """The tail of a killed leader (S01): its loss is in the logs of the time as a truncation."""
    shown = lose_or_hold(spec(acks=1), tmp_path, loses=True, exercised=hit_by("partition", "kill"))
    reported = list(read_observations(shown.directory))
    kinds = {BecameLeader, BecameFollower, LeaderElected, IsrChanged, BrokerRegistered, ReplicaRecovered, Truncated}
    assert kinds <= {type(seen.fact) for seen in reported}
    assert len({seen.fact.leader_epoch for seen in reported if isinstance(seen.fact, BecameLeader)}) > 1


def test_leaders_are_moved_and_replicas_reassigned_through_zookeeper(tmp_path: Path) -> None:
    world = kafka_world(spec(), tmp_path)
    try:
        world.open()
        target = world.target

        def state() -> PartitionView:
            return target.view().partitions["ackproof-0"]

        leader = state().leader
        other = next(node for node in state().replicas if node != leader)
        moved = target.leadership.move_leader("ackproof-0", other)
        placed = target.reassignment.reassign("ackproof-0", [other])
    finally:
        world.close()
    assert (moved["leader"], moved.keys()) == (other, {"leader", "leader_epoch"})
    assert placed["replicas"] == [other]
    logs = world.replica_logs()
    assert logs is not None
    assert not any(log.damage for log in logs.logs)

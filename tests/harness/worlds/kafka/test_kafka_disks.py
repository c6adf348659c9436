"""A cluster of real Kafka without root: its start, and its disks, damaged and emptied, step by step."""

from collections.abc import Callable, Iterator

import psutil
import pytest

from harness.ground.observations import BecameFollower, Fact
from harness.plan import Kafka, Loopback, RunSpec
from harness.records.journal import FILE_NAME, not_undone
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.formatting import META
from harness.worlds.kafka.installation import Installation
from nemesis.cluster import Capability
from nemesis.disk_parts import LOG_PARTS
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka")]
#: Four nodes use 15 s on the project's own machine; others may be slower.
PROCESSOR_LIMIT_S = 120.0
MEMORY_LIMIT_BYTES = 2.5 * 2**30
#: One start of a broker on a machine that does something else besides.
LIMIT_US = 60_000_000
WRITES = 20


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, real_kafka: Installation) -> Iterator[Cluster]:
    """One cluster for all tests: the last one empties it."""
    directory = tmp_path_factory.mktemp("run")
    settings = {"acks": "all", "min.insync.replicas": 2, "delivery.timeout.ms": 30_000}
    world = kafka_world(
        RunSpec(
            world=Kafka(host=Loopback()),
            cell="cell/wipe",
            family="wipe",
            settings=Settings.from_mapping(settings).to_mapping(),
            workload=WorkloadPlan(),
            faults=FaultPlan(families=("wipe",)),
            seed=1,
        ),
        directory,
    )
    try:
        world.open()
        yield Cluster(world, directory)
    finally:
        world.close()
    assert not_undone(directory / FILE_NAME) == []


def wait(cluster: Cluster, condition: Callable[[], bool]) -> None:
    assert cluster.until(condition, LIMIT_US)


def shown(cluster: Cluster, kind: type[Fact], node: int) -> int:
    """The number of times that a node said so."""
    return sum(isinstance(seen.fact, kind) and seen.node == node for seen in cluster.world.observations())


def alone_in_sync(cluster: Cluster) -> int:
    """The first partition's leader, after acknowledged writes and the end of everybody else; dead like them."""
    outcomes = cluster.write(WRITES, cluster.next_process())
    assert {outcome.type for outcome in outcomes} == {EventType.OK}
    leader = cluster.leads()
    for broker in {0, 1, 2} - {leader}:
        cluster.target.processes.kill(broker)
    wait(cluster, lambda: cluster.target.view().partitions[PARTITIONS[0]].isr == (leader,))
    cluster.target.processes.kill(leader)
    wait(cluster, lambda: cluster.leader() is None)
    return leader


def test_a_cluster_starts_with_little_processor_time_and_memory_without_root(cluster: Cluster) -> None:
    journal = not_undone(cluster.directory / FILE_NAME)
    pids = [action.facts["pid"] for action in journal if action.kind == "process"]
    taken = sum(psutil.Process(pid).memory_info().rss for pid in pids)
    used_s = sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)
    view, lacks = cluster.target.view(), cluster.target.lacks
    evidence = cluster.target.processes.kill(0)
    cluster.target.processes.restart(0)
    assert used_s < PROCESSOR_LIMIT_S
    assert len(pids) == 4
    assert taken < MEMORY_LIMIT_BYTES
    assert "namespaces" in lacks[Capability.LINKS]
    assert {state.isr for state in view.partitions.values()} == {state.replicas for state in view.partitions.values()}
    assert (evidence["exit"], evidence["connect"]) == ("signal 9", "refused")
    wait(cluster, cluster.is_well)


def test_recovery_ends_the_last_replicas_log_at_the_damaged_record(cluster: Cluster) -> None:
    """S34. Everybody truncates to it."""
    for _ in range(3):  # more than one batch
        cluster.write(2, cluster.next_process())
    last = alone_in_sync(cluster)
    damage = cluster.target.files.corrupt(last, PARTITIONS[0], LOG_PARTS // 2)["corrupted"]
    assert damage["read_again"]
    assert 0 < damage["offset"] < WRITES
    for broker in (0, 1, 2):
        cluster.target.processes.restart(broker)
    wait(cluster, cluster.is_well)
    assert cluster.end_offset() == damage["offset"]
    assert len(cluster.read(damage["offset"])) == damage["offset"]


def test_an_emptied_last_replica_leads_after_one_or_two_starts_and_then_everything_is_lost(cluster: Cluster) -> None:
    """S08. A formatted disk has a new identity, and no replica is elected on a disk that the controller does not know
    (KIP-858, since 3.7). If it learns of the disk only after it let the broker in, nobody leads until the next start.
    """
    last = alone_in_sync(cluster)
    identity = (cluster.directory / "data" / str(last) / META).read_text()
    assert cluster.target.files.wipe(last)["wiped"]["log_bytes"] > 0
    for _ in range(2):
        if cluster.leader() is None:
            bounced = shown(cluster, BecameFollower, last)
            cluster.target.processes.kill(last)
            cluster.target.processes.restart(last)
            wait(cluster, lambda: shown(cluster, BecameFollower, last) > bounced)  # noqa: B023 - waited for at once
            cluster.until(lambda: cluster.leader() is not None, 15_000_000)
    assert (cluster.directory / "data" / str(last) / META).read_text() != identity
    assert cluster.leader() == last
    for broker in {0, 1, 2} - {last}:
        cluster.target.processes.restart(broker)
    wait(cluster, cluster.is_well)
    assert cluster.end_offset() == 0

"""Disks of real nodes: emptied, damaged, full and slow, and the effects."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.ground.observations import ReplicaRecovered
from harness.plan import RunSpec
from harness.records.journal import FILE_NAME, not_undone
from harness.worlds.hosts.disk_speed import ROOT, WRITES_PER_SECOND
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from nemesis.cluster import Capability
from nemesis.disk_parts import LOG_PARTS
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads.operations import EventType

MakeSpec = Callable[..., RunSpec]
Open = Callable[..., Cluster]
pytestmark = pytest.mark.system
needs_disks = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mkfs.ext4") is None, reason="needs root and the command mkfs.ext4"
)
needs_limits = pytest.mark.skipif(
    not (ROOT / "blkio" / "blkio.throttle.write_iops_device").is_file(),
    reason="needs the blkio controller of control groups version 1",
)


@pytest.fixture
def opened(tmp_path: Path, make_spec: MakeSpec) -> Iterator[Open]:
    worlds: list[RealWorld] = []

    def start(family: str = "wipe", **settings: object) -> Cluster:
        every = {"acks": "all", "min.insync.replicas": 2} | settings
        worlds.append(processes_world(make_spec(every, faults=FaultPlan(families=(family,))), tmp_path))
        worlds[0].open()
        return Cluster(worlds[0], tmp_path)

    yield start
    worlds[0].close()
    assert not_undone(tmp_path / FILE_NAME) == []


def followers_of(cluster: Cluster) -> list[int]:
    return [broker for broker in (0, 1, 2) if broker != cluster.leads()]


def kill_until_noticed(cluster: Cluster, broker: int) -> None:
    """A broker that returns at once is taken for one that never left, until it registers."""
    cluster.target.processes.kill(broker)
    assert cluster.until(
        lambda: all(broker not in partition.isr for partition in cluster.target.view().partitions.values())
    )


def bounce_leader(cluster: Cluster) -> None:
    kill_until_noticed(cluster, leader := cluster.leads())
    cluster.target.processes.restart(leader)
    assert cluster.until(cluster.is_well)


def test_an_emptied_follower_fetches_everything_again(cluster: Cluster) -> None:
    before = cluster.end_offset()
    cluster.write(5, cluster.next_process())
    follower = followers_of(cluster)[0]
    assert cluster.target.files.wipe(follower) == {}
    kill_until_noticed(cluster, follower)
    evidence = cluster.target.files.wipe(follower)
    assert evidence["wiped"]["log_bytes"] > 0
    assert evidence["wiped"]["files"] > len(PARTITIONS)
    assert list((cluster.directory / "data" / str(follower)).iterdir()) == []
    assert cluster.target.processes.restart(follower) == {"state": "running"}
    assert cluster.until(cluster.is_well)
    bounce_leader(cluster)
    assert cluster.end_offset() == before + 5
    assert len(cluster.read(before + 5)) == before + 5


def test_an_emptied_disk_of_the_last_in_sync_replica_empties_everybodys(opened: Open) -> None:
    """S08: min.insync.replicas gates the write and not the election."""
    cluster = opened()
    assert len(cluster.write(5, cluster.next_process())) == 5
    leader = cluster.leads()
    for follower in followers_of(cluster):
        cluster.target.processes.kill(follower)
    assert cluster.until(lambda: cluster.target.view().partitions[PARTITIONS[0]].isr == (leader,))
    cluster.target.processes.kill(leader)
    cluster.target.files.wipe(leader)
    assert cluster.until(lambda: cluster.leader() is None)
    for broker in (leader, *(other for other in (0, 1, 2) if other != leader)):
        cluster.target.processes.restart(broker)
        assert cluster.until(lambda: cluster.leader() == leader)
    assert cluster.until(cluster.is_well)
    assert cluster.end_offset() == 0


def test_a_damaged_record_ends_a_followers_log_until_it_fetched_the_rest_again(cluster: Cluster) -> None:
    """S35. The bad record and everything after it are gone from one disk, and come back."""
    for _ in range(3):
        cluster.write(2, cluster.next_process())
    end = cluster.end_offset()
    follower = followers_of(cluster)[0]
    kill_until_noticed(cluster, follower)
    evidence = cluster.target.files.corrupt(follower, PARTITIONS[0], LOG_PARTS // 2)["corrupted"]
    assert evidence["partition"] == PARTITIONS[0]
    assert 0 < evidence["offset"] < end
    assert evidence["before"] ^ evidence["after"] == 1
    assert evidence["read_again"]
    (file,) = (cluster.directory / "data" / str(follower)).glob(f"{PARTITIONS[0]}@*/{evidence['file']}")
    assert file.read_bytes()[evidence["position"]] == evidence["after"]
    cluster.target.processes.restart(follower)
    assert cluster.until(cluster.is_well)
    own = [seen.fact for seen in cluster.world.observations() if seen.node == follower]
    recovered = [fact for fact in own if isinstance(fact, ReplicaRecovered) and fact.partition == PARTITIONS[0]]
    assert evidence["offset"] in [fact.end_offset for fact in recovered]
    bounce_leader(cluster)
    assert len(cluster.read(end)) == end


def test_nothing_is_damaged_where_nothing_is_kept_or_somebody_runs(cluster: Cluster) -> None:
    assert cluster.target.files.corrupt(cluster.leads(), PARTITIONS[0], 0) == {}
    follower = followers_of(cluster)[0]
    cluster.target.processes.kill(follower)
    assert cluster.target.files.corrupt(follower, "elsewhere-0", 0) == {}
    cluster.target.processes.restart(follower)


@needs_disks
@pytest.mark.root
def test_a_leader_without_room_ends_and_has_everything_when_there_is_room_again(opened: Open) -> None:
    cluster = opened("full-disk")
    producer = cluster.connected_producer(cluster.next_process())
    leader = cluster.leads()
    assert cluster.target.disk_space.fill(leader)["free_bytes"] == 0
    # What still has room in blocks that exist is written, the rest makes the broker end.
    outcomes = cluster.write(40, cluster.next_process(), producer)
    assert cluster.until(lambda: leader not in cluster.target.view().running)
    assert cluster.until(lambda: cluster.leader() not in {None, leader})
    evidence = cluster.target.disk_space.free(leader)
    assert evidence["freed_bytes"] > 0
    assert evidence["exit"] == "status 70"
    assert cluster.target.processes.restart(leader) == {"state": "running"}
    assert cluster.until(cluster.is_well)
    acknowledged = [outcome for outcome in outcomes if outcome.type is EventType.OK]
    assert cluster.end_offset() >= len(acknowledged) + 1


@needs_disks
@needs_limits
@pytest.mark.root
def test_a_slow_disk_delays_what_is_flushed(opened: Open) -> None:
    cluster = opened("slow-disk", **{"flush.messages": 1})
    producer = cluster.connected_producer(cluster.next_process())
    leader = cluster.leads()
    assert cluster.target.disk_speed.slow(leader)["writes_per_second"] == WRITES_PER_SECOND
    began_us = cluster.world.clock.now_us()
    for _ in range(WRITES_PER_SECOND):  # one write of the disk each, at the very least; the first few are for free
        cluster.write(1, 0, producer)
    assert cluster.world.clock.now_us() - began_us > 500_000
    assert "device" in cluster.target.disk_speed.restore(leader)
    assert cluster.target.disk_speed.restore(leader) == {}


def test_without_disks_of_their_own_brokers_disks_are_neither_full_nor_slow(opened: Open) -> None:
    cluster = opened("wipe")
    assert cluster.target.lacks[Capability.DISK_SPACE] == "no full-disk fault was planned"
    assert {Capability.POWER, Capability.DISK_SPACE, Capability.DISK_SPEED} <= cluster.target.unplanned
    assert cluster.target.power is cluster.target.disk_space is cluster.target.disk_speed is None
    assert cluster.target.files is not None

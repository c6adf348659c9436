"""Loss of power on real processes and real file systems: only what was flushed is there when it comes back."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.plan import RunSpec
from harness.records.journal import FILE_NAME, not_undone
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from nemesis.cluster import Capability
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import Cluster

MakeSpec = Callable[..., RunSpec]
pytestmark = pytest.mark.system
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mkfs.ext4") is None, reason="needs root and the command mkfs.ext4"
)
SETTINGS = {"acks": "all", "min.insync.replicas": 3}
POWER = FaultPlan(families=("power", "lying-disk"))


@pytest.fixture
def opened(tmp_path: Path, make_spec: MakeSpec) -> Iterator[Callable[..., Cluster]]:
    worlds: list[RealWorld] = []

    def start(**settings: object) -> Cluster:
        worlds.append(processes_world(make_spec(SETTINGS | settings, faults=POWER), tmp_path))
        worlds[0].open()
        return Cluster(worlds[0], tmp_path)

    yield start
    worlds[0].close()


@needs_root
@pytest.mark.root
@pytest.mark.parametrize(("flush_messages", "kept"), [(1, 5), (1_000_000, 0)])
def test_after_all_brokers_lost_their_power_only_flushed_writes_are_there(opened, flush_messages, kept) -> None:
    cluster = opened(**{"flush.messages": flush_messages})
    assert [outcome.offset for outcome in cluster.write(5, cluster.next_process())] == [0, 1, 2, 3, 4]
    evidence = [cluster.target.power.cut_power(broker) for broker in (0, 1, 2)]
    assert all(loss["exit"] == "signal 9" and loss["log_bytes_before"] > 0 for loss in evidence)
    assert all((loss["log_bytes_after"] > 0) is (kept > 0) for loss in evidence)
    for broker in (0, 1, 2):
        assert cluster.target.processes.restart(broker) == {"state": "running"}
    assert cluster.until(cluster.is_well)
    assert cluster.end_offset() == kept
    cluster.world.close()
    assert (cluster.directory / "data" / "0").is_dir()
    assert not_undone(cluster.directory / FILE_NAME) == []


@needs_root
@pytest.mark.root
def test_disks_that_lie_lose_what_was_flushed(opened) -> None:
    """S33: flush.messages=1 does not help."""
    cluster = opened(**{"flush.messages": 1})
    assert len(cluster.write(2, cluster.next_process())) == 2
    assert all(cluster.target.write_caches.lie(broker)["durable_log_bytes"] > 0 for broker in (0, 1, 2))
    assert len(cluster.write(3, cluster.next_process())) == 3
    evidence = [cluster.target.power.cut_power(broker) for broker in (0, 1, 2)]
    assert all(loss["lost_flushed"] > 0 for loss in evidence)
    assert all(cluster.target.write_caches.obey(broker) for broker in (0, 1, 2))
    for broker in (0, 1, 2):
        assert cluster.target.processes.restart(broker) == {"state": "running"}
    assert cluster.until(cluster.is_well)
    assert cluster.end_offset() == 2


def test_without_root_the_view_says_that_power_cannot_be_lost(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.worlds.hosts.disks.os.geteuid", lambda: 1000)
    cluster = opened()
    assert "need root" in cluster.target.lacks[Capability.POWER]
    assert cluster.target.power is None

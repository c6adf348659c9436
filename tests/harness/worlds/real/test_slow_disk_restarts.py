"""A slow disk whose node is started again meanwhile, where the kernel's limit is one of groups of processes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.worlds.hosts import LocalProcess, disk_speed
from harness.worlds.hosts.disk_speed import GroupThrottle
from harness.worlds.real.storage import SlowDisks


class Process(LocalProcess):
    def __init__(self, pid: int) -> None:
        self._pid = pid

    @property
    def pid(self) -> int:
        return self._pid


class Cluster:
    """One node, its disk, and control groups in ordinary files."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "cgroup"
        self.root.mkdir()
        self.journal = Journal(directory / FILE_NAME)
        self.disk = SimpleNamespace(device="7:3")
        self.pid = 4711
        nodes = SimpleNamespace(process=lambda node: Process(self.pid))
        disks = {0: self.disk}
        self.disks = SlowDisks(nodes, disks, GroupThrottle(self.journal, self.root))

    def restart(self) -> None:
        self.pid += 1
        self.disks.started(0)

    def members(self) -> dict[str, str]:
        """The members of each group, by its limit."""
        return {(group / "io.max").read_text(): (group / "cgroup.procs").read_text() for group in self.root.iterdir()}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_process_that_is_started_while_its_disk_is_slow_is_slowed_down_too(cluster: Cluster) -> None:
    cluster.disks.slow(0)
    cluster.restart()
    assert cluster.members() == {"7:3 wiops=20\n": "4712\n"}
    assert len(not_undone(cluster.journal.path)) == 1


def test_a_disk_that_became_another_device_is_slow_still(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Path] = []
    # Ordinary files keep a directory from going.
    monkeypatch.setitem(disk_speed.UNDO, "slow-group", lambda facts: ended.append(Path(facts["group"])))
    cluster.disks.slow(0)
    cluster.disk.device = "7:4"
    cluster.restart()
    assert cluster.members()["7:4 wiops=20\n"] == "4712\n"
    assert [group.name.endswith("-7-3") for group in ended] == [True]
    assert cluster.disks.restore(0) == {"device": "7:4"}
    assert not_undone(cluster.journal.path) == []


def test_a_process_whose_disk_is_not_slow_starts_as_ever(cluster: Cluster) -> None:
    cluster.restart()
    assert cluster.members() == {}

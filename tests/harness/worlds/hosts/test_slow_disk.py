"""Slow disks: a limit of the kernel on writes to one device, set, lifted, and lifted by heal."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.ground.errors import HostError
from harness.records.journal import FILE_NAME, Journal, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts.disk_speed import (
    ROOT,
    WRITES_PER_SECOND,
    DeviceThrottle,
    DiskThrottle,
    GroupThrottle,
    choose_throttle,
)
from harness.worlds.hosts.disks import MountedDisk

V1 = ROOT / "blkio" / "blkio.throttle.write_iops_device"
needs_limits = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or not V1.is_file(),
    reason="needs root, the command mkfs.ext4 and the blkio controller of control groups version 1",
)
FORCED = 6


@pytest.fixture
def throttle(disks: dict[int, MountedDisk], journal: Journal) -> Iterator[DiskThrottle]:
    throttle = choose_throttle(journal)
    yield throttle
    for node in (0, 1):
        throttle.restore_disk_speed(disks[node].device)


def seconds_to_force(directory: Path) -> float:
    """The time that it takes to write FORCED times and to wait for the disk each time."""
    began = time.monotonic()
    with (directory / "0.log").open("ab", buffering=0) as file:
        for _ in range(FORCED):
            file.write(b"x" * 100)
            os.fsync(file.fileno())
    return time.monotonic() - began


def limited() -> set[str]:
    """The devices that the kernel limits."""
    return {line.split()[0] for line in V1.read_text().splitlines()}


@needs_limits
@pytest.mark.root
@pytest.mark.system
class TestOnDisks:
    def test_only_the_slow_disk_waits_and_only_until_it_is_quick_again(
        self, disks: dict[int, MountedDisk], throttle: DiskThrottle
    ) -> None:
        device = disks[0].device
        reported = throttle.slow(device, os.getpid())
        assert reported == {"device": device, "writes_per_second": WRITES_PER_SECOND, "limit": WRITES_PER_SECOND}
        assert seconds_to_force(disks[0].mount_point) > FORCED / WRITES_PER_SECOND
        assert (device in limited(), disks[1].device in limited()) == (True, False)
        throttle.restore_disk_speed(device)
        throttle.restore_disk_speed(device)
        assert device not in limited()

    def test_the_limit_of_a_dead_harness_is_healed_before_its_disk(
        self, disks: dict[int, MountedDisk], throttle: DiskThrottle, tmp_path: Path
    ) -> None:
        device = disks[1].device
        throttle.slow(device, os.getpid())
        assert heal(tmp_path)[0] == f"slow-device {device}"
        assert f"{device} " not in V1.read_text()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Control groups as ordinary files, where they are mounted."""
    root = tmp_path / "cgroup"
    root.mkdir()
    return root


class TestChoice:
    def test_the_first_version_is_taken_where_it_limits_devices(self, journal: Journal, root: Path) -> None:
        (root / "blkio").mkdir()
        (root / "blkio" / V1.name).write_text("")
        assert isinstance(choose_throttle(journal, root), DeviceThrottle)

    def test_the_second_version_is_taken_where_it_limits_groups(self, journal: Journal, root: Path) -> None:
        (root / "cgroup.subtree_control").write_text("cpu io memory\n")
        assert isinstance(choose_throttle(journal, root), GroupThrottle)

    @pytest.mark.parametrize("shared", ["", "cpu memory\n"])
    def test_without_either_the_sentence_says_what_was_looked_for(self, journal: Journal, root: Path, shared) -> None:
        (root / "cgroup.subtree_control").write_text(shared)
        with pytest.raises(HostError, match=r"has neither .+ nor .+ leave the family slow-disk out"):
            choose_throttle(journal, root)


class TestGroups:
    def test_the_process_is_put_into_a_group_with_the_limit(self, journal: Journal, root: Path) -> None:
        throttle = GroupThrottle(journal, root)
        assert throttle.slow("7:3", 4711)["limit"] == f"7:3 wiops={WRITES_PER_SECOND}"
        (group,) = root.iterdir()
        assert (group / "cgroup.procs").read_text() == "4711\n"
        assert [action.kind for action in not_undone(journal.path)] == ["slow-group"]

    def test_runs_have_groups_of_their_own_for_one_device(self, root: Path, tmp_path: Path) -> None:
        for run in ("1", "2"):
            (tmp_path / run).mkdir()
            GroupThrottle(Journal(tmp_path / run / FILE_NAME), root).slow("7:3", 4711)
        assert len(list(root.iterdir())) == 2

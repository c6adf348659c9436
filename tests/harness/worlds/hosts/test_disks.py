"""Disks that lose power: what was forced to them is there afterwards, what was not is gone. Real mounts, hence root."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.ground.errors import HostError
from harness.records.journal import Journal, not_undone
from harness.runs.run.healing import heal
from harness.worlds.hosts.disks import MountedDisk, log_bytes, loop_devices, make_disks
from harness.worlds.hosts.undo import undo_here

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mkfs.ext4") is None, reason="needs root and the command mkfs.ext4"
)
rooted = [needs_root, pytest.mark.root, pytest.mark.system]
BYTES = 100_000
Disks = dict[int, MountedDisk]


def half_flushed(directory: Path) -> Path:
    path = directory / "0.log"
    with path.open("wb") as file:
        file.write(b"f" * BYTES)
        file.flush()
        os.fsync(file.fileno())
        file.write(b"u" * BYTES)
    return path


class TestWithPower:
    pytestmark = rooted

    def test_what_was_flushed_stays_and_the_rest_is_gone(self, disks: Disks) -> None:
        disk = disks[0]
        path = half_flushed(disk.mount_point)
        assert log_bytes(disk.mount_point) == 2 * BYTES
        disk.power_off()
        assert disk.power_on() == {"log_bytes_after": BYTES}
        assert path.read_bytes() == b"f" * BYTES

    def test_each_disk_has_its_own_power(self, disks: Disks) -> None:
        other = half_flushed(disks[1].mount_point)
        disks[0].power_off()
        disks[0].power_on()
        assert other.stat().st_size == 2 * BYTES

    def test_without_power_nothing_can_be_written(self, disks: Disks) -> None:
        disks[0].power_off()
        with pytest.raises(OSError, match="Input/output error"):
            half_flushed(disks[0].mount_point)
        disks[0].power_on()
        assert half_flushed(disks[0].mount_point).exists()

    def test_power_can_be_lost_again_and_again(self, disks: Disks) -> None:
        for _ in range(3):
            half_flushed(disks[0].mount_point)
            disks[0].power_off()
            assert disks[0].power_on() == {"log_bytes_after": BYTES}

    def test_a_disk_that_lies_loses_what_was_flushed_since_it_began_to(self, disks: Disks) -> None:
        disk = disks[0]
        (disk.mount_point / "before.log").write_bytes(b"b" * BYTES)
        assert disk.lie() == {"durable_log_bytes": BYTES}
        assert disk.lie() == {}
        for _ in range(2):
            half_flushed(disk.mount_point)
            disk.power_off()
            assert disk.power_on() == {"log_bytes_after": BYTES}
            assert [path.name for path in disk.mount_point.iterdir()] == ["before.log"]
        half_flushed(disk.mount_point)
        assert disk.obey() == {"log_bytes": 3 * BYTES}
        assert disk.obey() == {}
        disk.power_off()
        assert disk.power_on() == {"log_bytes_after": 2 * BYTES}

    def test_what_a_disk_that_lied_had_written_is_kept_when_it_is_closed(self, disks: Disks, journal: Journal) -> None:
        disk = disks[0]
        disk.lie()
        half_flushed(disk.mount_point)
        undo_here(journal)
        assert [path.name for path in disk.mount_point.iterdir()] == ["0.log"]
        assert [path.name for path in disk.image.parent.iterdir() if path.name.endswith(".durable")] == []

    def test_closed_disks_are_directories_with_the_same_files(self, disks: Disks, journal: Journal) -> None:
        directory, image = disks[0].mount_point, disks[0].image
        half_flushed(directory)
        undo_here(journal)
        undo_here(journal)
        assert not directory.is_mount()
        assert [path.name for path in directory.iterdir()] == ["0.log"]
        assert not image.exists()
        assert loop_devices(image) == []
        assert not_undone(journal.path) == []

    def test_disks_of_a_dead_harness_are_healed_and_their_files_kept(self, disks: Disks, tmp_path: Path) -> None:
        directory = disks[0].mount_point
        half_flushed(directory)
        assert heal(tmp_path) == [f"disk {tmp_path / 'data' / '1'}", f"disk {directory}"]
        assert heal(tmp_path) == []
        assert not directory.is_mount()
        assert (directory / "0.log").stat().st_size == 2 * BYTES

    def test_a_mount_that_somebody_holds_is_not_taken_for_a_new_one(
        self, disks: Disks, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("harness.worlds.hosts.disks._RELEASE_LIMIT_S", 0.2)
        holder = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sleep", "30"])
        try:
            while "sleep" not in Path(f"/proc/{holder.pid}/cmdline").read_text().split("\0")[0]:
                assert holder.poll() is None
            disks[0].power_off()
            with pytest.raises(HostError, match="in another mount namespace holds it"):
                disks[0].power_on()
        finally:
            holder.kill()
            holder.wait()

    def test_a_full_disk_takes_nothing_more_until_there_is_room_again(self, disks: Disks) -> None:
        disk = disks[0]
        reported = disk.fill()
        assert reported["filled_bytes"] > 400 * 2**20
        assert reported["free_bytes"] == 0
        with pytest.raises(OSError, match="No space left on device"):
            half_flushed(disk.mount_point)
        assert half_flushed(disks[1].mount_point).exists()
        assert disk.fill() == reported
        assert disk.free() == {"freed_bytes": reported["filled_bytes"]}
        assert disk.free() == {}
        assert half_flushed(disk.mount_point).exists()

    def test_filling_a_disk_takes_no_room_on_the_machine(self, disks: Disks) -> None:
        disks[0].fill()
        assert disks[0].image.stat().st_blocks * 512 < 50 * 2**20

    def test_what_filled_a_disk_is_not_among_the_files_that_are_kept(self, disks: Disks, journal: Journal) -> None:
        disks[0].fill()
        undo_here(journal)
        assert list(disks[0].mount_point.iterdir()) == []

    def test_a_disk_that_was_full_when_its_harness_died_is_healed(self, disks: Disks, tmp_path: Path) -> None:
        disks[0].fill()
        heal(tmp_path)
        assert list(disks[0].mount_point.iterdir()) == []


def test_without_root_the_sentence_says_so(tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(HostError, match="faults on disks need root"):
        make_disks(tmp_path / "data", [0], journal)
    assert not_undone(journal.path) == []


def test_without_its_programs_the_sentence_names_the_package(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostError, match="install the package e2fsprogs"):
        make_disks(tmp_path / "data", [0], journal)

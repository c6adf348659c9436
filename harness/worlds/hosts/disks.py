"""Disks that lose power, lie or are full: a file system for each node, on a loop device over a file.

Loss of power: the file system is shut down (``ioctl(FS_IOC_SHUTDOWN)`` without a flush of its log), which drops
every dirty page at once; then it is mounted again and replays its journal. What was fsynced is there, what was only in
the page cache is not. This is the kernel's own behaviour, so it holds for every program. Needs root, loop devices and
mkfs.ext4. How a disk becomes slow: :mod:`harness.worlds.hosts.disk_speed`.

A disk that lies: its content is copied when it begins to lie, and a loss of power brings this copy back, as with a disk
that answers every flush at once and keeps the data in a cache without a battery. The file system is frozen for the
copy, which forces everything before it to the disk.

No room: one file takes all of it, and is removed again. It is allocated and never written, so the image, sparse on the
machine's own disk, does not grow. It is gone with the file system; nothing outlives the harness.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import struct
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from harness.ground.errors import HostError
from harness.ground.machine.durable_files import sync_directory
from harness.records.journal import Journal
from harness.worlds.hosts.processes import NAME_PREFIX, attempt, run
from nemesis.evidence import DiskFilled, DiskLied, PowerLost
from workloads import reason_of

#: The file beside a node's own. Kafka looks at directories only, the reference broker at names that it gave.
FILL_NAME: Final = "ackproof-fill"
#: Allocations become smaller until not even one block is free.
_FIRST_STEP_BYTES: Final = 64 * 2**20


#: Sparse: the file grows with what is written.
SIZE_MB: Final = 512
#: _IOR('X', 125, __u32) and EXT4_GOING_FLAGS_NOLOGFLUSH, from the kernel's headers.
FS_IOC_SHUTDOWN: Final = 0x8004587D
NO_LOG_FLUSH: Final = 2
#: _IOWR('X', 119, int) and _IOWR('X', 120, int), from the kernel's headers.
FIFREEZE: Final = 0xC0045877
FITHAW: Final = 0xC0045878
_UNMOUNT_LIMIT_S: Final = 3.0
#: A command in another network namespace that just runs (`ip netns exec`) holds a copy of every mount for its life.
_RELEASE_LIMIT_S: Final = 10.0
_PAUSE_S: Final = 0.005


class MountedDisk:
    """One node's disk, mounted at ``mount_point``; ``image`` is the file behind it."""

    def __init__(self, mount_point: Path, image: Path, journal: Journal) -> None:
        self.mount_point: Final = mount_point
        self.image: Final = image
        self._journal = journal

    def make(self) -> None:
        """Make and mount the disk, and check that it can lose power.

        Raises:
            HostError: this machine cannot make one; the text says what failed.
        """
        shutil.rmtree(self.mount_point, ignore_errors=True)  # of an attempt to start that failed
        self.mount_point.mkdir(parents=True)
        self._journal.intend("disk", {"place": str(self.mount_point), "image": str(self.image)})
        with self.image.open("wb") as file:
            file.truncate(SIZE_MB * 2**20)
        # No reserved blocks, no delayed initialisation that would write while the run goes on.
        features = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
        _run(["mkfs.ext4", "-q", "-F", "-m", "0", "-J", "size=8", "-N", "4096", "-E", features, str(self.image)])
        self._mount()
        # Kafka takes every directory beside its own for a log partition and refuses to start.
        (self.mount_point / "lost+found").rmdir()
        sync_directory(self.mount_point)
        _shut_down(self.mount_point)
        self._remount()

    def power_off(self) -> None:
        """Drop what is not on the disk. The node's process may still run; all its calls fail from now on.

        Raises:
            HostError: the file system cannot be shut down.
        """
        _shut_down(self.mount_point)

    def power_on(self) -> PowerLost:
        """Mount the disk again; no process may use it meanwhile."""
        self._remount()
        return {"log_bytes_after": log_bytes(self.mount_point)}

    @property
    def lies(self) -> bool:
        """True while the disk reports writes as flushed that a loss of power takes."""
        return _durable(self.image).exists()

    def lie(self) -> DiskLied:
        """Let a loss of power take all that is written from now on, flushed or not.

        Raises:
            HostError: the disk cannot be copied.
        """
        if self.lies:
            return {}
        copy = _durable(self.image)
        _freeze(self.mount_point)
        try:
            durable: DiskLied = {"durable_log_bytes": log_bytes(self.mount_point)}
            _run(["cp", "--sparse=always", str(self.image), f"{copy}.part"])
        finally:
            _thaw(self.mount_point)
        Path(f"{copy}.part").rename(copy)
        return durable

    def obey(self) -> DiskLied:
        """Stop lying, and keep what was written."""
        if not self.lies:
            return {}
        _durable(self.image).unlink()
        return {"log_bytes": log_bytes(self.mount_point)}

    def fill(self) -> DiskFilled:
        """Fill the disk.

        Idempotent: what became free since the last call is taken too. Files can still grow in blocks that they have.

        Raises:
            OSError: the file system refuses for another reason than lack of room.
        """
        descriptor = os.open(self.mount_point / FILL_NAME, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            size, step = os.fstat(descriptor).st_size, _FIRST_STEP_BYTES
            while step >= os.fstatvfs(descriptor).f_bsize:
                if _allocate(descriptor, size, step):
                    size += step
                else:
                    step //= 2
            left = os.fstatvfs(descriptor)
            return {"filled_bytes": size, "free_bytes": left.f_bavail * left.f_frsize}
        finally:
            os.close(descriptor)

    def free(self) -> DiskFilled:
        """Give the room back."""
        file = self.mount_point / FILL_NAME
        if not file.exists():
            return {}
        size = file.stat().st_size
        file.unlink()
        return {"freed_bytes": size}

    @property
    def device(self) -> str:
        """The kernel's numbers of the block device under it ("7:0")."""
        number = self.mount_point.stat().st_dev
        return f"{os.major(number)}:{os.minor(number)}"

    def _mount(self) -> None:
        _run(["mount", "-o", "loop,nodev,nosuid,noatime", str(self.image), str(self.mount_point)])

    def _remount(self) -> None:
        """Mount again once the file system has ended: one that still lives would be mounted in its state, shut down.

        A process in another mount namespace has a copy of this mount, and keeps it alive.
        """
        unmount(self.mount_point)
        limit = time.monotonic() + _RELEASE_LIMIT_S
        while loop_devices(self.image):
            if time.monotonic() > limit:
                raise HostError(
                    f"{self.mount_point} cannot be mounted again: a process in another mount namespace holds it"
                )
            time.sleep(_PAUSE_S)
        if self.lies:
            _run(["cp", "--sparse=always", str(_durable(self.image)), str(self.image)])
        self._mount()


def probe_disks() -> None:
    """Check, without making one, that this machine can make disks.

    Raises:
        HostError: something is missing; the text says what.
    """
    if os.geteuid() != 0:
        raise HostError(
            "faults on disks need root, to make a file system for each broker; run as root, or leave them out"
        )
    for tool, package in (("mkfs.ext4", "e2fsprogs"), ("mount", "mount")):
        if shutil.which(tool) is None:
            raise HostError(f"faults on disks need the command {tool}; install the package {package}")


def make_disks(directory: Path, nodes: Collection[int], journal: Journal) -> dict[int, MountedDisk]:
    """A disk for each of these brokers, mounted below ``directory``; undoing the journal removes them.

    Raises:
        HostError: this machine cannot make them; some may exist already.
    """
    probe_disks()
    disks = {
        node: MountedDisk(directory / str(node), directory / f"{NAME_PREFIX}roof-{node}.img", journal) for node in nodes
    }
    for disk in disks.values():
        disk.make()
    return disks


def unmount(mount_point: Path) -> None:
    """Unmount the file system that is mounted there, if any.

    The files of a killed process are closed a moment after its end, so this is tried several times; a file system that
    stays in use is detached from the tree, and ends with its last user.
    """
    limit = time.monotonic() + _UNMOUNT_LIMIT_S
    while mount_point.is_mount():
        lazily = ["-l"] if time.monotonic() > limit else []
        attempt(["umount", *lazily, str(mount_point)])
        if mount_point.is_mount():
            time.sleep(_PAUSE_S)


def keep_files(facts: Mapping[str, Any]) -> list[str]:
    """Undo a ``disk`` of a journal: turn the file system into a directory with the same files; the answer names it.

    The image is removed. Files that cannot be read are left out, and so is the file that took the room. The nodes must
    have ended.
    """
    mount_point, image = Path(str(facts["place"])), Path(str(facts["image"]))
    if not image.name.startswith(NAME_PREFIX) or not image.is_file():
        return []
    _thaw(mount_point)
    for copy in image.parent.glob(f"{_durable(image).name}*"):
        copy.unlink()
    kept = mount_point.with_name(f"{mount_point.name}.kept")
    shutil.rmtree(kept, ignore_errors=True)
    if mount_point.is_mount():
        try:
            shutil.copytree(mount_point, kept, symlinks=True, ignore=shutil.ignore_patterns(FILL_NAME))
        except (OSError, shutil.Error):  # without power there is nothing to read
            kept.mkdir(exist_ok=True)
        unmount(mount_point)
        mount_point.rmdir()
        kept.rename(mount_point)
    image.unlink()
    return [str(mount_point)]


def loop_devices(image: Path) -> list[str]:
    """The loop devices over this file now."""
    devices = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if backing.read_text().strip() == str(image):
                devices.append(backing.parent.parent.name)
        except OSError:  # gone between the look and the reading
            continue
    return devices


def log_bytes(directory: Path) -> int:
    """The bytes of all log segments of topics below a directory, without those of Kafka's metadata."""
    return sum(path.stat().st_size for path in directory.rglob("*.log") if path.parent.name != "__cluster_metadata-0")


def _allocate(descriptor: int, offset: int, length: int) -> bool:
    try:
        os.posix_fallocate(descriptor, offset, length)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def _durable(image: Path) -> Path:
    """The file with the content that a lying disk keeps after a loss of power."""
    return image.with_suffix(".durable")


def _freeze(mount_point: Path) -> None:
    """Stop all writes to the file system, and force to the disk what was written."""
    _command(mount_point, FIFREEZE, 0, "frozen")


def _thaw(mount_point: Path) -> None:
    """Allow writes to the file system again; no effect on one that is not frozen."""
    with contextlib.suppress(HostError):
        _command(mount_point, FITHAW, 0, "thawed")


def _shut_down(mount_point: Path) -> None:
    _command(mount_point, FS_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH), "shut down")


def _command(mount_point: Path, command: int, argument: int | bytes, done: str) -> None:
    """Give a command to the file system, which is ``done`` by it."""
    descriptor = os.open(mount_point, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, command, argument)
    except OSError as error:
        raise HostError(f"the file system at {mount_point} cannot be {done} ({reason_of(error)})") from error
    finally:
        os.close(descriptor)


def _run(command: list[str]) -> None:
    run(command, failure="no disk can be made for a broker on this machine")

"""Makes disks slow by the kernel's limit on writes to one device (blk-throttle), through control groups.

Version 1 of control groups limits all processes that write to a device. Version 2 limits groups only, so there the
node's process is put into a group of its own. Either limit counts writes that reach the device: a process that forces a
record to the disk (rule 24) waits, a process that leaves it in memory does not.
"""

from __future__ import annotations

import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.ground.errors import HostError
from harness.records.journal import Journal
from harness.worlds.hosts.processes import NAME_PREFIX, boot_id
from nemesis.evidence import DiskSlowed

#: A disk that works does thousands; forcing one record to ext4 takes two or three.
WRITES_PER_SECOND: Final = 20
#: The mount point of control groups; version 2 is directly there, or beside version 1.
ROOT: Final = Path("/sys/fs/cgroup")
_V2_FILE: Final = "io.max"
_MEMBERS: Final = "cgroup.procs"
#: Begins with :data:`harness.worlds.hosts.processes.NAME_PREFIX`, as all names that the harness gives.
GROUP_PREFIX: Final = "ackproof-slow"
_V1_FILE: Final = "blkio.throttle.write_iops_device"
_LIFTED: Final = 0
#: Enough digits to tell the runs of a machine apart.
_RUN_DIGITS: Final = 12


class DiskThrottle(ABC):
    """Makes one device slow, and quick again; announced in ``journal`` first. Limits are set at the path ``limits``."""

    def __init__(self, journal: Journal, limits: Path) -> None:
        self._journal = journal
        self._limits = limits
        self._slowed: dict[str, tuple[int, str, dict[str, str]]] = {}

    def slow(self, device: str, pid: int) -> DiskSlowed:
        """Limit writes to ``device`` ("7:0"), at least those of process ``pid``.

        Raises:
            OSError: the kernel refuses.
        """
        if device not in self._slowed:
            kind, facts = self._undo(device)
            facts["boot_id"] = boot_id()
            self._slowed[device] = (self._journal.intend(kind, facts), kind, facts)
        return {"device": device, "writes_per_second": WRITES_PER_SECOND, "limit": self._limit(device, pid)}

    def restore_disk_speed(self, device: str) -> None:
        """Lift the limit. Idempotent."""
        if device in self._slowed:
            entry, kind, facts = self._slowed.pop(device)
            UNDO[kind](facts)
            self._journal.done(entry)

    @abstractmethod
    def _undo(self, device: str) -> tuple[str, dict[str, str]]:
        """The kind and the facts by which :data:`UNDO` lifts the limit."""

    @abstractmethod
    def _limit(self, device: str, pid: int) -> int | str | None:
        """Set the limit; the answer is what the kernel lists."""


class DeviceThrottle(DiskThrottle):
    """Limits all processes at the device (control groups, version 1), in the file ``limits``."""

    def _undo(self, device: str) -> tuple[str, dict[str, str]]:
        return "slow-device", {"device": device, "file": str(self._limits)}

    def _limit(self, device: str, pid: int) -> int | None:  # noqa: ARG002 - it holds for all processes
        self._limits.write_text(f"{device} {WRITES_PER_SECOND}\n")
        return _limit_of(self._limits, device)


class GroupThrottle(DiskThrottle):
    """Limits a group of the node's process alone (control groups, version 2), made below ``limits``."""

    def _undo(self, device: str) -> tuple[str, dict[str, str]]:
        return "slow-group", {"group": str(self._group(device))}

    def _limit(self, device: str, pid: int) -> str:
        group = self._group(device)
        group.mkdir(exist_ok=True)
        (group / _V2_FILE).write_text(f"{device} wiops={WRITES_PER_SECOND}\n")
        (group / _MEMBERS).write_text(f"{pid}\n")
        return (group / _V2_FILE).read_text().strip()

    def _group(self, device: str) -> Path:
        """The group's directory, named after the run's journal: ids of processes and numbers of devices come again."""
        run = hashlib.sha256(bytes(self._journal.path.resolve())).hexdigest()[:_RUN_DIGITS]
        return self._limits / f"{GROUP_PREFIX}-{run}-{device.replace(':', '-')}"


def find_limit(root: Path = ROOT) -> Path:
    """The file by which this machine limits writes: version 1's list of devices, or version 2's list of controllers.

    Raises:
        HostError: neither exists; the text says what was looked for.
    """
    devices, groups = root / "blkio" / _V1_FILE, root / "cgroup.subtree_control"
    if devices.is_file():
        return devices
    if groups.is_file() and "io" in groups.read_text().split():
        return groups
    raise HostError(
        f"slow disks need the kernel's limit on writes to a device; this machine has neither {devices} (control "
        f'groups, version 1) nor "io" in {groups} (version 2); leave the family slow-disk out'
    )


def choose_throttle(journal: Journal, root: Path = ROOT) -> DiskThrottle:
    """The throttle that this machine has.

    Raises:
        HostError: as :func:`find_limit`.
    """
    limit = find_limit(root)
    return DeviceThrottle(journal, limit) if limit.name == _V1_FILE else GroupThrottle(journal, root)


def _lift(facts: Mapping[str, Any]) -> list[str]:
    device, file = str(facts["device"]), Path(str(facts["file"]))
    if facts["boot_id"] != boot_id() or not file.is_file() or _limit_of(file, device) is None:
        return []
    file.write_text(f"{device} {_LIFTED}\n")
    return [device]


def _disband(facts: Mapping[str, Any]) -> list[str]:
    """End a group of version 2; its processes go on above it."""
    group = Path(str(facts["group"]))
    if facts["boot_id"] != boot_id() or not group.name.startswith(NAME_PREFIX) or not group.is_dir():
        return []
    for pid in (group / _MEMBERS).read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (group.parent / _MEMBERS).write_text(f"{pid}\n")
    group.rmdir()
    return [str(group)]


#: By the kind in a journal and from its facts: lifts a limit; the answer names what was there. OSError: it still is.
UNDO: Final[Mapping[str, Callable[[Mapping[str, Any]], list[str]]]] = {"slow-device": _lift, "slow-group": _disband}


def _limit_of(file: Path, device: str) -> int | None:
    for line in file.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == device:
            return int(value)
    return None

"""Reads how much of the processors a container may use: the quota of this process's control groups.

All processors are visible in a container; with a quota of two they stand still when two have been used.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

#: The directory at which control groups are mounted.
ROOT: Final = Path("/sys/fs/cgroup")
#: The control groups of this process, a line each: ``hierarchy:controllers:path``, without controllers in version 2.
OWN_GROUPS: Final = Path("/proc/self/cgroup")


def quota(own_groups: Path = OWN_GROUPS, root: Path = ROOT) -> float:
    """The number of processors that this process may use on average, infinite where nothing limits it."""
    return min((_quota_of(group) for group in _groups(own_groups, root)), default=math.inf)


def _groups(own_groups: Path, root: Path) -> Iterator[Path]:
    """The groups whose quotas count: this process's own, and all above it."""
    with contextlib.suppress(OSError, ValueError):
        for line in own_groups.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            mounts = (root / controllers, root / "cpu") if controllers else (root, root / "unified")
            # In a container of version 1 its own group is the root, and the path is that of the machine outside.
            inside = PurePosixPath(path.lstrip("/"))
            if ".." not in inside.parts:  # this process is outside of what is mounted
                yield from (mount / part for mount in mounts for part in (inside, *inside.parents))


def _quota_of(group: Path) -> float:
    """Time a period, in processors; infinite without a quota, and where none can be read."""
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        time_us, period_us = (group / "cpu.max").read_text(encoding="utf-8").split()
        return math.inf if time_us == "max" else int(time_us) / int(period_us)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        time_us, period_us = (
            (group / f"cpu.cfs_{name}_us").read_text(encoding="utf-8") for name in ("quota", "period")
        )
        return math.inf if int(time_us) < 0 else int(time_us) / int(period_us)
    return math.inf

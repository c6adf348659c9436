"""The machine and the versions that a result was made with."""

from __future__ import annotations

import math
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Final

import msgspec
import psutil

from harness.ground.errors import JavaError
from harness.ground.machine.java import usable_java
from harness.ground.machine.processor_quota import quota

#: Distributions whose version may change a result.
REPORTED_PACKAGES: Final = ("ackproof", "kafka-python", "confluent-kafka", "paramiko", "pyspark", "pyarrow", "numpy")


class MachineSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a machine; ``memory_bytes`` is all of it."""

    processor: str
    cores: int
    memory_bytes: int
    system: str

    def sentence(self) -> str:
        """For the head of a table of measurements."""
        return f"{self.cores} cores ({self.processor}), {self.memory_bytes / 2**30:.0f} GiB, {self.system}"


def this_machine() -> MachineSize:
    """The machine that this runs on."""
    return MachineSize(
        processor=_processor(),
        cores=cores(),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
    )


def cores() -> int:
    """Processors that this process may use, rounded up: things to do at a time."""
    return max(1, math.ceil(processors()))


def processors() -> float:
    """Processors that this process may use on average: a container may be given fewer than there are, or a quota."""
    return min(len(os.sched_getaffinity(0)), quota())


def user_cache() -> Path:
    """The directory of this user for what can be made again: ``ackproof`` below XDG_CACHE_HOME, else ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ackproof"


def versions() -> dict[str, str]:
    """Versions of Python, of Java, and of the distributions that may change a result."""
    own = {"python": platform.python_version(), "java": _java()}
    return own | {name: _version(name) for name in REPORTED_PACKAGES}


def own_version() -> str:
    """The version of ackproof."""
    return _version("ackproof")


def _java() -> str:
    try:
        return usable_java().rpartition(" ")[2]
    except JavaError:
        return "not usable"


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text(encoding="utf-8").splitlines() if information.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())

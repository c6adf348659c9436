"""Time, disk and memory of a soak, in a user's words and as they are measured."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
from pathlib import Path
from typing import Final

import msgspec
import psutil

from harness.ground.errors import NamedWronglyError

_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_BYTES: Final = {
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B)", re.IGNORECASE)

#: The shortest and the longest time that a soak may be asked for, and the largest size.
SECONDS_MIN: Final = 1.0
SECONDS_MAX: Final = 366 * 86_400.0
BYTES_MAX: Final = 2**60
#: The share of the machine's memory that must be free before one more run begins.
FREE_SHARE_MIN: Final = 0.05
_BLOCK_BYTES: Final = 512


def seconds_of(text: str) -> float:
    """``8h``, ``90m``, ``1h30m`` or ``45s`` in seconds.

    Raises:
        NamedWronglyError: it is no duration, or none that anybody can mean.
    """
    asked = text.strip().lower()
    if not _DURATION.fullmatch(asked):
        raise NamedWronglyError(f'"{text}" is not a duration; write a number with its unit, for example 8h, 90m or 45s')
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(asked))
    if seconds < SECONDS_MIN:
        raise NamedWronglyError(f'"{text}" is too short for one run; write 1s or more, for example 8h, 90m or 45s')
    if seconds > SECONDS_MAX:
        raise NamedWronglyError(f'"{text[:40]}" is too long; write a year or less, for example 30d, 8h or 90m')
    return seconds


def bytes_of(text: str) -> int:
    """``5GB`` or ``500MB`` in bytes.

    Raises:
        NamedWronglyError: it is no size, or none that a machine has.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].upper() not in _BYTES:
        raise NamedWronglyError(f'"{text}" is not a size; write a number with its unit, for example 5GB or 500MB')
    if (size := float(match[1]) * _BYTES[match[2].upper()]) > BYTES_MAX:
        raise NamedWronglyError(f'"{text[:40]}" is more than any machine has; write a smaller size, for example 5GB')
    return round(size)


def megabytes(count: int) -> str:
    """A number of bytes as ``--disk`` and ``--memory`` take it."""
    return f"{math.ceil(count / 1e4) / 100:.10g}MB"


def used_bytes(directory: Path) -> int:
    """Bytes that everything below ``directory`` takes on its disk; what goes away meanwhile counts nothing."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{parent}/{name}").st_blocks * _BLOCK_BYTES
    return total


def free_bytes(directory: Path) -> int:
    """Bytes that are free on the disk of ``directory``."""
    return shutil.disk_usage(directory).free


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Resident bytes of the ``harness`` itself, of PySpark's Java, and all other processes below it."""

    harness: int
    java: int
    others: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.harness + self.java + self.others


def memory_used() -> Memory:
    """Memory that this process and those below it use now."""
    here = psutil.Process()
    java = others = 0
    for process in here.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            used = process.memory_info().rss
            is_java = process.ppid() == here.pid and "java" in process.name()
            java, others = java + used * is_java, others + used * (not is_java)
    return Memory(harness=here.memory_info().rss, java=java, others=others)


def memory_is_short(limit_bytes: int | None) -> str:
    """Say why memory is short for one more run, and what to do: it is beyond the limit, or hardly any is free.

    Where neither is so, it is empty.
    """
    machine = psutil.virtual_memory()
    if machine.available < FREE_SHARE_MIN * machine.total:
        return (
            f"only {megabytes(machine.available)} of this machine's memory are free; end other programs, and resume "
            "the soak"
        )
    if limit_bytes is not None and (used := memory_used().total) > limit_bytes:
        return (
            f"the memory limit is reached though nothing runs: {megabytes(used)} are used, and --memory allows "
            f"{megabytes(limit_bytes)}; raise --memory"
        )
    return ""

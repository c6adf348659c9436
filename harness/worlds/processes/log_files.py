"""The files of a log partition as they lie on a disk, of Kafka and of the reference broker alike.

Both keep record batches of format v2 (KIP-98) in segments named by their first offset; what else they keep differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from harness.segments import Place, batches_of

#: From the end of a batch: the last byte of the last record's value, before the number of its headers, which is none.
_VALUE_BYTE_FROM_END: Final = 2
_FLIPPED_BIT: Final = 1


class Batch(NamedTuple):
    """A record batch with at least one record."""

    file: Path
    place: Place


class Changed(NamedTuple):
    """One byte that was changed."""

    position: int
    before: int
    after: int


def log_directory(data: Path, partition: str) -> Path | None:
    """Where a node keeps a log partition: named like it; the reference broker adds "@" and the topic's identity."""
    found = [path for path in data.glob(f"{partition}*") if path.is_dir() and path.name.partition("@")[0] == partition]
    return found[0] if found else None


def batches_in(directory: Path) -> Iterator[Batch]:
    """The whole record batches of a log that hold records, in order of their offsets."""
    for file in sorted(directory.glob("*.log")):
        with file.open("rb") as segment:
            yield from (Batch(file, place) for place in batches_of(segment) if place.has_records)


def flip(batch: Batch) -> Changed:
    """Change a bit in the last record's value, durably; the batch's checksum is wrong from now on."""
    position = batch.place.end - _VALUE_BYTE_FROM_END
    with batch.file.open("r+b") as file:
        file.seek(position)
        before = file.read(1)[0]
        file.seek(position)
        file.write(bytes([before ^ _FLIPPED_BIT]))
        file.flush()
        os.fsync(file.fileno())
    return Changed(position, before, before ^ _FLIPPED_BIT)


def recovery_point(directory: Path) -> int:
    """The offset from whose segment on a start after an unclean stop reads the log again (rule 25).

    Kafka keeps it for all partitions of a disk in one file, the reference broker in a file of the partition's own.
    """
    own, shared = directory / "recovery-point", directory.parent / "recovery-point-offset-checkpoint"
    if own.exists():
        return int(own.read_text())
    name, _, number = directory.name.rpartition("-")
    lines = shared.read_text().splitlines() if shared.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [name, number]), 0)


def read_again(batch: Batch) -> bool:
    """Whether a start after an unclean stop reads this batch; one that it does not stays until somebody fetches it."""
    bases = sorted(int(file.stem) for file in batch.file.parent.glob("*.log"))
    first = max([base for base in bases if base <= recovery_point(batch.file.parent)], default=0)
    return int(batch.file.stem) >= first

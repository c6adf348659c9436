"""Small files beside a log's records: single offsets, leader epochs, producer state, the mark of a clean stop.

Offsets and epochs survive a loss of power, whole: a reader sees the old content or the new, never a mixture. Producer
state can be made again from the log, so its files are not synced.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.machine.durable_files import remove_durably, write_durably
from harness.reference.core.messages import RecordBatch
from harness.reference.core.producers import Producers
from harness.reference.core.types import NONE


class OffsetFile:
    """One offset in a file of its own. ``value`` is what the file holds, ``default`` where there is no file."""

    def __init__(self, path: Path, default: int) -> None:
        self._path = path
        self.value = int(path.read_text()) if path.exists() else default

    def write(self, value: int) -> None:
        """Remember ``value`` durably; free if it is the value already there."""
        if value != self.value or not self._path.exists():
            write_durably(self._path, f"{value}\n".encode())
            self.value = value


class EpochFile:
    """The leader epochs of a log with their start offsets, ascending in both (rule 19), one pair a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.entries: list[tuple[int, int]] = [(int(e), int(o)) for e, o in (line.split() for line in lines)]

    @property
    def last(self) -> int:
        """The newest epoch, -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def replace(self, entries: Sequence[tuple[int, int]]) -> None:
        """Remember ``entries`` durably; free if they are the ones already there."""
        if list(entries) != self.entries:
            write_durably(self._path, "".join(f"{epoch} {offset}\n" for epoch, offset in entries).encode())
            self.entries = list(entries)


class CleanShutdown:
    """The mark of a broker that stopped cleanly: its broker epoch, in the directory that holds its logs (rule 15).

    Written when everything is on the disk, and taken away by the next start: so it says nothing about an older stop.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "clean-shutdown"

    def write(self, broker_epoch: int) -> None:
        """Remember durably that the incarnation of this epoch has stopped cleanly."""
        write_durably(self._path, f"{broker_epoch}\n".encode())

    def take(self) -> int:
        """The broker epoch of the incarnation before, NONE if that one did not stop cleanly; forgotten afterwards."""
        try:
            broker_epoch = int(self._path.read_text())
        except (OSError, ValueError):
            return NONE
        remove_durably(self._path)
        return broker_epoch


def save_producers(path: Path, producers: Producers) -> None:
    """Write to ``path``. Not durable: a missing or damaged file is made again from the log."""
    path.write_bytes(msgspec.msgpack.encode(producers.batches()))


def load_producers(path: Path) -> Producers | None:
    """Read from ``path``; None if it is missing or damaged."""
    try:
        return Producers(msgspec.msgpack.decode(path.read_bytes(), type=list[RecordBatch]))
    except (OSError, msgspec.MsgspecError):
        return None

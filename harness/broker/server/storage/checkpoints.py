"""Small files beside a log's records: single offsets, leader epochs, the mark of a clean stop.

They survive a loss of power, whole: a reader sees the old content or the new, never a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.broker.core.types import NONE
from harness.ground.machine.durable_files import remove_durably, write_durably


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
        """The newest epoch, -1 where the log has no records."""
        return self.entries[-1][0] if self.entries else -1

    def replace(self, entries: Sequence[tuple[int, int]]) -> None:
        """Remember ``entries`` durably; free if they are the ones already there."""
        if list(entries) != self.entries:
            write_durably(self._path, "".join(f"{epoch} {offset}\n" for epoch, offset in entries).encode())
            self.entries = list(entries)


class CleanShutdown:
    """The mark of a clean stop in a directory: of a broker, its epoch (rule 15); of a log, its end offset (rule 25).

    Written when everything is on the disk, and taken away by the next start: so it says nothing about an older stop.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / "clean-shutdown"

    def write(self, number: int) -> None:
        """Remember durably that the owner of the directory has stopped cleanly, with ``number``."""
        write_durably(self._path, f"{number}\n".encode())

    def take(self) -> int:
        """The number that was written at the last stop, NONE if that was not clean; forgotten afterwards."""
        try:
            number = int(self._path.read_text())
        except (OSError, ValueError):
            return NONE
        remove_durably(self._path)
        return number

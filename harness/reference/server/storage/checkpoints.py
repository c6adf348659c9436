"""Small files beside a log's records: single offsets, leader epochs, and producer state.

Offsets and epochs survive a loss of power, whole: a reader sees the old content or the new, never a mixture. Producer
state can be made again from the log, so its files are not synced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from harness.durable import write_durably
from harness.reference.core.messages import RecordBatch
from harness.reference.core.producers import BATCHES_KEPT, PRODUCERS_KEPT
from harness.reference.core.types import NONE


class OffsetFile:
    """One offset in a file of its own. ``value`` is what the file says, ``default`` where there is no file."""

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


class ProducerTail:
    """The batches that a partition's producer state is rebuilt from without reading the whole log (rule 21).

    Of each idempotent producer only the last five batches matter, so a log keeps their headers (``records`` is empty)
    in memory as it is written, and a copy in a file for the beginning of each segment. Opening a log or cutting it back
    reads one segment.
    """

    def __init__(self, batches: Iterable[RecordBatch] = ()) -> None:
        self._kept: dict[int, deque[RecordBatch]] = {}
        for batch in batches:
            self.note(batch)

    def note(self, batch: RecordBatch) -> None:
        """A batch was appended. Plain batches leave no trace; the producer silent for longest is forgotten first."""
        if batch.producer_id == NONE:
            return
        kept = self._kept.pop(batch.producer_id, None) or deque(maxlen=BATCHES_KEPT)
        self._kept[batch.producer_id] = kept
        kept.append(replace(batch, records=b""))
        if len(self._kept) > PRODUCERS_KEPT:
            del self._kept[next(iter(self._kept))]

    def batches(self) -> list[RecordBatch]:
        """Every kept header in log order."""
        return sorted((b for kept in self._kept.values() for b in kept), key=lambda batch: batch.base_offset)

    def save(self, path: Path) -> None:
        """Write to ``path``. Not durable: a missing or damaged file is made again from the log."""
        path.write_bytes(msgspec.msgpack.encode(self.batches()))

    @classmethod
    def load(cls, path: Path) -> ProducerTail | None:
        """Read from ``path``; None if it is missing or damaged."""
        try:
            return cls(msgspec.msgpack.decode(path.read_bytes(), type=list[RecordBatch]))
        except (OSError, msgspec.MsgspecError):
            return None

"""What the producer state of a partition can be rebuilt from without reading the whole log (rule 21).

Of each idempotent producer only the last five batches matter, so a log keeps the headers of those in memory as it is
written, and a copy in a file for the beginning of each segment. Opening a log or cutting it back reads one segment.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from harness.reference.core.messages import RecordBatch
from harness.reference.core.producers import BATCHES_KEPT, PRODUCERS_KEPT
from harness.reference.core.types import NONE

_EMPTY: Final = b""


class ProducerTail:
    """The last batches of each producer, as headers: ``records`` is empty."""

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
        kept.append(
            RecordBatch(
                batch.count,
                batch.size_bytes,
                _EMPTY,
                batch.base_offset,
                batch.leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
            )
        )
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

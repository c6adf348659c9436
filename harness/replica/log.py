"""The log of one replica, as the core sees it, and the one that lives in memory.

A log keeps two ends: what is appended (log end offset) and what is flushed. Power loss drops the difference; the death
of the process does not. It also keeps what must survive a restart beside the records: the leader epochs with their start
offsets (rule 19) and the high watermark of the last checkpoint (rule 25).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from harness.replica.messages import RecordBatch


class Log(Protocol):
    """Given to a replica when it is made. Calls are synchronous and, where they say so, durable."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""
        ...

    @property
    def end_offset(self) -> int:
        """Log end offset: one past the last record."""
        ...

    @property
    def flushed_offset(self) -> int:
        """One past the last record that survives a power loss."""
        ...

    def append(self, batch: RecordBatch) -> None:
        """Append; ``batch.base_offset`` equals ``end_offset`` and its epoch is not below the last one."""
        ...

    def read(self, offset: int, limit_offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Whole batches from the one that holds ``offset``, all ending at or before ``limit_offset``.

        At least one batch is returned if there is one, however large (KIP-74).
        """
        ...

    def batches(self, offset: int) -> Iterator[RecordBatch]:
        """Every batch from the one that holds ``offset`` on, to rebuild producer state (rule 21)."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Drop every record at or after ``offset``, and epochs that start there or later."""
        ...

    def reset_to(self, offset: int) -> None:
        """Drop everything and start again, empty, at ``offset``."""
        ...

    def flush(self) -> None:
        """Make everything appended durable."""
        ...

    def epochs(self) -> Sequence[tuple[int, int]]:
        """(leader epoch, start offset), ascending in both."""
        ...

    def start_epoch(self, epoch: int, offset: int) -> None:
        """Remember durably that ``epoch`` starts at ``offset``, even if nothing is ever written in it (KAFKA-7415)."""
        ...

    def checkpoint_high_watermark(self, offset: int) -> None:
        """Remember the high watermark durably."""
        ...

    def checkpointed_high_watermark(self) -> int:
        """The high watermark of the last checkpoint, 0 if there is none."""
        ...

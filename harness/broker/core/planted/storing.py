"""Wrong forms of the log: how it is read again after an end, and what is written down of it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import RecordBatch


class SkipsBadBatches(MemoryLog):
    """Recovery leaves out a bad batch and keeps what is behind it, instead of ending the log there (rule 25): S35."""

    def recover(self) -> None:
        while self._bad(self.batches[-1:]):
            self.truncate_to(self.batches[-1].base_offset)
        bad = self._bad(self.batches)
        self.batches[:] = [batch for batch in self.batches if batch not in bad]
        self._bases[:] = [batch.base_offset for batch in self.batches]
        self._closed = False

    def _bad(self, batches: Sequence[RecordBatch]) -> list[RecordBatch]:
        return [batch for batch in batches if not batch.intact and self.is_read_again]


class CheckpointsLogEnd(MemoryLog):
    """The log end is written down as the high watermark (rule 25): after a restart it covers what was not committed."""

    def checkpoint_high_watermark(self, offset: int) -> None:  # noqa: ARG002
        super().checkpoint_high_watermark(self.end_offset)


class KeepsTornBatches(MemoryLog):
    """Recovery keeps the batch that a loss of power left half written, if it is the last one (rule 25)."""

    def recover(self) -> None:
        torn = self.batches[-1:]
        if torn and not torn[0].intact:
            self._closed = True
        super().recover()


class StaysClosed(MemoryLog):
    """A log that was closed once counts as closed for ever: no later start reads it again (rule 25)."""

    def recover(self) -> None:
        closed = self._closed
        super().recover()
        self._closed = closed

"""Wrong cleaners: what goes from a compacted log, and when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.broker.core.cleaner import Cleaner
from harness.broker.core.log import Cleanable
from harness.broker.core.messages import Deletion, RecordBatch


class RemovesTombstonesOnePassEarly(Cleaner):
    """A tombstone goes in the first pass that meets it, with what it deletes, and no time is set (rule 32)."""

    def _is_over(self, record: Any, batch: RecordBatch, now_us: int) -> bool:  # noqa: ARG002
        return type(record) is Deletion


class CleansAboveHighWatermark(Cleaner):
    """Records that are not committed count too (rule 31): an earlier one of the key goes, and they are truncated."""

    def _bound(self, log: Cleanable, high_watermark: int, now_us: int) -> int:  # noqa: ARG002
        return super()._bound(log, log.segments[-1], now_us)


class KeepsFirstValues(Cleaner):
    """The first record of a key in the dirty part stays, and later ones go (rule 31)."""

    def _last_offsets(self, log: Cleanable, below: Sequence[RecordBatch]) -> dict[bytes, int]:
        first: dict[bytes, int] = {}
        for batch in below:
            if batch.base_offset >= log.cleaned_to:
                for offset, record in batch.placed():
                    first.setdefault(record[0], offset)
        return first

    def _stays(self, offset: int, record: Any, last_offsets: dict[bytes, int]) -> bool:
        return last_offsets.get(record[0], offset) == offset


class IgnoresCompactionLag(Cleaner):
    """Records go at any age, whatever min.compaction.lag.ms says (rule 31)."""

    def _bound(self, log: Cleanable, high_watermark: int, now_us: int) -> int:  # noqa: ARG002
        return min(high_watermark, log.segments[-1])

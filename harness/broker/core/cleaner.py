"""The cleaner of one replica of a compacted topic: the last record of each key stays, earlier ones go (rules 31, 32).

Each replica cleans for itself, at times of its own. A *pass* goes through the log from its start to its bound::

    0        cleaned_to       bound          high watermark    end
    | clean       | dirty       | not yet, or the segment written to |

A record goes if the dirty part has a later one of its key. Offsets never change, so gaps are left. A tombstone stays as
the last record of its key; the first pass that leaves it there writes a time limit into its batch, delete.retention.ms
from now, and a pass after that time removes it. A copy of a batch keeps the limit that its leader wrote. A transaction
that was aborted leaves no record; the marker of one that has no batch left goes as a tombstone does.

So a replica that was away when a key was deleted, and comes back when the others have removed both record and
tombstone, is told of neither, and keeps the record (docs/findings/006-compaction-race.md). Where tombstones wait for
replicas, which is no rule of Kafka's, a tombstone or a marker goes from the leader's log alone, and only when every
replica, in sync or not, has said that its cleaner was past it: what it deletes is on no disk then.

Simplified: segments end by time alone, memory holds the last offset of every dirty key, and a cleaner looks at its log
every log.cleaner.backoff.ms instead of choosing the dirtiest of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from harness.broker.core.follower import CleanedFollower
from harness.broker.core.log import Cleanable
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, TopicConfig

#: An end behind every log.
EVERYTHING: Final = 2**62


class Pass(msgspec.Struct, frozen=True):
    """One pass over a log up to the offset ``bound``, with counts of the ``records`` and ``tombstones`` it removed."""

    bound: int
    records: int
    tombstones: int


class Cleaner:
    """Cleans logs of one topic by its settings. It keeps nothing between two passes: all of that is on the log."""

    _lag_us: int
    _retention_us: int
    _ratio: float

    def __init__(self, config: TopicConfig) -> None:
        self._lag_us = config.min_compaction_lag_ms * 1000
        self._retention_us = config.delete_retention_ms * 1000
        self._ratio = config.min_cleanable_dirty_ratio

    def clean(self, log: Cleanable, high_watermark: int, now_us: int, removable_to: int = EVERYTHING) -> Pass | None:
        """One pass over ``log``, or None where too little of it is dirty, or a bad batch is in the way.

        No tombstone and no marker goes that is not below ``removable_to``.
        """
        bound = self._bound(log, high_watermark, now_us)
        bound = next((b.base_offset for b in log.batches if b.base_offset < bound < b.next_offset), bound)
        below = [batch for batch in log.batches if batch.next_offset <= bound]
        if not self._is_due(log, below) or not all(batch.intact for batch in below):
            return None
        aborted = {batch.base_offset for batch in below if log.producers.transactions.is_aborted(batch)}
        last_offsets = self._last_offsets(log, [batch for batch in below if batch.base_offset not in aborted])
        ended = _empty_markers(below)
        cleaned = [
            _emptied(batch) if batch.base_offset in aborted
            else self._limited(batch, now_us) if batch.base_offset in ended
            else self._cleaned(batch, last_offsets, now_us, removable=batch.next_offset <= removable_to)
            for batch in below
        ]  # fmt: skip
        kept = [
            after
            for before, after in zip(below, cleaned, strict=True)
            if after.records or self._must_stay(log, before, below[-1], now_us, before.next_offset <= removable_to)
        ]
        log.replace_below(bound, kept)
        tombstones = _tombstones(below) - _tombstones(cleaned)
        records = sum(len(batch.records) for batch in below) - sum(len(batch.records) for batch in cleaned)
        return Pass(bound, records - tombstones, tombstones)

    def _bound(self, log: Cleanable, high_watermark: int, now_us: int) -> int:
        """The end of a pass: what is not committed or decided stays, and the newest segment, and too young ones."""
        bound = min(log.producers.transactions.stable_end(high_watermark), log.segments[-1])
        if self._lag_us:
            for first, end in pairwise(log.segments):
                stamps = [batch.stamped_us for batch in log.batches if first <= batch.base_offset < end]
                if max(stamps, default=NONE) > now_us - self._lag_us:
                    return min(bound, first)
        return bound

    def _is_due(self, log: Cleanable, below: Sequence[RecordBatch]) -> bool:
        """The share of dirty bytes is above min.cleanable.dirty.ratio."""
        dirty = sum(batch.size_bytes for batch in below if batch.base_offset >= log.cleaned_to)
        return dirty > self._ratio * sum(batch.size_bytes for batch in below)

    def _last_offsets(self, log: Cleanable, below: Sequence[RecordBatch]) -> dict[bytes, int]:
        """The last offset of each key in the dirty part."""
        return {
            record[0]: offset
            for batch in below
            if batch.base_offset >= log.cleaned_to
            for offset, record in batch.placed()
        }

    def _cleaned(
        self, batch: RecordBatch, last_offsets: dict[bytes, int], now_us: int, *, removable: bool
    ) -> RecordBatch:
        """The batch without the records that go: the same one where nothing changes."""
        left = [
            (offset, record)
            for offset, record in batch.placed()
            if self._stays(offset, record, last_offsets) and not (removable and self._is_over(record, batch, now_us))
        ]
        horizon_us = batch.delete_horizon_us
        if horizon_us == NONE and any(type(record) is Deletion for _, record in left):
            horizon_us = self._horizon_us(now_us)
        if len(left) == len(batch.records) and horizon_us == batch.delete_horizon_us:
            return batch
        return _with_only(batch, left, horizon_us)

    def _limited(self, marker: RecordBatch, now_us: int) -> RecordBatch:
        """The marker with its time limit."""
        if marker.delete_horizon_us != NONE:
            return marker
        return replace(marker, delete_horizon_us=self._horizon_us(now_us))

    def _stays(self, offset: int, record: Any, last_offsets: dict[bytes, int]) -> bool:
        """No later record of its key is in the dirty part."""
        return last_offsets.get(record[0], NONE) <= offset

    def _is_over(self, record: Any, batch: RecordBatch, now_us: int) -> bool:
        """It is a tombstone, and an earlier pass has set its time limit, which is over."""
        return type(record) is Deletion and NONE != batch.delete_horizon_us <= now_us

    def _horizon_us(self, now_us: int) -> int:
        """The time limit of tombstones that a pass leaves for the first time."""
        return now_us + self._retention_us

    def _must_stay(self, log: Cleanable, batch: RecordBatch, last: RecordBatch, now_us: int, removable: bool) -> bool:
        """True if a batch stays although it has no record after the pass.

        These do: one of a leader's own, a marker that may not go yet, the last one of a producer, whose number the
        log would forget, and the last one of the pass, which a reader must get past.
        """
        if batch.base_offset == last.base_offset or log.producers.ends_with(batch):
            return True
        if batch.marker is not None:
            return not (removable and NONE != batch.delete_horizon_us <= now_us)
        return not batch.records and batch.kept is None


def _empty_markers(batches: Sequence[RecordBatch]) -> set[int]:
    """The offsets of markers whose transactions have no other batch among these."""
    begun: set[int] = set()
    empty: set[int] = set()
    for batch in batches:
        if batch.transactional and batch.marker is None:
            begun.add(batch.producer_id)
        elif batch.marker is not None and batch.producer_id not in begun:
            empty.add(batch.base_offset)
        elif batch.marker is not None:
            begun.discard(batch.producer_id)
    return empty


def _emptied(batch: RecordBatch) -> RecordBatch:
    return _with_only(batch, [], batch.delete_horizon_us)


def _with_only(batch: RecordBatch, left: Sequence[tuple[int, Any]], horizon_us: int) -> RecordBatch:
    """The batch with these records at their offsets, and a time limit of its tombstones."""
    return replace(
        batch,
        size_bytes=batch.size_bytes * len(left) // max(len(batch.records), 1),
        records=tuple(record for _, record in left),
        kept=tuple(offset for offset, _ in left),
        delete_horizon_us=horizon_us,
    )


def _tombstones(batches: Sequence[RecordBatch]) -> int:
    return sum(type(record) is Deletion for batch in batches for record in batch.records)


def cleaned_everywhere(replica: Replica) -> int:
    """The cleaners of all replicas were past all below this offset, by the word of each; only a leader knows."""
    if not replica.leading:
        return NONE
    followers = replica.followers.values()
    return min((each.cleaned_to if type(each) is CleanedFollower else NONE for each in followers), default=EVERYTHING)


def cleaner_of(make: type[Cleaner], config: TopicConfig) -> Cleaner | None:
    """The cleaner of a topic's logs, None where every record stays."""
    return make(config) if config.compacted else None

"""The log of one replica, as the core sees it, and the one that lives in memory.

A log keeps two ends: what is appended (log end offset) and what is flushed. Power loss drops the difference; the death
of the process does not. It also keeps what else must survive a restart: the leader epochs with their
start offsets (rule 19), the high watermark of the last checkpoint (rule 25), and the state of producers (rule 21).

A batch on a disk may be *bad*: damaged, or torn, if a loss of power left it half written. Its checksum shows that, but
a broker reads its log again only when it starts after an unclean stop (rule 25). Otherwise followers and consumers meet
a bad batch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from harness.broker.core.messages import RecordBatch
from harness.broker.core.producers import Producers
from harness.broker.core.types import NONE, Outside


class Log(Protocol):
    """Given to a replica when it is made. Calls are synchronous and, where noted, durable."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""

    @property
    def end_offset(self) -> int:
        """Log end offset: one past the last record."""

    @property
    def flushed_offset(self) -> int:
        """One past the last record that survives a power loss."""

    @property
    def producers(self) -> Producers:
        """The idempotent producers whose batches are in the log (rule 21); another object after a truncation."""

    def append(self, batch: RecordBatch) -> None:
        """Append; ``batch.base_offset`` equals ``end_offset`` and its epoch is not below the last one."""

    def control_batch(self) -> RecordBatch:
        """A batch with one record of the leader's own, which consumers pass over."""

    def as_written(self, batch: RecordBatch) -> RecordBatch:
        """A batch that was read, with its records as a coordinator gave them to :meth:`append`: (key, value) each."""

    def read(self, offset: int, limit_offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Whole batches from the one that holds ``offset``, all ending at or before ``limit_offset``.

        At least one batch is returned if there is one, however large (KIP-74).
        """

    def truncate_to(self, offset: int) -> None:
        """Drop every record at or after ``offset``, and epochs that start there or later."""

    def reset_to(self, offset: int) -> None:
        """Drop everything and start again, empty, at ``offset``."""

    def flush(self) -> None:
        """Make everything appended durable."""

    def epochs(self) -> Sequence[tuple[int, int]]:
        """(leader epoch, start offset), ascending in both."""

    def start_epoch(self, epoch: int, offset: int) -> None:
        """Remember durably that ``epoch`` starts at ``offset``, even if nothing is ever written in it (KAFKA-7415)."""

    def checkpoint_high_watermark(self, offset: int) -> None:
        """Remember the high watermark durably."""

    def checkpointed_high_watermark(self) -> int:
        """The high watermark of the last checkpoint, 0 before the first."""

    def close(self) -> None:
        """Stop cleanly: everything is durable, and the next start need not read it again. No call may follow."""

    @property
    def cleanable(self) -> Cleanable | None:
        """The same log, as its cleaner sees it; None where logs cannot be cleaned."""


class Cleanable(Protocol):
    """A log from which records go: it has segments, and gaps where a cleaner was (rules 31 to 33, 47)."""

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""

    @property
    def end_offset(self) -> int:
        """Log end offset: one past the last record."""

    @property
    def batches(self) -> Sequence[RecordBatch]:
        """All that is left, offsets ascending."""

    @property
    def segments(self) -> Sequence[int]:
        """First offsets of the segments, ascending; the last one is written to, and never cleaned."""

    @property
    def cleaned_to(self) -> int:
        """A cleaner has been through all below this offset; the rest is dirty."""

    @property
    def producers(self) -> Producers:
        """The idempotent producers whose batches are in the log (rule 21)."""

    def roll(self) -> None:
        """Begin a new segment at the log's end."""

    def first_stamp_us(self) -> int:
        """The time stamp of the first batch in the segment that is written to, NONE while it is empty."""

    def skip_to(self, offset: int) -> None:
        """Let the log end at ``offset``: where it is copied from, a cleaner has removed what was in between."""

    def replace_below(self, offset: int, batches: Sequence[RecordBatch]) -> None:
        """Put cleaned ``batches`` in the place of all below ``offset``, durably, as one segment."""

    def drop_below(self, offset: int) -> None:
        """Let the log start at ``offset``, durably: what is below is gone, and producers stay known (rule 47)."""


class MemoryLog:
    """A log in memory. It outlives the broker object that was made with it, as a disk outlives a killed process.

    Truncation works on whole batches: an offset inside a batch drops that batch; one in a gap becomes the end.
    ``durable_offset`` is one past the last record that a loss of power leaves: the ``flushed_offset``, unless the disk
    ``lies`` and calls flushed what is in its own cache.
    """

    lies: bool
    #: The high watermark and the epochs that were on the disk when it began to lie: no disk of a search does.
    _before_lies: Outside[tuple[int, list[tuple[int, int]]]]
    #: The last batches of producers below the log's start: no log of a search starts later than it began.
    _below: Outside[list[RecordBatch]]
    durable_offset: int
    batches: list[RecordBatch]
    producers: Producers
    start_offset: int
    end_offset: int
    flushed_offset: int
    segments: list[int]
    cleaned_to: int
    _closed: bool
    _bases: list[int]
    _epochs: list[tuple[int, int]]
    _last_epoch: int
    _high_watermark: int

    def __init__(self) -> None:
        self.lies = False
        self._before_lies = (0, [])
        self._below = []
        self.durable_offset = 0
        self._closed = False
        self.batches = []
        self.producers = Producers()
        self._bases = []
        self._epochs = []
        self._last_epoch = NONE
        self._high_watermark = 0
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.segments = [0]
        self.cleaned_to = 0

    def append(self, batch: RecordBatch) -> None:
        """Keep the batch. Where it would overfill the segment, that is flushed, and the next one begins.

        Raises:
            ValueError: the batch does not follow the log's end, or its epoch is below the last one.
        """
        if batch.base_offset != self.end_offset:
            raise ValueError(f"batch at {batch.base_offset} does not follow the log's end {self.end_offset}")
        if batch.leader_epoch != self._last_epoch:
            if batch.leader_epoch < self._last_epoch:
                raise ValueError(f"a batch of epoch {batch.leader_epoch} does not follow epoch {self._last_epoch}")
            self.start_epoch(batch.leader_epoch, batch.base_offset)
        self.batches.append(batch)
        self._bases.append(batch.base_offset)
        self.end_offset += batch.count
        if batch.producer_id != NONE:
            self.producers.record(batch)

    def control_batch(self) -> RecordBatch:
        """Make a batch that takes an offset and has no record."""
        return RecordBatch(1, 0, ())

    def as_written(self, batch: RecordBatch) -> RecordBatch:
        """Give the batch itself: memory keeps records as they are."""
        return batch

    def read(self, offset: int, limit_offset: int, max_bytes: int) -> Sequence[RecordBatch]:
        """Read the kept batches without copying them."""
        if offset >= self.end_offset or offset >= limit_offset:
            return ()
        batches: list[RecordBatch] = []
        size = 0
        first = max(bisect_right(self._bases, offset) - 1, 0)
        if self.batches and self.batches[first].next_offset <= offset:  # The offset is in a gap.
            first += 1
        for index in range(first, len(self.batches)):
            batch = self.batches[index]
            size += batch.size_bytes
            if batch.base_offset + batch.count > limit_offset or (batches and size > max_bytes):
                break
            batches.append(batch)
        return batches

    def truncate_to(self, offset: int) -> None:
        """Drop whole batches; the producers' state is made again from those that stay.

        Below its start a log has nothing to keep: it begins again, empty, at ``offset``.
        """
        if offset < self.start_offset:
            self.reset_to(offset)
            return
        end = max(min(offset, self.end_offset), self.start_offset)
        keep = bisect_left(self._bases, offset)
        if keep and self.batches[keep - 1].next_offset > offset:
            keep -= 1
            end = self._bases[keep]
        if keep < len(self.batches):
            del self.batches[keep:], self._bases[keep:]
            self.producers = Producers([*self._below, *self.batches])
        self.end_offset = end
        while len(self.segments) > 1 and self.segments[-1] > end:
            self.segments.pop()
        self.cleaned_to = min(self.cleaned_to, end)
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        self.durable_offset = min(self.durable_offset, self.end_offset)
        while self._epochs and self._epochs[-1][1] >= offset:
            self._epochs.pop()
        self._last_epoch = self._epochs[-1][0] if self._epochs else NONE

    def reset_to(self, offset: int) -> None:
        """Drop everything; ``offset`` is the high watermark of the checkpoint too."""
        self.batches.clear()
        self._bases.clear()
        self._epochs.clear()
        self._last_epoch = NONE
        self._below = []
        self.producers = Producers()
        self.start_offset = self.end_offset = self.flushed_offset = self._high_watermark = offset
        self.durable_offset = offset
        self.segments = [offset]
        self.cleaned_to = offset

    def flush(self) -> None:
        """Call everything flushed; a disk that lies has not written it."""
        self.flushed_offset = self.end_offset
        if not self.lies:
            self.durable_offset = self.end_offset

    def epochs(self) -> Sequence[tuple[int, int]]:
        """Return the log's own list, which the caller must not change."""
        return self._epochs

    def start_epoch(self, epoch: int, offset: int) -> None:
        """Remember the epoch. An earlier one that starts at the same offset held no record, and is forgotten."""
        if epoch <= self._last_epoch:
            return
        while self._epochs and self._epochs[-1][1] >= offset:
            self._epochs.pop()
        self._epochs.append((epoch, offset))
        self._last_epoch = epoch

    def checkpoint_high_watermark(self, offset: int) -> None:
        """Remember it at once: in memory a checkpoint costs nothing."""
        self._high_watermark = offset

    def checkpointed_high_watermark(self) -> int:
        """The last that was remembered; the disk keeps it through a loss of power, unless it lies."""
        return self._high_watermark

    # --- what a cleaner does -------------------------------------------------------------------------------------

    @property
    def cleanable(self) -> Cleanable:
        """The log itself."""
        return self

    def roll(self) -> None:
        """Begin a new segment at the end, unless one begins there."""
        if self.segments[-1] < self.end_offset:
            self.segments.append(self.end_offset)

    def first_stamp_us(self) -> int:
        """Look it up."""
        first = bisect_left(self._bases, self.segments[-1])
        return self.batches[first].stamped_us if first < len(self.batches) else NONE

    def skip_to(self, offset: int) -> None:
        """Move the end."""
        self.end_offset = max(self.end_offset, offset)

    def replace_below(self, offset: int, batches: Sequence[RecordBatch]) -> None:
        """Put them there; the segments of what they replace are merged into the first."""
        old = bisect_left(self._bases, offset)
        self.batches[:old] = batches
        self._bases[:old] = [batch.base_offset for batch in batches]
        self.segments = [self.segments[0], *(first for first in self.segments[1:] if first >= offset)]
        self.cleaned_to = offset
        self.producers.transactions.keep_with_records(offset, batches)
        self.flushed_offset = max(self.flushed_offset, offset)
        if not self.lies:
            self.durable_offset = max(self.durable_offset, offset)

    # --- what retention does -------------------------------------------------------------------------------------

    def drop_below(self, offset: int) -> None:
        """Drop whole batches; the epoch at ``offset`` starts there now, and earlier ones are forgotten."""
        last_ones = [batch for batch in self.producers.batches() if batch.base_offset < offset]
        self._below = [
            replace(batch, transactional=False) for batch in last_ones
        ]  # What they opened is not in the log.
        keep = bisect_left(self._bases, offset)
        if keep and self.batches[keep - 1].next_offset > offset:
            keep -= 1
        del self.batches[:keep], self._bases[:keep]
        self.start_offset = offset
        self.segments = [offset, *(first for first in self.segments if first > offset)]
        earlier = bisect_right(self._epochs, offset, key=lambda pair: pair[1])
        if earlier:
            self._epochs[:earlier] = [(self._epochs[earlier - 1][0], offset)]
        self.cleaned_to = max(self.cleaned_to, offset)
        self.flushed_offset = max(self.flushed_offset, offset)
        self.durable_offset = max(self.durable_offset, offset)

    # --- what happens to a disk, and what a start finds on it ----------------------------------------------------

    def lie(self) -> None:
        """From now on the disk only says that it writes: records, the checkpoint and the leader epochs."""
        if not self.lies:
            self.lies = True
            self._before_lies = (self._high_watermark, [*self._epochs])

    def obey(self) -> None:
        """The disk writes all that it called flushed, and lies no more."""
        self.lies, self.durable_offset = False, self.flushed_offset

    def lose_unflushed(self) -> int:
        """Power loss: drop what is not durable; returns the number of records that are gone.

        The first lost batch was half written: it stays, torn, until the log is recovered.
        """
        first = bisect_left(self._bases, self.durable_offset)
        lost = sum(batch.count for batch in self.batches[first:])
        if lost:
            self.truncate_to(self.batches[first].next_offset)
            self.damage(first)
        elif self.end_offset > self.durable_offset:  # A gap.
            self.truncate_to(self.durable_offset)
        if self.lies:
            self._high_watermark, epochs = self._before_lies
            self._epochs = [(epoch, start) for epoch, start in epochs if start <= self.end_offset]
            self._last_epoch = self._epochs[-1][0] if self._epochs else NONE
        return lost

    def damage(self, position: int) -> None:
        """Make the batch at ``position`` of ``batches`` a bad one."""
        self.batches[position] = replace(self.batches[position], intact=False)

    @property
    def is_read_again(self) -> bool:
        """The last stop was not clean: the next start looks at every batch (rule 25)."""
        return not self._closed

    def close(self) -> None:
        """Flush; the next start does not read the log again."""
        self.flush()
        self._closed = True

    def recover(self) -> None:
        """A start (rule 25): unless the log was closed, it is read again and ends before the first bad batch."""
        bad = next((number for number, batch in enumerate(self.batches) if not batch.intact), None)
        if bad is not None and not self._closed:
            self.truncate_to(self.batches[bad - 1].next_offset if bad else self.start_offset)
        self._closed = False

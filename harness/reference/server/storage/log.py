"""The log of one replica in files: what :class:`harness.reference.core.log.Log` asks for, on a real disk.

Layout of the directory: ``<base offset>.log`` with ``.producers`` beside it and ``.index`` beside finished ones,
``leader-epochs``, ``high-watermark``, ``recovery-point`` and, after a clean stop only, ``clean-shutdown``.

* Appended batches go to the file at once (one gathering write), so the death of the process loses nothing.
* Flushed means fsync. A segment is flushed when the next one begins, so only the last one can hold unflushed batches.
* After an unclean stop everything from the recovery point (the last roll) on is read again with CRC-32C; the first
  batch that is not intact ends the log there and later segments are deleted (replication rule 25).
* Memory does not grow with the log: per segment one small object, the index of the segment being written, those of
  :data:`LOADED_INDEXES` finished ones, and where the last :data:`CURSORS` reads ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from harness.machine.durable_files import remove_durably, sync_directory, write_durably
from harness.reference.core.messages import RecordBatch
from harness.reference.core.producers import Producers
from harness.reference.core.types import NONE
from harness.reference.server.storage.batches import LEADER_CHANGE, BatchError, encoded, max_timestamp_ms
from harness.reference.server.storage.checkpoints import EpochFile, OffsetFile, load_producers, save_producers
from harness.reference.server.storage.segment import Segment, SparseIndex

SEGMENT_BYTES: Final = 16 * 1024 * 1024
LOADED_INDEXES: Final = 4
CURSORS: Final = 16


class SegmentLog:
    """One replica's log in ``directory``, which is created if it is not there. Opening recovers it.

    ``damage`` is what recovery found wrong, in words, or None.

    Raises:
        OSError: from any call, when the disk refuses; nothing was half appended.
    """

    def __init__(self, directory: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._epochs = EpochFile(directory / "leader-epochs")
        self._high_watermark = OffsetFile(directory / "high-watermark", 0)
        self._recovery_point = OffsetFile(directory / "recovery-point", 0)
        self._clean = directory / "clean-shutdown"
        self._indexes: OrderedDict[int, SparseIndex] = OrderedDict()
        self._cursors: OrderedDict[int, tuple[int, int]] = OrderedDict()
        self._segments = [Segment(directory, int(path.stem)) for path in sorted(directory.glob("*.log"))]
        self._index = SparseIndex()
        self.producers = Producers()
        self.end_offset = 0
        self.damage: str | None = None
        self._open()
        self.flushed_offset = min(self._recovery_point.value, self.end_offset)

    # --- opening and closing ---------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self._segments:
            self._begin(0)
            return
        clean = self._clean.exists() and int(self._clean.read_text()) == self._recovery_point.value
        remove_durably(self._clean)
        first = max(bisect_right(self._bases(), self._recovery_point.value) - 1, 0)
        self.end_offset = self._segments[first].base_offset
        self.producers = self._producers_before(first)
        for number in range(first, len(self._segments)):
            if not self._recover(number, verify=not clean):
                break
        self._active.open_for_writing()
        self._epochs.replace([(epoch, offset) for epoch, offset in self._epochs.entries if offset <= self.end_offset])

    def _recover(self, number: int, *, verify: bool) -> bool:
        """Read a segment to its end, or to the first batch that is not intact or not next: the log then ends there."""
        segment = self._segments[number]
        if segment.base_offset != self.end_offset:
            self.damage = f"{segment.path} does not begin at {self.end_offset}, where the segment before it ends"
            self._drop_segments_after(number - 1)
            return False
        self._index, position = SparseIndex(), 0
        try:
            for at, batch in segment.scan(0, verify=verify):
                if batch.base_offset != self.end_offset:
                    raise BatchError(f"{segment.path} continues with {batch.base_offset} instead of {self.end_offset}")
                self._learn(batch, at)
                self._learn_epoch(batch)
                position, self.end_offset = at + batch.size_bytes, batch.next_offset
        except BatchError as error:
            self.damage = str(error)
            self._drop_segments_after(number)
            segment.cut(position)
            return False
        return True

    def close(self) -> None:
        """Stop cleanly: everything is durable and the next opening need not check it. No call may follow."""
        self.flush()
        self._recovery_point.write(self.end_offset)
        write_durably(self._clean, f"{self.end_offset}\n".encode())
        self._active.close()

    # --- ends ------------------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""
        return self._segments[0].base_offset

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, batch: RecordBatch) -> None:
        """Append; ``batch.base_offset`` equals ``end_offset`` and its epoch is not below the last one."""
        if batch.base_offset != self.end_offset or batch.leader_epoch < self._epochs.last:
            raise ValueError(
                f"a batch at offset {batch.base_offset} of epoch {batch.leader_epoch} does not follow offset "
                f"{self.end_offset} of epoch {self._epochs.last}"
            )
        active = self._active
        if active.size_bytes and active.size_bytes + batch.size_bytes > self._segment_bytes:
            active = self._roll()
        self._learn_epoch(batch)
        position = active.size_bytes
        active.write(encoded(batch))
        self._learn(batch, position)
        self.end_offset = batch.next_offset

    def control_batch(self) -> RecordBatch:
        """A batch with one record that is no client's, and that consumers pass over."""
        return LEADER_CHANGE

    def flush(self) -> None:
        """Make everything appended durable."""
        if self.flushed_offset < self.end_offset:
            self._active.sync()
            self.flushed_offset = self.end_offset

    def truncate_to(self, offset: int) -> None:
        """Drop durably every record at or after ``offset`` (a batch across it goes whole), and epochs from there on."""
        self._epochs.replace([entry for entry in self._epochs.entries if entry[1] < offset])
        if offset >= self.end_offset:
            return
        if offset <= self.start_offset:
            self._reset_segments(self.start_offset)
            return
        number = self._holding(offset)
        segment = self._segments[number]
        position, end = self._locate(segment, offset)
        self._recovery_point.write(min(self._recovery_point.value, segment.base_offset))
        self._drop_segments_after(number)
        segment.cut(position)
        segment.index_path.unlink(missing_ok=True)
        segment.latest_ms = None
        self._index, self.producers = SparseIndex(), self._producers_before(number)
        for at, batch in segment.scan(0):
            self._learn(batch, at)
        self._forget(end)

    def reset_to(self, offset: int) -> None:
        """Drop everything and start again, empty, at ``offset``."""
        self._epochs.replace([])
        self._high_watermark.write(offset)
        self._reset_segments(offset)

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self, offset: int, limit_offset: int, max_bytes: int) -> list[RecordBatch]:
        """Whole batches from the one that holds ``offset``, all ending at or before ``limit_offset``.

        At least one batch is returned if there is one, however large (KIP-74).
        """
        found: list[RecordBatch] = []
        budget = max_bytes
        for at, batch in self._scan(offset):
            if batch.next_offset > limit_offset or (found and batch.size_bytes > budget):
                break
            found.append(batch)
            budget -= batch.size_bytes
            end = at + batch.size_bytes
            if budget <= 0:
                break
        if found:
            self._remember(found[-1].next_offset, end)
        return found

    def first_at(self, timestamp_ms: int, limit_offset: int) -> RecordBatch | None:
        """The first batch below ``limit_offset`` that holds a timestamp at or after ``timestamp_ms``, at least 0.

        Looks at one number a segment and reads one index interval, however long the log is.
        """
        segment = next((one for one in self._segments if self._latest_ms(one) >= timestamp_ms), None)
        if segment is None or segment.base_offset >= limit_offset:
            return None
        for _, batch in segment.scan(self._index_of(segment).floor_in_time(timestamp_ms)):
            if batch.next_offset > limit_offset:
                return None
            if max_timestamp_ms(batch) >= timestamp_ms:
                return batch
        return None

    # --- what survives beside the records --------------------------------------------------------------------------

    def epochs(self) -> list[tuple[int, int]]:
        """(leader epoch, start offset), ascending in both; the list is the log's own and not to be changed."""
        return self._epochs.entries

    def start_epoch(self, epoch: int, offset: int) -> None:
        """Remember durably that ``epoch`` starts at ``offset``, even if nothing is ever written in it (KAFKA-7415).

        An epoch that is not newer than the last is ignored; an earlier one that starts there too held no records and is
        forgotten.
        """
        if epoch > self._epochs.last:
            kept = [entry for entry in self._epochs.entries if entry[1] < offset]
            self._epochs.replace([*kept, (epoch, offset)])

    def checkpoint_high_watermark(self, offset: int) -> None:
        """Remember the high watermark durably."""
        self._high_watermark.write(offset)

    def checkpointed_high_watermark(self) -> int:
        """The high watermark of the last checkpoint, 0 if there is none."""
        return self._high_watermark.value

    # --- inside ----------------------------------------------------------------------------------------------------

    @property
    def _active(self) -> Segment:
        return self._segments[-1]

    def _bases(self) -> list[int]:
        return [segment.base_offset for segment in self._segments]

    def _holding(self, offset: int) -> int:
        """Number of the segment that holds ``offset``."""
        if offset >= self._active.base_offset:
            return len(self._segments) - 1
        return max(bisect_right(self._bases(), offset) - 1, 0)

    def _learn(self, batch: RecordBatch, position: int) -> None:
        """``batch`` is in the segment being written, at ``position``."""
        self._index.note(batch, position)
        if batch.producer_id != NONE:
            self.producers.record(replace(batch, records=b""))

    def _learn_epoch(self, batch: RecordBatch) -> None:
        if batch.leader_epoch > self._epochs.last:
            self.start_epoch(batch.leader_epoch, batch.base_offset)

    def _begin(self, base_offset: int) -> None:
        segment = Segment(self._directory, base_offset)
        segment.open_for_writing()
        save_producers(segment.producers_path, self.producers)
        sync_directory(self._directory)
        self._segments.append(segment)
        self._index = SparseIndex()
        self.end_offset = base_offset

    def _roll(self) -> Segment:
        self.flush()
        finished = self._active
        self._index.save(finished.index_path)
        finished.latest_ms = self._index.latest_ms
        finished.close()
        self._begin(self.end_offset)
        self._recovery_point.write(self.end_offset)
        return self._active

    def _reset_segments(self, offset: int) -> None:
        self._recovery_point.write(min(self._recovery_point.value, offset))
        while self._segments:
            self._segments.pop().delete()
        self.producers = Producers()
        self._begin(offset)
        self._forget(offset)

    def _drop_segments_after(self, number: int) -> None:
        while len(self._segments) > number + 1:
            self._segments.pop().delete()

    def _producers_before(self, number: int) -> Producers:
        """Producer state where a segment begins, from its file or else from all that is before it."""
        saved = load_producers(self._segments[number].producers_path)
        if saved is not None:
            return saved
        return Producers(
            replace(batch, records=b"") for segment in self._segments[:number] for _, batch in segment.scan(0)
        )

    def _forget(self, end: int) -> None:
        self._cursors.clear()
        self._indexes.clear()
        self.end_offset = end
        self.flushed_offset = min(self.flushed_offset, end)

    def _remember(self, offset: int, position: int) -> None:
        self._cursors[offset] = (self._segments[self._holding(offset - 1)].base_offset, position)
        if len(self._cursors) > CURSORS:
            self._cursors.popitem(last=False)

    def _latest_ms(self, segment: Segment) -> int:
        if segment is self._active:
            return self._index.latest_ms
        if segment.latest_ms is None:
            segment.latest_ms = self._index_of(segment).latest_ms
        return segment.latest_ms

    def _index_of(self, segment: Segment) -> SparseIndex:
        if segment is self._active:
            return self._index
        index = self._indexes.pop(segment.base_offset, None) or SparseIndex.load(segment.index_path)
        index = index or segment.build_index()
        self._indexes[segment.base_offset] = index
        if len(self._indexes) > LOADED_INDEXES:
            self._indexes.popitem(last=False)
        return index

    def _locate(self, segment: Segment, offset: int) -> tuple[int, int]:
        """Position and base offset of the batch that holds ``offset`` or, if there is none, the segment's end."""
        for position, batch in segment.scan(self._index_of(segment).floor(offset)):
            if batch.next_offset > offset:
                return position, batch.base_offset
        return segment.size_bytes, self.end_offset

    def _scan(self, offset: int) -> Iterator[tuple[int, RecordBatch]]:
        """(position, batch) from the batch that holds ``offset`` to the end the log has now."""
        if not self.start_offset <= offset < self.end_offset:
            return
        number = self._holding(offset)
        segments = self._segments[number:]
        base, position = self._cursors.get(offset, (-1, 0))
        if base != segments[0].base_offset:
            position = self._index_of(segments[0]).floor(offset)
        for segment in segments:
            for found in segment.scan(position):
                if found[1].next_offset > offset:
                    yield found
            position = 0

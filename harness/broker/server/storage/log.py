"""The log of one replica in a file: what :class:`harness.broker.core.log.Log` asks for, on a real disk.

Layout of the directory: ``<start offset>.log`` with all record batches and beside it ``leader-epochs``,
``high-watermark`` and, after a clean stop only, ``clean-shutdown``.

* Appended batches go to the file at once (one gathering write), so the death of the process loses nothing.
* Flushed means fsync.
* After an unclean stop the file is read again with CRC-32C. The first batch that is not intact ends the log
  (replication rule 25).
* Memory holds three numbers for each batch, and no records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path

from msgspec.structs import replace

from harness.broker.core.messages import RecordBatch
from harness.broker.core.producers import Producers
from harness.broker.core.types import NONE
from harness.broker.server.storage.batch_file import BatchFile
from harness.broker.server.storage.batches import (
    LEADER_CHANGE,
    BatchError,
    encoded,
    max_timestamp_ms,
    of_broker,
    split,
    to_broker,
)
from harness.broker.server.storage.checkpoints import CleanShutdown, EpochFile, OffsetFile
from harness.ground.machine.durable_files import sync_directory


class FileLog:
    """One replica's log in ``directory``, which is created if it is not there. Opening recovers it.

    ``damage`` is what recovery found wrong, in words, or None.

    Raises:
        OSError: from any call, when the disk refuses; nothing was half appended.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._epochs = EpochFile(directory / "leader-epochs")
        self._high_watermark = OffsetFile(directory / "high-watermark", 0)
        self._clean = CleanShutdown(directory)
        self.damage: str | None = None
        self._begin(min((int(path.stem) for path in directory.glob("*.log")), default=0))
        clean = self._clean.take() != NONE
        self._recover(verify=not clean)
        self.flushed_offset = self.end_offset if clean else self.start_offset

    # --- opening and closing ---------------------------------------------------------------------------------------

    def _begin(self, start_offset: int) -> None:
        """Open the file of a log that starts at ``start_offset``; nothing in it is known yet."""
        self._file = BatchFile(self._directory, start_offset)
        sync_directory(self._directory)
        #: The begin of each batch, as offset and as position in bytes; last, the end of the log.
        self._offsets, self._positions = array("q", [start_offset]), array("q", [0])
        #: For each batch, the largest timestamp in it and in those before it.
        self._latest_ms = array("q")
        self.producers = Producers()

    def _recover(self, *, verify: bool) -> None:
        """Read the file to its end, or to the first batch that is not intact or not next: the log then ends there."""
        try:
            for batch in self._file.scan(verify=verify):
                if batch.base_offset != self.end_offset:
                    raise BatchError(f"{self._file.path} continues with {batch.base_offset}, not {self.end_offset}")
                self._learn_epoch(batch)
                self._learn(batch)
        except BatchError as error:
            self.damage = str(error)
            self._file.cut(self._positions[-1])
        self._epochs.replace([(epoch, offset) for epoch, offset in self._epochs.entries if offset <= self.end_offset])

    def close(self) -> None:
        """Stop cleanly: everything is durable and the next opening need not check it. No call may follow."""
        self.flush()
        self._clean.write(self.end_offset)
        self._file.close()

    # --- ends ------------------------------------------------------------------------------------------------------

    @property
    def start_offset(self) -> int:
        """Offset of the first record."""
        return self._offsets[0]

    @property
    def end_offset(self) -> int:
        """Log end offset: one past the last record."""
        return self._offsets[-1]

    # --- writing ---------------------------------------------------------------------------------------------------

    def append(self, batch: RecordBatch) -> None:
        """Append; ``batch.base_offset`` equals ``end_offset`` and its epoch is not below the last one."""
        if not isinstance(batch.records, bytes):
            batch = of_broker(batch)
        if batch.base_offset != self.end_offset or batch.leader_epoch < self._epochs.last:
            raise ValueError(
                f"a batch at offset {batch.base_offset} of epoch {batch.leader_epoch} does not follow offset "
                f"{self.end_offset} of epoch {self._epochs.last}"
            )
        self._learn_epoch(batch)
        self._file.write(encoded(batch))
        self._learn(batch)

    @property
    def cleanable(self) -> None:
        """No log on a disk is cleaned."""

    def control_batch(self) -> RecordBatch:
        """A batch with one record that is no client's, and that consumers pass over."""
        return LEADER_CHANGE

    def as_written(self, batch: RecordBatch) -> RecordBatch:
        """Decode what a coordinator gave to :meth:`append`."""
        return to_broker(batch)

    def flush(self) -> None:
        """Make everything appended durable."""
        if self.flushed_offset < self.end_offset:
            self._file.sync()
            self.flushed_offset = self.end_offset

    def truncate_to(self, offset: int) -> None:
        """Drop durably every record at or after ``offset`` (a batch across it goes whole), and epochs from there on.

        Below its start a log has nothing to keep: it begins again, empty, at ``offset``.
        """
        if offset < self.start_offset:
            self.reset_to(offset)
            return
        self._epochs.replace([entry for entry in self._epochs.entries if entry[1] < offset])
        if offset >= self.end_offset:
            return
        kept = max(bisect_right(self._offsets, offset) - 1, 0)
        self._file.cut(self._positions[kept])
        del self._offsets[kept + 1 :], self._positions[kept + 1 :], self._latest_ms[kept:]
        self.flushed_offset = min(self.flushed_offset, self.end_offset)
        self.producers = Producers(_remembered(batch) for batch in self._file.scan())

    def reset_to(self, offset: int) -> None:
        """Drop everything and start again, empty, at ``offset``."""
        self._epochs.replace([])
        self._high_watermark.write(offset)
        self._file.close()
        self._file.path.unlink()
        self._begin(offset)
        self.flushed_offset = offset

    # --- reading ---------------------------------------------------------------------------------------------------

    def read(self, offset: int, limit_offset: int, max_bytes: int) -> list[RecordBatch]:
        """Whole batches from the one that holds ``offset``, all ending at or before ``limit_offset``.

        At least one batch is returned if there is one, however large (KIP-74).
        """
        if not self.start_offset <= offset < self.end_offset:
            return []
        first = bisect_right(self._offsets, offset) - 1
        begin = self._positions[first]
        fitting = max(bisect_right(self._positions, begin + max_bytes) - 1, first + 1)
        end = min(bisect_right(self._offsets, limit_offset) - 1, fitting)
        return list(split(self._file.read(begin, self._positions[end]), verify=False)) if end > first else []

    def first_at(self, timestamp_ms: int, limit_offset: int) -> RecordBatch | None:
        """The first batch below ``limit_offset`` that holds a timestamp at or after ``timestamp_ms``, at least 0."""
        number = bisect_left(self._latest_ms, timestamp_ms)
        if number == len(self._latest_ms):
            return None
        return next(iter(self.read(self._offsets[number], limit_offset, 0)), None)

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
        """The high watermark of the last checkpoint, 0 before the first."""
        return self._high_watermark.value

    # --- inside ----------------------------------------------------------------------------------------------------

    def _learn(self, batch: RecordBatch) -> None:
        """``batch`` is in the file now, behind all that were learnt."""
        latest_ms = max_timestamp_ms(batch)
        self._latest_ms.append(max(self._latest_ms[-1], latest_ms) if self._latest_ms else latest_ms)
        self._offsets.append(batch.next_offset)
        self._positions.append(self._positions[-1] + batch.size_bytes)
        if batch.producer_id != NONE:
            self.producers.record(_remembered(batch))

    def _learn_epoch(self, batch: RecordBatch) -> None:
        if batch.leader_epoch > self._epochs.last:
            self.start_epoch(batch.leader_epoch, batch.base_offset)


def _remembered(batch: RecordBatch) -> RecordBatch:
    """The part of a batch that its producer's state has: no records, and the time of the last of them."""
    return replace(batch, records=b"", stamped_us=max_timestamp_ms(batch) * 1000)

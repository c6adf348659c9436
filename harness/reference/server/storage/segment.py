"""One segment of a log: a file of record batches and a sparse index from offset and time to position.

The index of the segment being written is in memory only and is rebuilt when the log is opened; that of a finished
segment is a file beside it and is loaded when somebody reads there, so that memory does not grow with the log.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.reference.core.messages import RecordBatch
from harness.reference.server.storage.batches import BatchError, CorruptBatchError, batch_size, max_timestamp_ms, parse

#: Bytes between two index entries, as index.interval.bytes of Kafka: a look-up reads at most this much too much.
INDEX_INTERVAL_BYTES: Final = 4096
#: Bytes read from a file at once while scanning.
CHUNK_BYTES: Final = 65_536
_NUMBER_BYTES: Final = 8


class SparseIndex:
    """Offset and time to position, one entry for every :data:`INDEX_INTERVAL_BYTES` of the file.

    ``latest_ms`` is the largest timestamp of the segment so far, -1 without any. Each entry remembers what it was
    before the entry's batch; these never fall, so they can be searched.
    """

    def __init__(self) -> None:
        self.offsets = array("q")
        self.positions = array("q")
        self._latest_before_ms = array("q")
        self.latest_ms = -1

    def note(self, batch: RecordBatch, position: int) -> None:
        """``batch`` starts at ``position``, behind all that were noted; kept if it is far enough from the last kept."""
        if not self.positions or position - self.positions[-1] >= INDEX_INTERVAL_BYTES:
            self.offsets.append(batch.base_offset)
            self.positions.append(position)
            self._latest_before_ms.append(self.latest_ms)
        self.latest_ms = max(self.latest_ms, max_timestamp_ms(batch))

    def floor(self, offset: int) -> int:
        """The position, in bytes, of a batch at or before ``offset``, from which to look for it."""
        at = bisect_right(self.offsets, offset) - 1
        return self.positions[at] if at >= 0 else 0

    def floor_in_time(self, timestamp_ms: int) -> int:
        """A position, in bytes, before which no batch reaches ``timestamp_ms``."""
        at = bisect_left(self._latest_before_ms, timestamp_ms) - 1
        return self.positions[at] if at >= 0 else 0

    def save(self, path: Path) -> None:
        """Write to ``path``. Not durable: a missing or damaged index is rebuilt."""
        columns = (self.offsets, self.positions, self._latest_before_ms, array("q", [self.latest_ms]))
        path.write_bytes(b"".join(column.tobytes() for column in columns))

    @classmethod
    def load(cls, path: Path) -> SparseIndex | None:
        """Read from ``path``; None if it is missing or has an impossible size."""
        content = path.read_bytes() if path.exists() else b""
        entries, odd = divmod(len(content) - _NUMBER_BYTES, 3 * _NUMBER_BYTES)
        if not content or odd:
            return None
        numbers, index = array("q", content), cls()
        index.offsets, index.positions = numbers[:entries], numbers[entries : 2 * entries]
        index._latest_before_ms, index.latest_ms = numbers[2 * entries : -1], numbers[-1]
        return index


class Segment:
    """A file whose first batch starts at ``base_offset``. ``size_bytes`` is what is valid of it.

    ``latest_ms`` is the largest timestamp in it; None while it grows, and until somebody has looked.
    """

    def __init__(self, directory: Path, base_offset: int) -> None:
        self.base_offset = base_offset
        self.path = directory / f"{base_offset:020d}.log"
        self.index_path = self.path.with_suffix(".index")
        #: Producer state where this segment begins.
        self.producers_path = self.path.with_suffix(".producers")
        self.size_bytes = self.path.stat().st_size if self.path.exists() else 0
        self.latest_ms: int | None = None
        self._write_fd: int | None = None

    def open_for_writing(self) -> None:
        """Create the file if need be and keep it open. Idempotent."""
        if self._write_fd is None:
            self._write_fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    def close(self) -> None:
        """Close the file if it was kept open."""
        if self._write_fd is not None:
            os.close(self._write_fd)
            self._write_fd = None

    def write(self, pieces: tuple[bytes, memoryview]) -> None:
        """Append ``pieces`` whole or not at all.

        Raises:
            OSError: the disk refused; nothing was appended.
        """
        fd, size = self._fd(), len(pieces[0]) + len(pieces[1])
        try:
            written = os.writev(fd, pieces)
            if written != size:
                raise OSError(f"{self.path}: only {written} of {size} bytes were written; make room on the disk")
        except OSError:
            os.ftruncate(fd, self.size_bytes)
            raise
        self.size_bytes += size

    def sync(self) -> None:
        """Make the content durable."""
        os.fdatasync(self._fd())

    def cut(self, position: int) -> None:
        """Drop everything at or after ``position``, durably."""
        os.ftruncate(self._fd(), position)
        os.fsync(self._fd())
        self.size_bytes = position

    def delete(self) -> None:
        """Remove the file and what lies beside it."""
        self.close()
        for path in (self.path, self.index_path, self.producers_path):
            path.unlink(missing_ok=True)

    def scan(self, position: int, *, verify: bool = False) -> Iterator[tuple[int, RecordBatch]]:
        """(position, batch) from ``position`` to the valid end.

        Raises:
            BatchError: something there is not an intact batch; everything before it was yielded.
        """
        if self._write_fd is not None:
            yield from self._scan(self._write_fd, position, self.size_bytes, verify)
            return
        fd = os.open(self.path, os.O_RDONLY)
        try:
            yield from self._scan(fd, position, self.size_bytes, verify)
        finally:
            os.close(fd)

    def _scan(self, fd: int, position: int, end: int, verify: bool) -> Iterator[tuple[int, RecordBatch]]:
        while position < end:
            chunk = os.pread(fd, min(CHUNK_BYTES, end - position), position)
            size = batch_size(chunk, 0)
            if size == 0 or position + size > end:
                raise CorruptBatchError(f"{self.path} holds no whole batch at byte {position}")
            if size > len(chunk):
                chunk = os.pread(fd, size, position)
            at = 0
            while (size := batch_size(chunk, at)) and at + size <= len(chunk):
                yield position + at, parse(chunk[at : at + size], verify=verify)
                at += size
            position += at

    def build_index(self) -> SparseIndex:
        """The index, from the file's content. A damaged batch ends it."""
        index = SparseIndex()
        try:
            for position, batch in self.scan(0):
                index.note(batch, position)
        except BatchError:
            pass
        return index

    def _fd(self) -> int:
        self.open_for_writing()
        assert self._write_fd is not None  # noqa: S101 - for the type checker
        return self._write_fd

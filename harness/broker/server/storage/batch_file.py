"""The file with the record batches of a log, one behind the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.broker.core.messages import RecordBatch
from harness.broker.server.storage.batches import CorruptBatchError, batch_size, parse

#: Bytes read from a file at once while scanning.
CHUNK_BYTES: Final = 65_536


class BatchFile:
    """A file whose first batch starts at ``base_offset``; made if need be. ``size_bytes`` is what is valid of it."""

    def __init__(self, directory: Path, base_offset: int) -> None:
        self.path = directory / f"{base_offset:020d}.log"
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self.size_bytes = os.fstat(self._fd).st_size

    def close(self) -> None:
        """Close the file; no call may follow."""
        os.close(self._fd)

    def write(self, pieces: tuple[bytes, memoryview]) -> None:
        """Append ``pieces`` whole or not at all.

        Raises:
            OSError: the disk refused; nothing was appended.
        """
        size = len(pieces[0]) + len(pieces[1])
        try:
            written = os.writev(self._fd, pieces)
            if written != size:
                raise OSError(f"{self.path}: only {written} of {size} bytes were written; make room on the disk")
        except OSError:
            os.ftruncate(self._fd, self.size_bytes)
            raise
        self.size_bytes += size

    def sync(self) -> None:
        """Make the content durable."""
        os.fdatasync(self._fd)

    def cut(self, position: int) -> None:
        """Drop everything at or after ``position``, durably."""
        os.ftruncate(self._fd, position)
        os.fsync(self._fd)
        self.size_bytes = position

    def read(self, position: int, end: int) -> bytes:
        """The bytes from ``position`` up to ``end``."""
        return os.pread(self._fd, end - position, position)

    def scan(self, *, verify: bool = False) -> Iterator[RecordBatch]:
        """All batches, up to the valid end; with ``verify`` their checksums are computed.

        Raises:
            BatchError: something in the file is not an intact batch; everything before it was yielded.
        """
        position, valid_bytes = 0, self.size_bytes
        while position < valid_bytes:
            chunk = self.read(position, min(position + CHUNK_BYTES, valid_bytes))
            size = batch_size(chunk, 0)
            if size == 0 or position + size > valid_bytes:
                raise CorruptBatchError(f"{self.path} holds no whole batch at byte {position}")
            if size > len(chunk):
                chunk = self.read(position, position + size)
            start = 0
            while (size := batch_size(chunk, start)) and start + size <= len(chunk):
                yield parse(chunk[start : start + size], verify=verify)
                start += size
            position += start

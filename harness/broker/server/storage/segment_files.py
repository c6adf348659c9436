"""Segment files: where record batches lie in them, and fields in batches, of Kafka and of the reference broker alike.

A segment is a file of record batches of format 2 (KIP-98), one behind the other. Brokers of before 0.11, and those that
are configured to write as they did, have single messages of format 0 or 1 there. Numbers are big-endian, positions in
bytes.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

#: A batch's header: base offset, length, leader epoch, magic, CRC-32C, attributes, last offset delta, base timestamp,
#: largest timestamp, producer id, producer epoch, base sequence, number of records.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
#: The position of the last offset delta among these.
LAST_OFFSET_DELTA: Final = 6
#: Base offset and length stand before the bytes that the length counts; they and the leader epoch behind them are
#: outside the checksum, so a broker may write them. Single messages begin with the same two fields.
PREFIX: Final = struct.Struct(">qii")
UNCOUNTED_BYTES: Final = 12
MAGIC_AT: Final = 16
CHECKED_FROM: Final = 21
#: The largest timestamp of a batch's records, in milliseconds since 1970.
MAX_TIMESTAMP: Final = struct.Struct(">q")
MAX_TIMESTAMP_AT: Final = 35

#: The formats of single messages, and that of batches.
MESSAGES: Final = (0, 1)
MAGIC_V2: Final = 2
#: A message of format 0 with an empty key and an empty value.
_EMPTY_MESSAGE_BYTES: Final = 26
_FRONT: Final = struct.Struct(">qi4xb")


class BatchLocation(NamedTuple):
    """A batch or message in its file: its position, the offset of its first record, and its format."""

    position: int
    size_bytes: int
    base_offset: int
    magic: int = MAGIC_V2

    @property
    def end(self) -> int:
        """The position of what follows."""
        return self.position + self.size_bytes

    @property
    def has_records(self) -> bool:
        """False for what compaction leaves of a batch, its header; a message is a record."""
        return self.magic in MESSAGES or self.size_bytes > HEADER_BYTES


def batches_of(segment: BinaryIO) -> Iterator[BatchLocation]:
    """The whole batches of a segment, up to its end or to the first other bytes.

    Only the front of each batch is read; a caller may read at the locations from the same file meanwhile.
    Kafka gives segments their full size before they are full: zeroes are not a batch.
    """
    size_bytes, position = os.fstat(segment.fileno()).st_size, 0
    while position < size_bytes:
        segment.seek(position)
        front = segment.read(_FRONT.size)
        if len(front) < _FRONT.size:
            return
        base_offset, length, magic = _FRONT.unpack(front)
        location = BatchLocation(position, UNCOUNTED_BYTES + length, base_offset, magic)
        least = _EMPTY_MESSAGE_BYTES if magic in MESSAGES else HEADER_BYTES
        if location.size_bytes < least or location.end > size_bytes:
            return
        yield location
        position = location.end

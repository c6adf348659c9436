"""Segment files: how record batches of format 2 (KIP-98) lie in them, of Kafka and of the reference broker alike.

Brokers of before 0.11, and those that are told to write as they did, have single messages of format 0 or 1 there.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

#: Base offset and length, at the front of every batch; the length counts what follows these 12 bytes. Then four bytes
#: of other things, and the format.
_FRONT: Final = struct.Struct(">qi4xb")
_UNCOUNTED_BYTES: Final = 12
#: The formats of single messages, and that of batches.
MESSAGES: Final = (0, 1)
MAGIC_V2: Final = 2
#: A batch without any record, and a message of format 0 with an empty key and an empty value.
_EMPTY_BATCH_BYTES: Final = 61
_EMPTY_MESSAGE_BYTES: Final = 26


class Place(NamedTuple):
    """Where a batch or message lies in its file, the offset of its first record, and the format."""

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
        """False for what compaction leaves of a batch; a message is a record."""
        return self.magic in MESSAGES or self.size_bytes > _EMPTY_BATCH_BYTES


def batches_of(segment: BinaryIO) -> Iterator[Place]:
    """The whole batches of a segment, up to its end or to the first bytes that are none.

    Only the front of each batch is read; whoever takes the places may read at them from the same file meanwhile.
    Kafka gives segments their full size before they are full: zeroes are no batch.
    """
    size_bytes, position = os.fstat(segment.fileno()).st_size, 0
    while position < size_bytes:
        segment.seek(position)
        front = segment.read(_FRONT.size)
        if len(front) < _FRONT.size:
            return
        base_offset, length, magic = _FRONT.unpack(front)
        place = Place(position, _UNCOUNTED_BYTES + length, base_offset, magic)
        least = _EMPTY_MESSAGE_BYTES if magic in MESSAGES else _EMPTY_BATCH_BYTES
        if place.size_bytes < least or place.end > size_bytes:
            return
        yield place
        position = place.end

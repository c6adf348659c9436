"""Segment files: how record batches of format 2 (KIP-98) lie in them, of Kafka and of the reference broker alike."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

#: Base offset and length, at the front of every batch; the length counts what follows these bytes.
_FRONT: Final = struct.Struct(">qi")
#: A batch without any record.
EMPTY_BATCH_BYTES: Final = 61


class Place(NamedTuple):
    """Where a batch lies in its file, and the offset of its first record."""

    position: int
    size_bytes: int
    base_offset: int

    @property
    def end(self) -> int:
        """The position of what follows."""
        return self.position + self.size_bytes


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
        base_offset, length = _FRONT.unpack(front)
        place = Place(position, _FRONT.size + length, base_offset)
        if place.size_bytes < EMPTY_BATCH_BYTES or place.end > size_bytes:
            return
        yield place
        position = place.end

"""Record batches of format v2: what a broker reads of them and the two fields it may write (KIP-98).

A broker never touches the records themselves. Base offset (at byte 0) and partition leader epoch (at byte 12) lie
outside the checksum, so they are rewritten without computing it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import crc32c

from harness.reference.core.messages import RecordBatch
from harness.reference.core.types import NONE
from harness.reference.server.storage import segment_files as segments

#: Kafka's default of message.max.bytes.
MAX_BATCH_BYTES: Final = 1_048_588


class BatchError(ValueError):
    """Bytes that are not a whole, intact v2 batch. The text names what is wrong with them."""


class OldFormatError(BatchError):
    """A message set of format 0 or 1; clients since 0.11 can write format 2."""


class CorruptBatchError(BatchError):
    """The checksum or the lengths do not fit."""


def parse(data: bytes, *, verify: bool) -> RecordBatch:
    """``data`` as one batch; with ``verify`` its CRC-32C is computed.

    Raises:
        OldFormatError: format 0 or 1.
        CorruptBatchError: short, cut off, followed by more bytes, inconsistent, or a wrong checksum.
    """
    if len(data) <= segments.MAGIC_AT:
        raise CorruptBatchError(f"a batch of {len(data)} bytes is shorter than its header")
    if data[segments.MAGIC_AT] < segments.MAGIC_V2:
        raise OldFormatError(
            f"message format {data[segments.MAGIC_AT]} is not supported; use a client that writes format 2"
        )
    if len(data) < segments.HEADER_BYTES:
        raise CorruptBatchError(f"a batch of {len(data)} bytes is shorter than its header")
    (base, length, epoch, magic, crc, _, last_delta, _, _, pid, pid_epoch, sequence, count) = (
        segments.HEADER.unpack_from(data)
    )
    if magic != segments.MAGIC_V2:
        raise CorruptBatchError(f"message format {magic} is unknown")
    if length + segments.UNCOUNTED_BYTES != len(data):
        raise CorruptBatchError(f"the batch says {length + segments.UNCOUNTED_BYTES} bytes and has {len(data)}")
    if count < 1 or last_delta != count - 1:
        raise CorruptBatchError(f"{count} records do not fit a last offset delta of {last_delta}")
    if verify and crc32c.crc32c(memoryview(data)[segments.CHECKED_FROM :]) != crc:
        raise CorruptBatchError("the checksum does not fit the records")
    return RecordBatch(count, len(data), data, base, epoch, pid, pid_epoch, sequence)


def batch_size(data: bytes | memoryview, position: int) -> int:
    """Bytes of the batch that starts at ``position``, or 0 if not even its length field is there or it is nonsense."""
    if len(data) - position < segments.HEADER_BYTES:
        return 0
    length: int = segments.PREFIX.unpack_from(data, position)[1]
    return length + segments.UNCOUNTED_BYTES if length >= segments.HEADER_BYTES - segments.UNCOUNTED_BYTES else 0


def split(data: bytes, *, verify: bool) -> Iterator[RecordBatch]:
    """The whole batches at the front of ``data``; a cut-off last one is left out, as in a fetch response.

    Raises:
        BatchError: as :func:`parse`.
    """
    position = 0
    while size := batch_size(data, position):
        if position + size > len(data):
            return
        yield parse(data[position : position + size], verify=verify)
        position += size


def parse_incoming(data: bytes | None) -> RecordBatch:
    """The single batch of a produce request, its checksum verified, offsets not yet assigned.

    Raises:
        BatchError: as :func:`parse`; also if there are no or several batches (KIP-98 allows one).
    """
    if not data:
        raise CorruptBatchError("a produce request without records")
    batch = parse(data, verify=True)
    return RecordBatch(
        batch.count, batch.size_bytes, data, NONE, NONE, batch.producer_id, batch.producer_epoch, batch.base_sequence
    )


def encoded(batch: RecordBatch) -> tuple[bytes, memoryview]:
    """The batch's bytes with its own base offset and leader epoch, in two pieces for a gathering write."""
    data: bytes = batch.records
    return (
        segments.PREFIX.pack(batch.base_offset, len(data) - segments.UNCOUNTED_BYTES, batch.leader_epoch),
        memoryview(data)[segments.MAGIC_AT :],
    )


def whole(batch: RecordBatch) -> bytes:
    """The batch's bytes with its own base offset and leader epoch."""
    return b"".join(encoded(batch))


def max_timestamp_ms(batch: RecordBatch) -> int:
    """The largest timestamp of the batch's records."""
    stamp: int = segments.MAX_TIMESTAMP.unpack_from(batch.records, segments.MAX_TIMESTAMP_AT)[0]
    return stamp


#: Attributes of a batch that is no client's; and its key: version 0, of the kind LeaderChange (KIP-595).
_CONTROL: Final = 0x20
_LEADER_CHANGE_KEY: Final = b"\0\0\0\2"


def _leader_change() -> RecordBatch:
    # Length, attributes, the two deltas, key with its length, no value, no headers; numbers are zigzag varints.
    body = b"\0\0\0" + bytes([2 * len(_LEADER_CHANGE_KEY)]) + _LEADER_CHANGE_KEY + b"\1\0"
    record = bytes([2 * len(body)]) + body
    length = segments.HEADER_BYTES + len(record) - segments.UNCOUNTED_BYTES
    fields = (_CONTROL, 0, 0, 0, NONE, NONE, NONE, 1)
    unchecked = segments.HEADER.pack(0, length, 0, segments.MAGIC_V2, 0, *fields) + record
    checksum = crc32c.crc32c(unchecked[segments.CHECKED_FROM :])
    return parse(segments.HEADER.pack(0, length, 0, segments.MAGIC_V2, checksum, *fields) + record, verify=True)


#: The record with which a leader opens its epoch, where its commit rule wants one.
LEADER_CHANGE: Final = _leader_change()

"""Record batches of format v2: what a broker reads of them and the two fields it may write (KIP-98).

A broker never touches the records themselves. Base offset (at byte 0) and partition leader epoch (at byte 12) lie
outside the checksum, so they are rewritten without computing it again.
"""

# ruff: noqa: PLC0415 - runs in virtual time need no client library

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

import crc32c
from msgspec.structs import replace

from harness.broker.core.messages import Deletion, Marker, RecordBatch
from harness.broker.core.types import NONE
from harness.broker.server.storage import segment_files as segments

#: Kafka's default of message.max.bytes.
MAX_BATCH_BYTES: Final = 1_048_588
#: Attributes of a batch: it counts with its transaction only; it is no client's.
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
#: The key of the record in a batch that is no client's: its version, and its kind (KIP-98, KIP-595).
_CONTROL_KEY: Final = struct.Struct(">hh")
_ABORT: Final = 0
_COMMIT: Final = 1
_LEADER_CHANGE: Final = 2
#: The value of a marker: its version, and the leader epoch of its coordinator.
_MARKER_VALUE: Final = struct.Struct(">hi")


class BatchError(ValueError):
    """Bytes that are not a whole, intact v2 batch. The text names what is wrong with them."""


class OldFormatError(BatchError):
    """A message set of format 0 or 1; clients since 0.11 can write format 2."""


class ControlBatchError(BatchError):
    """A client sent what only brokers write."""


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
    (base, length, epoch, magic, crc, attributes, last_delta, _, _, pid, pid_epoch, sequence, count) = (
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
    transactional = bool(attributes & _TRANSACTIONAL)
    return RecordBatch(
        count,
        len(data),
        data,
        base,
        epoch,
        pid,
        pid_epoch,
        sequence,
        transactional=transactional,
        marker=_marker_in(data) if transactional and attributes & _CONTROL else None,
    )


def _marker_in(data: bytes) -> Marker:
    """The marker in a control batch of a transaction. A file does not tell the version of the transaction."""
    from kafka.errors import CorruptRecordError
    from kafka.record.default_records import DefaultRecordBatch

    try:
        record: Any = next(iter(DefaultRecordBatch(data)))
        _, kind = _CONTROL_KEY.unpack(record.key)
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value)
    except (CorruptRecordError, StopIteration, struct.error, TypeError) as error:
        raise CorruptBatchError(f"a marker that cannot be read: {error}") from error
    if kind not in {_ABORT, _COMMIT}:
        raise CorruptBatchError(f"a marker of kind {kind} neither commits nor aborts")
    return Marker(kind == _COMMIT, coordinator_epoch, NONE)


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
        ControlBatchError: only brokers write such a batch.
        BatchError: as :func:`parse`; also if there are no or several batches (KIP-98 allows one).
    """
    if not data:
        raise CorruptBatchError("a produce request without records")
    batch = parse(data, verify=True)
    if _is_control(batch):
        raise ControlBatchError("a control batch, which only brokers write")
    return replace(batch, base_offset=NONE, leader_epoch=NONE)


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


# --- what brokers write themselves -----------------------------------------------------------------------------------


def of_broker(batch: RecordBatch) -> RecordBatch:
    """A batch of the core's own, its records encoded: a marker, or the pairs and tombstones of a coordinator."""
    from kafka.record.default_records import DefaultRecordBatchBuilder

    producer = (batch.producer_id, batch.producer_epoch)
    if batch.marker is not None:
        kind = _COMMIT if batch.marker.commit else _ABORT
        value = _MARKER_VALUE.pack(0, batch.marker.coordinator_epoch)
        data = _control_batch(kind, value, _CONTROL | _TRANSACTIONAL, producer)
    else:
        builder: Any = DefaultRecordBatchBuilder(2, 0, int(batch.transactional), *producer, NONE, MAX_BATCH_BYTES)
        for number, record in enumerate(batch.records):
            builder.append(number, 0, record[0], None if type(record) is Deletion else record[1], [])
        data = bytes(builder.build())
    return replace(batch, records=data, size_bytes=len(data))


def to_broker(batch: RecordBatch) -> RecordBatch:
    """The opposite of :func:`of_broker`. A batch without a record for readers has none for a coordinator."""
    from kafka.record.default_records import DefaultRecordBatch

    if _is_control(batch):
        return replace(batch, records=())
    records: Any = DefaultRecordBatch(whole(batch))
    pairs = [(record.key, record.value) for record in records]
    return replace(batch, records=tuple(Deletion(key, b"") if value is None else (key, value) for key, value in pairs))


def _is_control(batch: RecordBatch) -> bool:
    return bool(segments.HEADER.unpack_from(batch.records)[5] & _CONTROL)


def _control_batch(kind: int, value: bytes | None, attributes: int, producer: tuple[int, int]) -> bytes:
    """A batch with one record that is no client's. kafka-python's builder makes none."""
    key = _CONTROL_KEY.pack(0, kind)
    # Attributes, the two deltas, key and value with their lengths, no headers; numbers below 64 are twice as much here.
    body = (
        b"\0\0\0" + bytes([2 * len(key)]) + key + (b"\1" if value is None else bytes([2 * len(value)]) + value) + b"\0"
    )
    record = bytes([2 * len(body)]) + body
    length = segments.HEADER_BYTES + len(record) - segments.UNCOUNTED_BYTES
    fields = (attributes, 0, 0, 0, *producer, NONE, 1)
    unchecked = segments.HEADER.pack(0, length, 0, segments.MAGIC_V2, 0, *fields) + record
    checksum = crc32c.crc32c(unchecked[segments.CHECKED_FROM :])
    return segments.HEADER.pack(0, length, 0, segments.MAGIC_V2, checksum, *fields) + record


#: The record with which a leader opens its epoch, where its commit rule wants one.
LEADER_CHANGE: Final = parse(_control_batch(_LEADER_CHANGE, None, _CONTROL, (NONE, NONE)), verify=True)

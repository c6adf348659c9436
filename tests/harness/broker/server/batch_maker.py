"""Record batches for tests, made by the client library."""

from __future__ import annotations

from typing import Any

from kafka.record.default_records import DefaultRecordBatchBuilder

from harness.broker.core.messages import RecordBatch
from harness.broker.server.storage.batches import parse_incoming

Producer = tuple[int, int, int]
PLAIN: Producer = (-1, -1, -1)


def records(
    count: int = 1,
    value: bytes = b"value",
    *,
    producer: Producer = PLAIN,
    time_ms: int = 1000,
    transactional: bool = False,
) -> bytes:
    """An encoded batch of ``count`` records a millisecond apart; ``producer`` is (id, epoch, base sequence)."""
    builder: Any = DefaultRecordBatchBuilder(2, 0, int(transactional), *producer, 1 << 30)
    for number in range(count):
        builder.append(number, time_ms + number, b"key", value, [])
    return bytes(builder.build())


def batch(
    offset: int,
    count: int = 1,
    *,
    epoch: int = 0,
    value: bytes = b"value",
    producer: tuple[int, int, int] = (-1, -1, -1),
    time_ms: int = 1000,
) -> RecordBatch:
    """A batch as a leader hands it to its log."""
    incoming = parse_incoming(records(count, value, producer=producer, time_ms=time_ms))
    return RecordBatch(
        incoming.count,
        incoming.size_bytes,
        incoming.records,
        offset,
        epoch,
        incoming.producer_id,
        incoming.producer_epoch,
        incoming.base_sequence,
    )

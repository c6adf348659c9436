"""Logs of compacted topics, as tests write and read them: "a" is a record of key a, "-a" the tombstone of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.types import NONE

SECOND_US = 1_000_000
#: Settings of a topic that is cleaned as soon as anything is dirty.
COMPACTED: dict[str, Any] = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": 0.0,
    "segment_ms": 1_000,
    "delete_retention_ms": 1_000,
}


def record(key: str, payload: bytes = b"") -> tuple[bytes, bytes]:
    """The record that ``key`` names."""
    return Deletion(key[1:].encode(), payload) if key.startswith("-") else (key.encode(), payload)


def append(
    log: MemoryLog, key: str, stamped_us: int, epoch: int = 0, producer: tuple[int, int, int] = (NONE, NONE, NONE)
) -> None:
    """Append a batch of one record, 100 bytes; its payload says where it is."""
    offset = log.end_offset
    log.append(
        RecordBatch(1, 100, (record(key, str(offset).encode()),), offset, epoch, *producer, stamped_us=stamped_us)
    )


def records(log: MemoryLog) -> list[tuple[int, str]]:
    """Offset and name of each record."""
    return [
        (offset, f"{'-' * (type(entry) is Deletion)}{entry[0].decode()}")
        for batch in log.batches
        for offset, entry in batch.placed()
    ]


def table(batches: Iterable[RecordBatch]) -> dict[str, bytes]:
    """The payload of the last record of each key that is not deleted."""
    rows: dict[str, bytes] = {}
    for batch in batches:
        for entry in batch.records:
            rows.pop(entry[0].decode(), None)
            if type(entry) is not Deletion:
                rows[entry[0].decode()] = entry[1]
    return rows

"""Reads a topic's logs on replicas' disks record by record after a run, and damages them on purpose during it.

The reference broker and Kafka keep the same files: a directory for each log partition, in it ``<base offset>.log`` with
record batches of format 2 (KIP-98), one after the other, or messages of format 0 or 1 before 0.11. kafka-python decodes
the records.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from crc32c import crc32c

from checkers import TransactionPart
from harness.broker.server.storage.checkpoints import EpochFile, OffsetFile
from harness.broker.server.storage.segment_files import (
    HEADER,
    HEADER_BYTES,
    LAST_OFFSET_DELTA,
    MAGIC_AT,
    MAGIC_V2,
    MESSAGES,
    BatchLocation,
    batches_of,
)
from harness.records.replica_dump import DumpedLog, Facts, ReplicaLogs, Stretch
from workloads import PAYLOAD_HEADER, LogPartition, PayloadDefect
from workloads.values import decode, record_key_of

_NO_EPOCH: Final = -1
_NO_KEY: Final = -1


def content_of(payload: bytes | None, partition: str, key: bytes | None) -> int:
    """The value of a record that belongs there; for any other, -2 minus the CRC-32C of its key and payload."""
    value, defect = decode(payload or b"", partition, key or b"")
    return value if defect is PayloadDefect.NONE else -2 - crc32c(payload or b"", crc32c(key or b""))


def logs_on_disks(directory: Path, brokers: Iterable[int], *topics: str) -> ReplicaLogs | None:
    """The logs of ``topics`` below ``directory``/<broker>/, once the brokers have ended; None if no disk exists there.

    Kafka names a log's directory after the partition; the reference broker adds "@" and the topic's identity. Logs that
    a broker has renamed, to delete or move them, are left out.
    """
    disks = {node: directory / str(node) for node in brokers}
    if not any(disk.is_dir() for disk in disks.values()):
        return None
    name = re.compile(rf"({'|'.join(map(re.escape, topics))})-\d+(@\d+)?")
    logs: list[DumpedLog] = []
    unreadable: dict[int, str] = {}
    for node, disk in disks.items():
        try:
            directories = sorted(path for path in disk.iterdir() if name.fullmatch(path.name) and path.is_dir())
        except OSError as error:
            unreadable[node] = f"its disk cannot be read ({error.strerror})"
            continue
        for log in directories:
            damage: list[str] = []
            partition = log.name.partition("@")[0]
            logs.append(DumpedLog(partition, node, stretches(log, partition, damage), damage))
    return ReplicaLogs(logs, unreadable)


def stretches(directory: Path, partition: str, damage: list[str]) -> Iterator[Stretch]:
    """The batches of the log in ``directory``, oldest first, one in memory at a time.

    Each part that cannot be read adds a sentence to ``damage``; in a log that its broker still writes, this may be the
    last bytes.
    """
    for segment in sorted(directory.glob("*.log")):
        try:
            yield from _batches(segment, partition, damage)
        except OSError as error:
            damage.append(f"{segment.name} cannot be read ({error.strerror})")


def log_end(directory: Path) -> int:
    """The offset behind the last whole batch of a log, also of one whose checksum is wrong: what its broker counts."""
    end = 0
    for segment in sorted(directory.glob("*.log")):
        try:
            with segment.open("rb") as file:
                for location in batches_of(file):
                    end = location.base_offset + 1
                    if location.magic == MAGIC_V2:
                        file.seek(location.position)
                        end += HEADER.unpack(file.read(HEADER_BYTES))[LAST_OFFSET_DELTA]
        except OSError:  # A segment that was dropped meanwhile.
            continue
    return end


def _batches(segment: Path, partition: str, damage: list[str]) -> Iterator[Stretch]:
    whole_bytes = 0
    with segment.open("rb") as file:
        for location in batches_of(file):
            file.seek(location.position)
            stretch = _records(file.read(location.size_bytes), partition)
            if stretch is None:
                damage.append(f"{segment.name} holds a damaged batch at byte {location.position}")
            else:
                yield stretch
            whole_bytes = location.end
        size = os.fstat(file.fileno()).st_size
    if whole_bytes < size:
        damage.append(f"{segment.name} holds no whole batch at byte {whole_bytes} of {size}")


def _records(data: bytes, partition: str) -> Stretch | None:
    """The records of one batch; None if its checksum is wrong or its content cannot be decoded.

    Messages from before 0.11 carry no leader epoch and get -1.
    """
    magic = data[MAGIC_AT]
    if magic != MAGIC_V2 and magic not in MESSAGES:
        return None
    from kafka.record import MemoryRecords  # noqa: PLC0415 - runs in virtual time need no client library

    batch = MemoryRecords(data).next_batch()
    if batch is None or not batch.validate_crc():
        return None
    try:
        records = list(batch)
        content = np.array([_read(record, partition) for record in records], np.int64).reshape(-1, 5)
    except Exception:  # kafka-python and the codecs raise many kinds of errors for bytes that they cannot decode
        return None
    offsets, values, keys, tombstones, markers = content.T
    if magic != MAGIC_V2:
        return Stretch(offsets, np.full(len(records), _NO_EPOCH, np.int64), values)
    ids, epochs = (np.full(len(records), number, np.int64) for number in (batch.producer_id, batch.producer_epoch))
    usual = (
        TransactionPart.IN_TRANSACTION
        if batch.is_transactional and not batch.is_control_batch
        else TransactionPart.RECORD
    )
    facts = Facts(keys, tombstones, ids, epochs, np.where(markers == TransactionPart.RECORD, usual, markers))
    return Stretch(offsets, np.full(len(records), batch.leader_epoch, np.int64), values, facts)


def _read(record: Any, partition: str) -> tuple[int, int, int, bool, TransactionPart]:
    """A record's offset, value and key, whether it deletes that, and which marker it is.

    A tombstone's payload is in its header. A record is no marker, and has the part of other records.
    """
    if hasattr(record, "commit"):
        part = (
            TransactionPart.COMMIT
            if record.commit
            else TransactionPart.ABORT
            if record.abort
            else TransactionPart.RECORD
        )
        return record.offset, content_of(record.value, partition, record.key), _NO_KEY, False, part
    payload, is_tombstone = record.value, False
    if payload is None and PAYLOAD_HEADER in (headers := dict(record.headers)):
        payload, is_tombstone = headers[PAYLOAD_HEADER], True
    key = _NO_KEY if record.key is None else record_key_of(record.key)
    return record.offset, content_of(payload, partition, record.key), key, is_tombstone, TransactionPart.RECORD


# --- damage ----------------------------------------------------------------------------------------------------------

#: From the end of a batch: the last byte of the last record's value, which the number of headers (0) follows.
_VALUE_BYTE_FROM_END: Final = 2
_FLIPPED_BIT: Final = 1


class StoredBatch(NamedTuple):
    """A record batch with at least one record."""

    file: Path
    location: BatchLocation


def log_directory(data: Path, partition: str) -> Path | None:
    """The directory of a node's log partition, which has its name; the reference broker adds "@" and an identity."""
    paths = (path for path in data.glob(f"{partition}*") if path.is_dir())
    return next((path for path in paths if path.name.partition("@")[0] == partition), None)


def batches_in(directory: Path) -> Iterator[StoredBatch]:
    """The whole record batches of a log that hold records, in order of their offsets."""
    for file in sorted(directory.glob("*.log")):
        with file.open("rb") as segment:
            yield from (StoredBatch(file, location) for location in batches_of(segment) if location.has_records)


def flip(batch: StoredBatch) -> tuple[int, int, int]:
    """Change a bit in the last record's value, durably; the batch's checksum is wrong from now on.

    The answer is the position of the byte in the file, and the byte before and after.
    """
    position = batch.location.end - _VALUE_BYTE_FROM_END
    with batch.file.open("r+b") as file:
        file.seek(position)
        before = file.read(1)[0]
        file.seek(position)
        file.write(bytes([before ^ _FLIPPED_BIT]))
        file.flush()
        os.fsync(file.fileno())
    return position, before, before ^ _FLIPPED_BIT


def recovery_point(directory: Path) -> int:
    """The recovery point: a start after an unclean stop reads the log again from this offset's segment on (rule 25).

    The reference broker has none: it reads all of a log.
    """
    return _shared_checkpoint(directory, "recovery-point-offset-checkpoint")


def written_high_watermark(directory: Path) -> int:
    """The high watermark of a log as its broker has written it down; 0 before that."""
    own = directory / "high-watermark"
    return OffsetFile(own, 0).value if own.exists() else _shared_checkpoint(directory, "replication-offset-checkpoint")


def _shared_checkpoint(directory: Path, name: str) -> int:
    """The offset of a log in a file that Kafka keeps for all partitions of a disk; 0 where it is not there."""
    shared = directory.parent / name
    topic, number = LogPartition.named(directory.name.partition("@")[0])
    lines = shared.read_text().splitlines() if shared.exists() else []
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, str(number)]), 0)


def leader_epochs(directory: Path) -> tuple[tuple[int, int], ...]:
    """The leader epochs of a log and the offsets at which they start, as its broker has written them down.

    Kafka's file begins with a version and the number of lines. The reference broker's has another name.
    """
    checkpoint = directory / "leader-epoch-checkpoint"
    if not checkpoint.exists():
        return tuple(EpochFile(directory / "leader-epochs").entries)
    pairs = [line.split() for line in checkpoint.read_text().splitlines()[2:]]
    return tuple((int(epoch), int(offset)) for epoch, offset in pairs)


def read_again(batch: StoredBatch) -> bool:
    """True if a start after an unclean stop reads this batch; another batch stays as it is until it is fetched."""
    bases = sorted(int(file.stem) for file in batch.file.parent.glob("*.log"))
    first = max([base for base in bases if base <= recovery_point(batch.file.parent)], default=0)
    return int(batch.file.stem) >= first

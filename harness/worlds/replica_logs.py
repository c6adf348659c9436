"""What the replicas' disks hold when a run is over, read from segment files.

The reference broker and Kafka keep the same files: a directory for each log partition, in it ``<base offset>.log`` with
record batches of format 2 (KIP-98), one behind the other, or messages of format 0 or 1 before 0.11. kafka-python reads
what is in them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
from crc32c import crc32c
from kafka.record import MemoryRecords

from harness.records.replica_dump import ReplicaLog, ReplicaLogs, Stretch
from harness.segments import MAGIC_AT, MAGIC_V2, MESSAGES, batches_of
from workloads.operations import Defect
from workloads.values import decode

_NO_EPOCH: Final = -1


def content_of(payload: bytes | None, partition: str, key: bytes | None) -> int:
    """The value of a record that is sound for its place; of any other -2 minus the CRC-32C of its key and payload."""
    value, defect = decode(payload or b"", partition, key or b"")
    return value if defect is Defect.NONE else -2 - crc32c(payload or b"", crc32c(key or b""))


def logs_on_disks(directory: Path, brokers: Iterable[int], topic: str) -> ReplicaLogs | None:
    """The logs of ``topic`` below ``directory``/<broker>/, whose brokers have ended; None if there is no such disk.

    Kafka names a log's directory after the partition; the reference broker adds "@" and the topic's identity. Logs that
    a broker has renamed, to delete them or to bring them somewhere else, are not among them.
    """
    disks = {node: directory / str(node) for node in brokers}
    if not any(disk.is_dir() for disk in disks.values()):
        return None
    name = re.compile(rf"{re.escape(topic)}-\d+(@\d+)?")
    logs: list[ReplicaLog] = []
    unreadable: dict[int, str] = {}
    for node, disk in disks.items():
        try:
            found = sorted(path for path in disk.iterdir() if name.fullmatch(path.name) and path.is_dir())
        except OSError as error:
            unreadable[node] = f"its disk cannot be read ({error.strerror})"
            continue
        for place in found:
            damage: list[str] = []
            partition = place.name.partition("@")[0]
            logs.append(ReplicaLog(partition, node, _stretches(place, partition, damage), damage))
    return ReplicaLogs(logs, unreadable)


def _stretches(place: Path, partition: str, damage: list[str]) -> Iterator[Stretch]:
    """The batches of a log, oldest first, one in memory at a time."""
    for segment in sorted(place.glob("*.log")):
        try:
            yield from _batches(segment, partition, damage)
        except OSError as error:
            damage.append(f"{segment.name} cannot be read ({error.strerror})")


def _batches(segment: Path, partition: str, damage: list[str]) -> Iterator[Stretch]:
    at = 0
    with segment.open("rb") as file:
        for place in batches_of(file):
            file.seek(place.position)
            stretch = _records(file.read(place.size_bytes), partition)
            if stretch is None:
                damage.append(f"{segment.name} holds a damaged batch at byte {place.position}")
            else:
                yield stretch
            at = place.end
        size = os.fstat(file.fileno()).st_size
    if at < size:
        damage.append(f"{segment.name} holds no whole batch at byte {at} of {size}")


def _records(data: bytes, partition: str) -> Stretch | None:
    """The records of one batch; None where its checksum does not fit or its content cannot be decoded.

    Messages of before 0.11 carry no leader epoch: -1.
    """
    magic = data[MAGIC_AT]
    if magic != MAGIC_V2 and magic not in MESSAGES:
        return None
    batch = MemoryRecords(data).next_batch()
    if batch is None or not batch.validate_crc():
        return None
    try:
        records = [(record.offset, content_of(record.value, partition, record.key)) for record in batch]
    except Exception:  # kafka-python and the codecs have many words for bytes that are not what they say
        return None
    offsets = np.array([offset for offset, _ in records], np.int64)
    values = np.array([value for _, value in records], np.int64)
    epoch = batch.leader_epoch if magic == MAGIC_V2 else _NO_EPOCH
    return Stretch(offsets, np.full(len(records), epoch, np.int64), values)

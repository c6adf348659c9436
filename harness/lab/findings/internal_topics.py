"""Kafka's internal topics: which partition serves a name, and what is in a broker's log of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka.record import MemoryRecords

from harness.broker.core.types import OFFSETS_TOPIC, serving_partition
from harness.broker.server.storage.segment_files import batches_of
from harness.worlds.replica_logs import log_directory

#: Partitions of each of both topics.
PARTITIONS_EACH: Final = 4
#: The one partition that serves every group of a cluster with ``offsets.topic.num.partitions`` of 1.
SERVING: Final = f"{OFFSETS_TOPIC}-0"
#: Settings that are to lose nothing, with the limits that Kafka has by default.
SAFE_SETTINGS: Final[dict[str, Any]] = {
    "acks": "all",
    "min.insync.replicas": 2,
    "enable.idempotence": True,
    "replica.lag.time.max.ms": 30_000,
    "broker.session.timeout.ms": 9_000,
    "broker.heartbeat.interval.ms": 2_000,
    "request.timeout.ms": 30_000,
    "delivery.timeout.ms": 120_000,
}
#: In the key of a marker: 0 aborts, 1 commits.
_KIND_AT: Final = 3


class StoredRecord(NamedTuple):
    """A record in a log: a "value", a "tombstone", or a marker ("abort", "commit")."""

    offset: int
    kind: str


def serving(topic: str, name: str) -> str:
    """The partition of an internal topic that serves the group or the transactional id of this name."""
    return f"{topic}-{serving_partition(name, PARTITIONS_EACH)}"


def stored(run: Path, node: int, partition: str) -> list[StoredRecord] | None:
    """The content of a broker's log of ``partition``; None while it has none, or it is being cleaned."""
    directory = log_directory(run / "data" / str(node), partition)
    if directory is None:
        return None
    try:
        return [record for log in sorted(directory.glob("*.log")) for record in _records(log)]
    except FileNotFoundError:  # the cleaner has replaced a segment
        return None


def log_end(run: Path, node: int, partition: str) -> int:
    """The end of a broker's log; 0 where it has none."""
    records = stored(run, node, partition)
    return records[-1].offset + 1 if records else 0


def _records(segment: Path) -> Iterator[StoredRecord]:
    with segment.open("rb") as file:
        for location in batches_of(file):
            file.seek(location.position)
            batch = MemoryRecords(file.read(location.size_bytes)).next_batch()
            for record in batch or ():
                if batch.is_control_batch:
                    kind = "commit" if record.key[_KIND_AT] else "abort"
                else:
                    kind = "tombstone" if record.value is None else "value"
                yield StoredRecord(record.offset, kind)

"""Committed offsets of each group, and their form as records of the internal topic.

A commit is a record in the group's partition of ``__consumer_offsets``; it counts once that record is acknowledged by
all in-sync replicas. A new leader of the partition reads it from its start. Nothing is compacted: the log is
as long as there were commits. The records' content is this broker's own (MessagePack), not Kafka's.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from harness.reference.core.messages import RecordBatch
from harness.reference.core.types import NONE, OFFSETS_TOPIC, TopicPartition
from harness.reference.server.storage.batches import whole

OFFSETS_PARTITIONS: Final = 4
OFFSETS_REPLICATION: Final = 3
#: Groups whose offsets one broker remembers; beyond it a commit is refused.
OFFSET_GROUPS_MAX: Final = 10_000


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """A position that a group has committed; ``metadata`` is the client's own note."""

    offset: int
    leader_epoch: int = NONE
    metadata: str | None = ""


Commit = tuple[str, TopicPartition, CommittedOffset]


class _Key(msgspec.Struct, frozen=True, array_like=True):
    group: str
    topic: str
    partition: int


def partition_of(group: str) -> TopicPartition:
    """The log partition of a group's offsets; its leader coordinates the group."""
    return TopicPartition(OFFSETS_TOPIC, zlib.crc32(group.encode()) % OFFSETS_PARTITIONS)


def encode_commits(group: str, commits: Mapping[TopicPartition, CommittedOffset], timestamp_ms: int) -> bytes:
    """One record batch with one record a commit."""
    builder: Any = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for number, (partition, committed) in enumerate(commits.items()):
        key = msgspec.msgpack.encode(_Key(group, partition.topic, partition.partition))
        builder.append(number, timestamp_ms, key, msgspec.msgpack.encode(committed), [])
    return bytes(builder.build())


def decode_commits(batch: RecordBatch) -> Iterator[Commit]:
    """The commits of one batch; other records (a client wrote to the internal topic) are passed over."""
    records: Any = DefaultRecordBatch(whole(batch))
    for record in records:
        try:
            key = msgspec.msgpack.decode(record.key or b"", type=_Key)
            committed = msgspec.msgpack.decode(record.value or b"", type=CommittedOffset)
        except msgspec.MsgspecError:
            continue
        yield key.group, TopicPartition(key.topic, key.partition), committed


class OffsetStore:
    """The latest committed offset of every (group, log partition) that this broker is responsible for."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def put(self, group: str, partition: TopicPartition, committed: CommittedOffset) -> None:
        """Remember a commit."""
        self._groups.setdefault(group, {})[partition] = committed

    def get(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Everything that ``group`` has committed."""
        return self._groups.get(group, {})

    def groups(self) -> set[str]:
        """Every group that has committed something."""
        return set(self._groups)

    def has_room(self, group: str) -> bool:
        """True if ``group`` may commit."""
        return group in self._groups or len(self._groups) < OFFSET_GROUPS_MAX

    def forget(self, partition: TopicPartition) -> None:
        """Another broker is responsible for the groups of this ``partition`` of the internal topic now."""
        self._groups = {group: kept for group, kept in self._groups.items() if partition_of(group) != partition}

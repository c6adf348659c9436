"""Committed offsets of each group, and their form as records of the internal topic.

A commit is a record in the group's partition of ``__consumer_offsets``; it counts once that record is acknowledged by
all in-sync replicas, or with its transaction. One without a value deletes the offset, also where that is pending. A new
leader of the partition reads it from its start. Nothing is compacted: the log is as long as there were commits. The
content of its records is this broker's own (MessagePack).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from harness.broker.core.groups.offsets import GroupOffsets
from harness.broker.core.messages import RecordBatch
from harness.broker.core.types import NONE, OFFSETS_TOPIC, TopicPartition, serving_partition
from harness.broker.server.storage.batches import whole

OFFSETS_PARTITIONS: Final = 4
#: Groups whose offsets one broker remembers; beyond it a commit is refused.
OFFSET_GROUPS_MAX: Final = 10_000


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """A position that a group has committed; ``metadata`` is the client's own note."""

    offset: int
    leader_epoch: int = NONE
    metadata: str | None = ""


#: The offset of a group for a log partition, None where it is deleted.
Commit = tuple[str, TopicPartition, CommittedOffset | None]
#: The id and epoch of a producer.
Producer = tuple[int, int]


class _Key(msgspec.Struct, frozen=True, array_like=True):
    group: str
    topic: str
    partition: int


def partition_of(group: str) -> TopicPartition:
    """The log partition of a group's offsets; its leader coordinates the group."""
    return TopicPartition(OFFSETS_TOPIC, serving_partition(group, OFFSETS_PARTITIONS))


def encode_commits(
    group: str,
    commits: Mapping[TopicPartition, CommittedOffset | None],
    timestamp_ms: int,
    producer: Producer | None = None,
) -> bytes:
    """One record batch with one record a commit, or a deletion; with a ``producer`` they count with its transaction."""
    identity = (NONE, NONE) if producer is None else producer
    builder: Any = DefaultRecordBatchBuilder(2, 0, int(producer is not None), *identity, NONE, 1 << 30)
    for number, (partition, committed) in enumerate(commits.items()):
        key = msgspec.msgpack.encode(_Key(group, partition.topic, partition.partition))
        value = None if committed is None else msgspec.msgpack.encode(committed)
        builder.append(number, timestamp_ms, key, value, [])
    return bytes(builder.build())


def decode_commits(batch: RecordBatch) -> Iterator[Commit]:
    """The commits of one batch; other records (a client wrote to the internal topic) are passed over."""
    records: Any = DefaultRecordBatch(whole(batch))
    for record in records:
        try:
            key = msgspec.msgpack.decode(record.key or b"", type=_Key)
            deleted = record.value is None
            committed = None if deleted else msgspec.msgpack.decode(record.value, type=CommittedOffset)
        except msgspec.MsgspecError:
            continue
        yield key.group, TopicPartition(key.topic, key.partition), committed


class OffsetStore:
    """The committed offsets of the groups that this broker is responsible for (rules 44 and 46)."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets[CommittedOffset]] = {}

    def put(
        self,
        group: str,
        commits: Mapping[TopicPartition, CommittedOffset | None],
        log_offset: int,
        producer_id: int = NONE,
    ) -> None:
        """Remember commits that are on the log at ``log_offset``; a producer's wait for its transaction's end.

        What is deleted is forgotten. Calls come in the order of the log.
        """
        offsets = self._groups.setdefault(group, GroupOffsets())
        kept = {partition: committed for partition, committed in commits.items() if committed is not None}
        if producer_id == NONE:
            offsets.commit(kept, log_offset)
        else:
            offsets.hold(producer_id, kept, log_offset)
        offsets.drop(commits.keys() - kept)
        if not offsets.partitions():
            del self._groups[group]

    def end(self, partition: TopicPartition, producer_id: int, *, commit: bool) -> None:
        """A marker on this ``partition`` of the internal topic ended the transaction of a producer."""
        for group, offsets in self._groups.items():
            if partition_of(group) == partition:
                offsets.end(producer_id, commit=commit)

    def load(self, partition: TopicPartition, batch: RecordBatch) -> None:
        """Take over a batch of this ``partition`` of the internal topic; batches come in their order."""
        if batch.marker is not None:
            self.end(partition, batch.producer_id, commit=batch.marker.commit)
            return
        producer_id = batch.producer_id if batch.transactional else NONE
        for group, committed_partition, committed in decode_commits(batch):
            self.put(group, {committed_partition: committed}, batch.base_offset, producer_id)

    def get(self, group: str) -> GroupOffsets[CommittedOffset]:
        """The offsets of ``group``."""
        return self._groups.get(group, GroupOffsets())

    def groups(self) -> set[str]:
        """Every group that has committed something."""
        return {group for group, offsets in self._groups.items() if offsets.everything()}

    def has_room(self, group: str) -> bool:
        """True if ``group`` may commit."""
        return group in self._groups or len(self._groups) < OFFSET_GROUPS_MAX

    def forget(self, partition: TopicPartition) -> None:
        """Another broker is responsible for the groups of this ``partition`` of the internal topic now."""
        self._groups = {group: kept for group, kept in self._groups.items() if partition_of(group) != partition}

"""Reads logs for what they say of transactions and of groups: invariants hold a broker's state against it.

Written from the rules, and not from the code that keeps the same while a log grows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from harness.broker.core.groups.classic import ClassicRecord
from harness.broker.core.groups.consumer import GroupRecord
from harness.broker.core.groups.group import RecordKey
from harness.broker.core.messages import CommittedOffset, Deletion, RecordBatch
from harness.broker.core.transaction_coordinator import TransactionRecord
from harness.broker.core.types import TopicPartition

#: An aborted transaction: its producer, its first record and its marker. An open one has no marker.
Aborted: TypeAlias = tuple[int, int, int]
_Members: TypeAlias = GroupRecord | ClassicRecord


class LoggedTransactions:
    """The transactions of a log partition, and the newest epoch of each producer; ``ended`` are first and marker."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.aborted: list[Aborted] = []
        self.ended: list[tuple[int, int]] = []
        self.epochs: dict[int, int] = {}

    def read(self, batch: RecordBatch) -> tuple[int, int] | None:
        """Take the next batch; the epochs of its producer before and with it, where it has one that had another."""
        producer_id = batch.producer_id
        if producer_id < 0:
            return None
        before, after = self.epochs.get(producer_id, batch.producer_epoch), batch.producer_epoch
        self.epochs[producer_id] = max(before, after)
        if batch.transactional and batch.marker is None:
            self.open.setdefault(producer_id, batch.base_offset)
        elif batch.marker is not None and producer_id in self.open:
            first = self.open.pop(producer_id)
            self.ended.append((first, batch.base_offset))
            if not batch.marker.commit:
                self.aborted.append((producer_id, first, batch.base_offset))
        return (before, after) if after != before else None

    def stable_end(self, high_watermark: int) -> int:
        """The first offset that is not committed, or belongs to a transaction that is not ended below there."""
        firsts = [*self.open.values()]
        for first, marker in reversed(self.ended):
            if marker < high_watermark:
                break
            firsts.append(first)
        return min([high_watermark, *firsts])


class LoggedGroup(msgspec.Struct):
    """A group: the last record of its members, and offsets by log partition; those of open transactions by producer."""

    members: _Members | None = None
    offsets: dict[TopicPartition, CommittedOffset] = {}
    pending: dict[int, dict[TopicPartition, CommittedOffset]] = {}


class _GroupsRead:
    def __init__(self) -> None:
        self.groups: dict[str, LoggedGroup] = {}
        self._placed: dict[RecordKey, int] = {}
        self._waiting: dict[int, list[tuple[RecordKey, TopicPartition, int, CommittedOffset]]] = {}

    def read(self, batch: RecordBatch) -> None:
        if batch.marker is not None:
            ended = self._waiting.pop(batch.producer_id, [])
            for each in ended if batch.marker.commit else ():
                self._remember(*each)
            return
        for record in batch.records:
            key = msgspec.msgpack.decode(record[0], type=RecordKey)
            group = self.groups.setdefault(key.group, LoggedGroup())
            if type(record) is Deletion:
                self._delete(group, key)
            elif key.partition is None:
                group.members = msgspec.msgpack.decode(record[1], type=_Members)
            else:
                offset = msgspec.msgpack.decode(record[1], type=CommittedOffset)
                placed = (key, key.partition, batch.base_offset, offset)
                if batch.transactional:
                    self._waiting.setdefault(batch.producer_id, []).append(placed)
                else:
                    self._remember(*placed)

    def _remember(self, key: RecordKey, partition: TopicPartition, log_offset: int, offset: CommittedOffset) -> None:
        if self._placed.get(key, -1) < log_offset:
            self._placed[key] = log_offset
            self.groups[key.group].offsets[partition] = offset

    def _delete(self, group: LoggedGroup, key: RecordKey) -> None:
        if key.partition is None:
            group.members = None
            return
        group.offsets.pop(key.partition, None)
        self._placed.pop(key, None)
        for producer_id, held in self._waiting.items():
            self._waiting[producer_id] = [each for each in held if each[0] != key]

    def end(self) -> dict[str, LoggedGroup]:
        for producer_id, held in self._waiting.items():
            for key, partition, _, offset in held:
                self.groups[key.group].pending.setdefault(producer_id, {})[partition] = offset
        return self.groups


def logged_groups(batches: Iterable[RecordBatch]) -> dict[str, LoggedGroup]:
    """The groups by the batches of their log. Of offsets that count the last on the log is remembered (rule 46)."""
    groups = _GroupsRead()
    for batch in batches:
        groups.read(batch)
    return groups.end()


def logged_decisions(batches: Iterable[RecordBatch]) -> dict[str, TransactionRecord]:
    """The last record of each transactional id."""
    return {
        key.decode(): msgspec.msgpack.decode(value, type=TransactionRecord)
        for batch in batches
        for key, value in batch.records
    }

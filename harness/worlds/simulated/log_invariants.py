"""The invariants of what a log keeps, asked of one replica after the steps that may have changed it.

What was on a log is remembered here as it was appended. So a cleaner and retention are held against what was there, and
the index of transactions against what is there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import msgspec

from harness.broker.core.broker import CLEAN, EXPIRE
from harness.broker.core.coordinated import transactions_in
from harness.broker.core.effects import Timer
from harness.broker.core.invariants import (
    Broken,
    cleaning_keeps,
    producers_grow,
    retention_keeps_young,
    tombstone_stays,
)
from harness.broker.core.log import MemoryLog
from harness.broker.core.logged import LoggedTransactions
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, NodeId, TopicConfig, TopicPartition

#: Steps of a broker by itself that take records away.
TAKES_AWAY: Final = frozenset({CLEAN.name, EXPIRE.name})


class Newest(msgspec.Struct, frozen=True):
    """The newest record of a key, as it was appended."""

    offset: int
    is_tombstone: bool
    stamped_us: int


class _Seen(msgspec.Struct):
    """The part of one log that was read: up to ``end``, with ``last`` as its last batch; of keys what is committed."""

    log: MemoryLog
    end: int
    last: RecordBatch | None = None
    transactions: LoggedTransactions = msgspec.field(default_factory=LoggedTransactions)
    stamps: list[tuple[int, int]] = []
    producers: dict[int, RecordBatch] = {}
    committed: int = 0
    newest: dict[bytes, Newest] = {}


class LogInvariants:
    """Looks at the logs of all brokers."""

    def __init__(self) -> None:
        self._seen: dict[tuple[NodeId, TopicPartition], _Seen] = {}

    def look(self, node: NodeId, replica: Replica, config: TopicConfig) -> Iterator[Broken | None]:
        """Read what is new on a log, and compare what it knows of transactions."""
        log = replica.log
        if not isinstance(log, MemoryLog):
            return
        seen = self._seen.get((node, replica.partition))
        if seen is None or seen.log is not log or not _goes_on(seen, log):
            seen = self._seen[node, replica.partition] = _Seen(log, log.start_offset)
        yield from self._read(node, seen, config)
        if config.compacted:
            _read_keys(seen, replica.high_watermark)
        if seen.stamps and seen.stamps[0][0] < log.start_offset:  # The leader's start was taken over.
            seen.stamps = [each for each in seen.stamps if each[0] >= log.start_offset]
        if seen.transactions.epochs or log.producers.transactions.open or log.producers.transactions.aborted:
            yield transactions_in(node, log, seen.transactions)

    def taken_away(
        self, node: NodeId, replica: Replica, config: TopicConfig, timer: Timer, now_us: int
    ) -> Iterator[Broken | None]:
        """A broker has cleaned a log, or dropped what is too old; nothing was appended in that step."""
        seen, log = self._seen.get((node, replica.partition)), replica.log
        if seen is None or seen.log is not log or not isinstance(log, MemoryLog) or log.end_offset < seen.end:
            return
        if timer.name == EXPIRE.name:
            for base_offset, stamped_us in seen.stamps:
                if base_offset < log.start_offset:
                    yield retention_keeps_young(node, base_offset, now_us - stamped_us, config.retention_ms * 1000)
            seen.stamps = [each for each in seen.stamps if each[0] >= log.start_offset]
            return
        _read_keys(seen, replica.high_watermark)
        for key, newest in list(seen.newest.items()):
            if newest.offset >= log.cleaned_to or newest.offset < log.start_offset or _has(log, newest.offset):
                continue
            if newest.is_tombstone:
                age_us = now_us - newest.stamped_us
                yield tombstone_stays(node, newest.offset, age_us, config.delete_retention_ms * 1000)
                del seen.newest[key]
            else:
                yield cleaning_keeps(node, "the newest record of a key", newest.offset, is_kept=False)
        for producer_id, batch in seen.producers.items():
            if log.start_offset <= batch.base_offset < log.cleaned_to:
                is_kept = _has_batch(log, batch.base_offset)
                yield cleaning_keeps(
                    node, f"the last batch of producer {producer_id}", batch.base_offset, is_kept=is_kept
                )

    def _read(self, node: NodeId, seen: _Seen, config: TopicConfig) -> Iterator[Broken | None]:
        for batch in _batches_from(seen.log, seen.end):
            epochs = seen.transactions.read(batch)
            if epochs is not None:
                yield producers_grow(node, batch.producer_id, *epochs, batch.base_offset)
            if config.expires:
                seen.stamps.append((batch.base_offset, batch.stamped_us))
            if batch.producer_id != NONE and (batch.marker is None or epochs is not None):
                seen.producers[batch.producer_id] = batch
            seen.last = batch
        seen.end = seen.log.end_offset


def _goes_on(seen: _Seen, log: MemoryLog) -> bool:
    """Nothing was truncated of what was read; its last batch may have been cleaned, or dropped."""
    if log.end_offset < seen.end:
        return False
    last = seen.last
    if last is None or last.base_offset < max(log.cleaned_to, log.start_offset):
        return True
    index = bisect_left(log.batches, last.base_offset, key=_base)
    return index < len(log.batches) and log.batches[index].leader_epoch == last.leader_epoch


def _read_keys(seen: _Seen, high_watermark: int) -> None:
    """The newest record of each key below the last stable offset, without what was aborted."""
    if seen.committed >= high_watermark:
        return
    stable_end = seen.transactions.stable_end(high_watermark)
    for batch in _batches_from(seen.log, seen.committed):
        if batch.next_offset > stable_end:
            break
        aborted = any(
            who == batch.producer_id and first <= batch.base_offset < marker
            for who, first, marker in (seen.transactions.aborted if batch.transactional else ())
        )
        for offset, record in () if aborted or batch.marker is not None else batch.placed():
            seen.newest[record[0]] = Newest(offset, type(record) is Deletion, batch.stamped_us)
        seen.committed = batch.next_offset


def _base(batch: RecordBatch) -> int:
    return batch.base_offset


def _batches_from(log: MemoryLog, offset: int) -> list[RecordBatch]:
    if log.end_offset <= offset:
        return []
    return log.batches[bisect_left(log.batches, offset, key=_base) :]


def _has(log: MemoryLog, offset: int) -> bool:
    """A record is at this offset."""
    index = bisect_left(log.batches, offset + 1, key=_base) - 1
    return index >= 0 and offset in log.batches[index].offsets


def _has_batch(log: MemoryLog, base_offset: int) -> bool:
    index = bisect_left(log.batches, base_offset, key=_base)
    return index < len(log.batches) and log.batches[index].base_offset == base_offset

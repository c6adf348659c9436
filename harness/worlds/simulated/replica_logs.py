"""Reads what the simulated disks hold, in the words of every world.

There are thousands of simulated runs, so this must take next to no time beside a run: replicas share the records that
a producer made, and mostly whole logs, so each is decoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, is_
from typing import Final

import numpy as np

from checkers import TransactionPart
from harness.broker.core.log import MemoryLog
from harness.broker.core.messages import Deletion, RecordBatch
from harness.broker.core.types import TopicPartition
from harness.records.replica_dump import DumpedLog, Facts, ReplicaLogs, Stretch
from harness.worlds.replica_logs import content_of
from harness.worlds.simulated.cluster import SimulatedCluster
from workloads import LogPartition
from workloads.values import record_key_of

#: All that a log in memory holds.
_EVERYTHING: Final = 2**62
_INTACT: Final = attrgetter("intact")
_RECORDS: Final = attrgetter("records")


def logs_of(cluster: SimulatedCluster, log_partitions: Iterable[LogPartition], *, keyed: bool = False) -> ReplicaLogs:
    """The logs of these log partitions on the disks of all brokers; of ``keyed`` records with what is said of keys."""
    logs: list[DumpedLog] = []
    for log_partition in log_partitions:
        partition = TopicPartition(*log_partition)
        decoder = _Decoder(str(partition), keyed=keyed)
        copies = [(node, log) for node in cluster.brokers if (log := cluster.log(node, partition)) is not None]
        logs += [DumpedLog(str(partition), node, decoder.stretches(log), _damage(log)) for node, log in copies]
    return ReplicaLogs(logs, {})


def is_damaged(cluster: SimulatedCluster, name: str, node: int) -> bool:
    """True if a broker's log of this log partition has a bad batch."""
    log = cluster.log(node, TopicPartition(*LogPartition.named(name)))
    return log is not None and bool(_damage(log))


def _damage(log: MemoryLog) -> list[str]:
    return [f"the batch at offset {batch.base_offset} is damaged" for batch in log.batches if not batch.intact]


def _holds_records(batch: RecordBatch) -> bool:
    return batch.intact and bool(batch.records)


class _Decoder:
    """Decodes the replicas of one log partition."""

    def __init__(self, partition: str, *, keyed: bool) -> None:
        self._partition = partition
        self._keyed = keyed
        self._values: dict[int, list[int]] = {}
        self._logs: list[tuple[Sequence[RecordBatch], Stretch]] = []

    def stretches(self, log: MemoryLog) -> list[Stretch]:
        """All of ``log`` but its bad batches, and those of a leader, which hold no records."""
        batches = log.read(log.start_offset, _EVERYTHING, _EVERYTHING)
        if all(map(_INTACT, batches)) and all(map(_RECORDS, batches)):
            return [self._stretch(batches)]
        return [self._stretch([*run]) for wanted, run in groupby(batches, _holds_records) if wanted]

    def _stretch(self, batches: Sequence[RecordBatch]) -> Stretch:
        """These batches. Those that an earlier log holds too are decoded once."""
        for batches_before, stretch in self._logs:
            if len(batches_before) == len(batches) and all(map(is_, batches_before, batches)):
                return stretch
        stretch = self._decoded(batches)
        self._logs.append((batches, stretch))
        return stretch

    def _decoded(self, batches: Sequence[RecordBatch]) -> Stretch:
        counts = [len(batch.records) for batch in batches]
        values: list[int] = []
        for batch in batches:
            values += self._values.get(id(batch.records)) or self._decode(batch.records)
        epochs = np.repeat(np.array([batch.leader_epoch for batch in batches], np.int32), counts)
        if self._keyed:
            offsets = np.array([offset for batch in batches for offset in batch.offsets], np.int64)
            return Stretch(offsets, epochs, np.array(values, np.int64), _facts(batches, counts))
        # These batches follow each other without a gap: only logs of keyed records are cleaned.
        first = batches[0].base_offset if batches else 0
        return Stretch(np.arange(first, first + len(values)), epochs, np.array(values, np.int64))

    def _decode(self, records: Sequence[tuple[bytes, bytes]]) -> list[int]:
        """Kept by identity: followers hold other batches than their leader, but the same records."""
        values = [content_of(payload, self._partition, key) for key, payload in records]
        self._values[id(records)] = values
        return values


def _facts(batches: Sequence[RecordBatch], counts: Sequence[int]) -> Facts:
    """The keys and producers of all records; none is in a transaction."""
    records = [record for batch in batches for record in batch.records]
    ids, epochs = ([getattr(batch, name) for batch in batches] for name in ("producer_id", "producer_epoch"))
    return Facts(
        record_keys=np.array([record_key_of(key) for key, _ in records], np.int64),
        tombstones=np.array([type(record) is Deletion for record in records], np.int8),
        producer_ids=np.repeat(np.array(ids, np.int64), counts),
        producer_epochs=np.repeat(np.array(epochs, np.int32), counts),
        parts=np.full(len(records), TransactionPart.RECORD, np.int8),
    )

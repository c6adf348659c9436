"""Shows scripted stories every replica, as it is in the simulated brokers at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from harness.broker.core.messages import RecordBatch
from harness.broker.core.replica import Replica
from harness.worlds.contract import GroupWord, PlacedRecord, ReplicaState
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.cluster import SimulatedCluster
from nemesis.evidence import Evidence
from workloads.values import decode


class SimulatedReplicas:
    """Implements :class:`harness.worlds.contract.Replicas`: it sees everything at once; ``group`` is the run's."""

    def __init__(self, cluster: SimulatedCluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._placed: dict[tuple[int, str], tuple[list[RecordBatch], tuple[PlacedRecord, ...]]] = {}

    def state(self, node: int, partition: str) -> ReplicaState:
        """Read the replica from the broker's core and its disk."""
        log_partition, broker = parsed(partition), self._cluster.broker(node)
        log = self._cluster.log(node, log_partition)
        if log is None:
            return ReplicaState(node=node, running=broker is not None, log_end=0)
        replica: Replica | None = None if broker is None else broker.replicas.get(log_partition)
        return ReplicaState(
            node=node,
            running=broker is not None,
            log_end=log.end_offset,
            records=self._records(node, partition, log.batches),
            epochs=tuple(log.epochs()),
            written_high_watermark=log.checkpointed_high_watermark(),
            leading=replica is not None and replica.leading,
            leader_epoch=None if replica is None else replica.leader_epoch,
            high_watermark=None if replica is None else replica.high_watermark,
            isr=replica.isr if replica is not None and replica.leading else None,
            last_stable_offset=None if replica is None else replica.stable_end(),
        )

    def _records(self, node: int, partition: str, batches: Sequence[RecordBatch]) -> tuple[PlacedRecord, ...]:
        """The records of a log; they are read again only if its batches are others than before: a story looks often."""
        before, records = self._placed.get((node, partition), ([], ()))
        if before != batches:
            records = tuple(record for batch in batches for record in _placed(partition, batch))
            self._placed[node, partition] = list(batches), records
        return records

    def fenced(self) -> frozenset[int]:
        """Name the brokers that the controller's image has as fenced or not at all."""
        registered = self._cluster.image().brokers
        return frozenset(node for node in self._cluster.brokers if node not in registered or registered[node].fenced)

    def group_is_empty(self, node: int) -> bool | None:
        """Read it from the broker's core."""
        members = self.group(node).members
        return None if members is None else members == 0

    def group(self, node: int) -> GroupWord:
        """Read it from the broker's core."""
        broker = self._cluster.broker(node)
        if broker is None:
            return GroupWord()
        error, group = broker.group(self._group)
        if error:
            return GroupWord()
        return GroupWord(
            committed={
                str(partition): remembered.offset for partition, remembered in group.offsets.everything().items()
            },
            members=group.members,
            assigned=group.assigned,
        )

    def transaction(self, node: int, transactional_id: str) -> str | None:
        """Read it from the broker's core, in Kafka's words."""
        broker = self._cluster.broker(node)
        record = None if broker is None else broker.transactional_ids[1].get(transactional_id)
        return (
            None if record is None else f"{record.state.name.title().replace('_', '')} in epoch {record.producer_epoch}"
        )

    def stable_end(self, node: int, partition: str) -> int | None:
        """Read it from the broker's core."""
        broker = self._cluster.broker(node)
        replica = None if broker is None else broker.replicas.get(parsed(partition))
        return replica.stable_end() if replica is not None and replica.leading else None

    def flush(self, node: int) -> Evidence:
        """See :meth:`harness.worlds.contract.Replicas.flush`. Evidence: ``flushed``, log end offsets by partition."""
        broker = self._cluster.broker(node)
        if broker is None:
            return {}
        for replica in broker.replicas.values():
            replica.log.flush()
            replica.log.checkpoint_high_watermark(replica.high_watermark)
        return {"flushed": {str(partition): replica.log.end_offset for partition, replica in broker.replicas.items()}}


def _placed(partition: str, batch: RecordBatch) -> list[PlacedRecord]:
    return [
        PlacedRecord(offset, batch.leader_epoch, _value(payload, partition, key), batch.intact)
        for offset, (key, payload) in batch.placed()
    ]


@lru_cache(maxsize=4_096)
def _value(payload: bytes, partition: str, key: bytes) -> int:
    return decode(payload, partition, key)[0]

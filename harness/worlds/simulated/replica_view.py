"""Shows scripted stories every replica, as it is in the simulated brokers at this moment."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from harness.reference.core.messages import RecordBatch
from harness.reference.core.replica import Replica
from harness.worlds.contract import PlacedRecord, ReplicaState
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.cluster import SimulatedCluster
from nemesis.evidence import Evidence
from workloads.values import decode


class SimulatedReplicas:
    """Implements :class:`harness.worlds.contract.Replicas`: it sees everything at once."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def state(self, node: int, partition: str) -> ReplicaState:
        """Read the replica from the broker's core and its disk."""
        log_partition, broker = parsed(partition), self._cluster.broker(node)
        log = self._cluster.log(node, log_partition)
        if log is None:
            return ReplicaState(node=node, running=broker is not None, log_end=0)
        records = tuple(record for batch in log.batches for record in _placed(partition, batch))
        written = ReplicaState(
            node=node,
            running=broker is not None,
            log_end=log.end_offset,
            records=records,
            epochs=tuple(log.epochs()),
            written_high_watermark=log.checkpointed_high_watermark(),
        )
        replica: Replica | None = None if broker is None else broker.replicas.get(log_partition)
        if replica is None:
            return written
        return msgspec.structs.replace(
            written,
            leading=replica.leading,
            leader_epoch=replica.leader_epoch,
            high_watermark=replica.high_watermark,
            isr=replica.isr if replica.leading else None,
            last_stable_offset=replica.stable_end(),
        )

    def fenced(self) -> frozenset[int]:
        """Name the brokers that the controller's image has as fenced or not at all."""
        registered = self._cluster.image().brokers
        return frozenset(node for node in self._cluster.brokers if node not in registered or registered[node].fenced)

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

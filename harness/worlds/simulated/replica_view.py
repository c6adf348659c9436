"""Shows scripted stories every replica, as it is in the simulated brokers at this moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from harness.reference.core import messages
from harness.reference.core.messages import RecordBatch
from harness.reference.core.replica import Replica
from harness.reference.core.types import TopicPartition
from harness.worlds.contract import Delivery, PlacedRecord, ReplicaState
from harness.worlds.simulated.arrivals import Arrivals, SeenMessage
from harness.worlds.simulated.clients import parsed
from harness.worlds.simulated.cluster import Cluster
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import Evidence
from workloads.values import decode


class SimulatedReplicas:
    """Implements :class:`harness.worlds.contract.Replicas`: it sees everything at once."""

    def __init__(self, cluster: Cluster, loop: Loop) -> None:
        self._cluster = cluster
        self.arrivals: Final = Arrivals(loop)

    def state(self, node: int, partition: str) -> ReplicaState:
        """See :meth:`harness.worlds.contract.Replicas.state`."""
        at, broker = parsed(partition), self._cluster.broker(node)
        log = self._cluster.log(node, at)
        if log is None:
            return ReplicaState(node=node, running=broker is not None, log_end=0)
        records = tuple(record for batch in log.batches for record in _placed(partition, batch))
        replica: Replica | None = None if broker is None else broker.replicas.get(at)
        if replica is None:
            return ReplicaState(node=node, running=broker is not None, log_end=log.end_offset, records=records)
        return ReplicaState(
            node=node,
            running=True,
            log_end=log.end_offset,
            records=records,
            leading=replica.leading,
            leader_epoch=replica.leader_epoch,
            high_watermark=replica.high_watermark,
            isr=replica.isr if replica.leading else None,
        )

    def fenced(self) -> frozenset[int]:
        """See :meth:`harness.worlds.contract.Replicas.fenced`."""
        known = self._cluster.image().brokers
        return frozenset(node for node in self._cluster.brokers if node not in known or known[node].fenced)

    def flush(self, node: int) -> Evidence:
        """See :meth:`harness.worlds.contract.Replicas.flush`. Evidence: ``flushed``, log end offsets by partition."""
        broker = self._cluster.broker(node)
        if broker is None:
            return {}
        for replica in broker.replicas.values():
            replica.log.flush()
            replica.log.checkpoint_high_watermark(replica.high_watermark)
        return {"flushed": {str(at): replica.log.end_offset for at, replica in broker.replicas.items()}}

    def deliveries(self) -> Sequence[Delivery]:
        """See :meth:`harness.worlds.contract.Replicas.deliveries`."""
        return [found for one in self.arrivals.take() for found in _delivery(one)]


def _delivery(seen: SeenMessage) -> Iterator[Delivery]:
    """What a message says of the one log partition of a story; one that says nothing of it is left out."""
    time_us, source, target, message = seen
    make = partial(Delivery, time_us=time_us, source=source, target=target, what=type(message).__name__)
    match message:
        case messages.Produce(batch=batch):
            yield make(values=_values(message.partition, [batch]))
        case messages.ProduceResponse(base_offset=offset, error=error):
            yield make(offset=offset, error=error.name if error else None)
        case messages.Fetch(partitions=(wanted,)):
            yield make(offset=wanted.fetch_offset, leader_epoch=wanted.current_leader_epoch)
        case messages.FetchResponse(partitions=(found,)):
            end = found.diverging
            yield make(
                offset=None if end is None else end.end_offset,
                leader_epoch=None if end is None else end.leader_epoch,
                high_watermark=found.high_watermark,
                values=_values(found.partition, found.batches),
                error=found.error.name if found.error else None,
            )
        case messages.OffsetForLeaderEpochResponse(end=end):
            yield make(offset=end.end_offset, leader_epoch=end.leader_epoch)
        case messages.AlterPartition(leader_epoch=epoch):
            yield make(leader_epoch=epoch)
        case messages.AlterPartitionResponse(error=error):
            yield make(error=error.name if error else None)
        case messages.MetadataUpdate():
            yield make()


def _values(partition: TopicPartition, batches: Iterable[RecordBatch]) -> tuple[int, ...]:
    return tuple(record.value for batch in batches for record in _placed(str(partition), batch))


def _placed(partition: str, batch: RecordBatch) -> list[PlacedRecord]:
    return [
        PlacedRecord(offset, batch.leader_epoch, _value(payload, partition, key), batch.intact)
        for offset, (key, payload) in enumerate(batch.records, batch.base_offset)
    ]


@lru_cache(maxsize=4_096)
def _value(payload: bytes, partition: str, key: bytes) -> int:
    return decode(payload, partition, key)[0]

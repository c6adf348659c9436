"""Kafka's internal topics, for the scripts of findings: brokers that are tuned for them, and what is in their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kafka.record import MemoryRecords
from typing_extensions import override

from harness.plan import Kafka, RunSpec
from harness.reference.core.types import serving_partition
from harness.reference.server.storage.segment_files import batches_of
from harness.worlds.kafka import client_library
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.distribution import KafkaDistribution, host_for
from harness.worlds.real import RealWorld, StartedCluster
from harness.worlds.real.nodes import Nodes
from harness.worlds.replica_logs import log_directory
from nemesis.cluster import PartitionView
from tests.harness.clients.script import Script
from tests.harness.worlds.processes.conftest import Cluster, spec

#: Partitions of each of both topics.
PARTITIONS_EACH: Final = 4
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


class Stored(NamedTuple):
    """A record in a log: a "value", a "tombstone", or a marker ("abort", "commit")."""

    offset: int
    kind: str


class _Tuned(KafkaDistribution):
    """Kafka whose brokers have more properties than a run's settings."""

    def __init__(self, run: RunSpec, more: Mapping[str, object]) -> None:
        super().__init__(run)
        self._more = {name: str(value) for name, value in more.items()}

    @override
    def properties(self, nodes: Nodes, node: int) -> dict[str, str]:
        return super().properties(nodes, node) | self._more


def tuned_world(
    planned: Kafka,
    directory: Path,
    settings: Mapping[str, Any],
    of_brokers: Mapping[str, object],
    assignment: Sequence[tuple[int, ...]],
) -> RealWorld:
    """The world of a cluster, not yet opened, whose internal topics have the values ``of_brokers``."""
    run = spec(dict(settings), world=planned, assignment=tuple(assignment))
    distribution = _Tuned(run, of_brokers)
    host = host_for(planned, directory.absolute(), distribution)
    return RealWorld(run, directory, StartedCluster(run, directory, distribution, host), client_library)


class OperatedScript(Script):
    """A script with an operator, who moves the leaders of internal topics."""

    def __init__(self, cluster: Cluster, operator: Administration) -> None:
        super().__init__(cluster, cluster.world.clients)
        self.operator = operator

    def lead(self, partition: str, broker: int, *, whole: bool = True, then: Sequence[int] = ()) -> None:
        """Let ``broker`` lead, and wait until it does, by the controller's word; ``whole``: all are in sync then.

        After it elections prefer the replicas in the order of ``then``. Kafka draws their first order by chance.
        """
        order = (broker, *then) if then else self.view(partition).replicas
        refused = self.operator.move_leader(partition, broker, order)
        assert not refused, refused
        self.until(lambda: self.view(partition).leader == broker)
        if whole:
            self.until(lambda: self.is_whole(partition))

    def view(self, partition: str) -> PartitionView:
        """The partition as brokers describe it."""
        image = self.operator.topic(partition.rpartition("-")[0])
        assert image is not None
        return image.partitions[partition]

    def is_whole(self, partition: str) -> bool:
        """True if all replicas are in sync."""
        view = self.view(partition)
        return set(view.isr) == set(view.replicas)


def serving(topic: str, name: str) -> str:
    """The partition of an internal topic that serves the group or the transactional id of this name."""
    return f"{topic}-{serving_partition(name, PARTITIONS_EACH)}"


def stored(run: Path, node: int, partition: str) -> list[Stored] | None:
    """The content of a broker's log of ``partition``; None while it has none, or it is being cleaned."""
    directory = log_directory(run / "data" / str(node), partition)
    try:
        return (
            None
            if directory is None
            else [record for log in sorted(directory.glob("*.log")) for record in _records(log)]
        )
    except FileNotFoundError:  # the cleaner has replaced a segment
        return None


def _records(segment: Path) -> Iterator[Stored]:
    with segment.open("rb") as file:
        for location in batches_of(file):
            file.seek(location.position)
            batch = MemoryRecords(file.read(location.size_bytes)).next_batch()
            for record in batch or ():
                if batch.is_control_batch:
                    kind = "commit" if record.key[_KIND_AT] else "abort"
                else:
                    kind = "tombstone" if record.value is None else "value"
                yield Stored(record.offset, kind)

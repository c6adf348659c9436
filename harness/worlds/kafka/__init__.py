"""The world of Apache Kafka: real brokers in Java, as processes of this machine or of others."""

from pathlib import Path

from harness.plan import Kafka, RunSpec, require_kind
from harness.worlds.kafka.distribution import KafkaDistribution, host_for, release_for
from harness.worlds.real import RealWorld, StartedCluster

__all__ = ["kafka_world", "release_for"]


def kafka_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    distribution = KafkaDistribution(spec)
    host = host_for(require_kind(spec.world, Kafka), directory.absolute(), distribution)
    return RealWorld(spec, directory, StartedCluster(spec, directory, distribution, host))

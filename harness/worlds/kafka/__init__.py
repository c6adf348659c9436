"""The world of Apache Kafka: real brokers in Java, as processes of this machine or of others."""

from collections.abc import Mapping
from pathlib import Path

from harness.plan import Kafka, RunSpec, require_kind
from harness.worlds.kafka.distribution import (
    KafkaDistribution,
    host_for,
    host_kind,
    release_for,
    release_of,
    successor_for,
)
from harness.worlds.kafka.java_client import client_library, client_release, client_version, with_one_library
from harness.worlds.kafka.properties import foreign_rule
from harness.worlds.kafka.reaching import require_answer
from harness.worlds.real import RealWorld, StartedCluster, out_of_reach
from nemesis.cluster import Capability

__all__ = [
    "client_library",
    "client_release",
    "client_version",
    "foreign_rule",
    "kafka_lacks",
    "kafka_world",
    "release_for",
    "release_of",
    "require_answer",
    "successor_for",
    "with_one_library",
]


def kafka_world(spec: RunSpec, directory: Path, distribution: KafkaDistribution | None = None) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    distribution = distribution or KafkaDistribution(spec)
    host = host_for(require_kind(spec.world, Kafka), directory.absolute(), distribution)
    return RealWorld(spec, directory, StartedCluster(spec, directory, distribution, host), client_library)


def kafka_lacks(spec: RunSpec) -> Mapping[Capability, str]:
    """The capabilities that the nodes of the run ``spec`` lack on every machine, each with the reason."""
    host = host_kind(require_kind(spec.world, Kafka))
    return out_of_reach(KafkaDistribution(spec).lacks(host), host)

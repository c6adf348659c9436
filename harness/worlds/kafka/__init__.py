"""The world of Apache Kafka: real brokers in Java, as processes of this machine, or a cluster that exists already."""

from harness.worlds.existing.world import ExistingWorld
from harness.worlds.kafka.world import KafkaWorld

__all__ = ["ExistingWorld", "KafkaWorld"]

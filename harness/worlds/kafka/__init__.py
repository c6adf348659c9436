"""The world of Apache Kafka: real brokers in Java, as processes of this machine."""

from harness.worlds.kafka.world import KafkaWorld

__all__ = ["KafkaWorld"]

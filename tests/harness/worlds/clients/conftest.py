"""A cluster of Kafka for those who break nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.plan import Kafka
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from tests.harness.worlds.processes.conftest import Cluster, spec


@pytest.fixture(scope="package")
def plain_kafka(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Apache Kafka for those who break nothing: all brokers live, and lead what they lead, until the end."""
    directory = tmp_path_factory.mktemp("kafka")
    # librdkafka refuses a transaction.timeout.ms that is shorter than delivery.timeout.ms.
    patient = {"request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000, "transaction.timeout.ms": 30_000}
    patient |= {"acks": "all", "enable.idempotence": True}
    world = kafka_world(spec(patient, world=Kafka()), directory)
    world.open()
    yield Cluster(world, directory)
    world.close()

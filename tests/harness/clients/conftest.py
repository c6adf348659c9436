"""Clusters for the scripts of the findings about client libraries, and what Kafka's own client needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.plan import Kafka
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.java_client import started_bridge
from tests.harness.clients.first_batches import Stage
from tests.harness.clients.senders import Java
from tests.harness.needs import ON_KAFKA
from tests.harness.worlds.processes.conftest import Cluster, spec


@pytest.fixture(scope="package", params=["processes", ON_KAFKA])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The reference broker as processes, then Apache Kafka."""
    if request.param == "kafka":
        request.getfixturevalue("real_kafka")
    stage = Stage(request.param, tmp_path_factory.mktemp(request.param))
    yield stage
    stage.close()


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


@pytest.fixture(scope="package")
def java_client(
    real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], Java]]:
    """Makes producers of Kafka's own client, all in one JVM."""
    bridge = started_bridge(real_kafka, tmp_path_factory.mktemp("java-client"))
    yield partial(Java, bridge=bridge)
    bridge.end()

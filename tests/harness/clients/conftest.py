"""Clusters for the scripts of the findings about client libraries, and what Kafka's own client needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.plan import Kafka, RunSpec
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import Installation
from nemesis.plan import FaultPlan
from tests.harness.clients.first_batches import Stage
from tests.harness.clients.senders import Java, compile_java
from tests.harness.worlds.processes.conftest import Cluster
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

#: Idempotent, which transactions need; patient, because nothing is broken on purpose.
SETTINGS = Settings.from_mapping(
    {"enable.idempotence": True, "min.insync.replicas": 2, "request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000}
)


@pytest.fixture(scope="package", params=["processes", "kafka"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The reference broker as processes, then Apache Kafka."""
    if request.param == "kafka":
        request.getfixturevalue("real_kafka")
    stage = Stage(request.param, tmp_path_factory.mktemp(request.param))
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def java_client(
    real_kafka: Installation,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, int], Java]:
    """Makes producers of Kafka's own client; without a compiler for the program that uses it, a skip."""
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler on this machine; install openjdk-17-jdk-headless")
    classes = tmp_path_factory.mktemp("classes")
    compile_java(classes)
    return partial(Java, classes=classes)


@pytest.fixture(scope="session")
def kafka_cluster(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One healthy cluster of Apache Kafka for all tests of what its clients can do; each test has names of its own."""
    directory = tmp_path_factory.mktemp("clients")
    world = kafka_world(
        RunSpec(
            world=Kafka(),
            cell="cell/kill",
            family="kill",
            settings=SETTINGS.to_mapping(),
            workload=WorkloadPlan(),
            faults=FaultPlan(),
            seed=1,
        ),
        directory,
    )
    try:
        world.open()
        yield Cluster(world, directory)
    finally:
        world.close()

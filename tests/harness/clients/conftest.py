"""Clusters for the scripts of the findings about client libraries, and what Kafka's own client needs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.first_batches import Stage
from tests.harness.clients.senders import Java, compile_java


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

"""Clusters for the scripts of the findings about client libraries, and what Kafka's own client needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.harness.clients.first_batches import Stage


@pytest.fixture(scope="module", params=["processes", "kafka"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The reference broker as processes, then Apache Kafka."""
    if request.param == "kafka":
        request.getfixturevalue("real_kafka")
    stage = Stage(request.param, tmp_path_factory.mktemp(request.param))
    yield stage
    stage.close()


@pytest.fixture
def java_client(request: pytest.FixtureRequest) -> None:
    """Kafka's jars, and a compiler for the program that uses them; without one, a skip."""
    request.getfixturevalue("real_kafka")
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler on this machine; install openjdk-17-jdk-headless")

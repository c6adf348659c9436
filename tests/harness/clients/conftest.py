"""Clusters for the scripts of the findings about client libraries, and what Kafka's own client needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.java_client import started_bridge
from tests.harness.clients.first_batches import Stage
from tests.harness.clients.senders import Java


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
    real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str, int], Java]]:
    """Makes producers of Kafka's own client, all in one JVM."""
    bridge = started_bridge(real_kafka, tmp_path_factory.mktemp("java-client"))
    yield partial(Java, bridge=bridge)
    bridge.end()

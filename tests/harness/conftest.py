"""Ports for tests that listen, and releases of Apache Kafka for those that start it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from harness.ground.errors import NotReachableError
from harness.worlds.hosts import Ports
from harness.worlds.kafka.class_archive import make_archive
from harness.worlds.kafka.installation import Installation, install
from harness.worlds.kafka.releases import DEFAULT_VERSION


@pytest.fixture
def ports() -> Iterator[Ports]:
    """Nobody else is given these during the test."""
    with Ports() as ports:
        yield ports


@pytest.fixture(scope="session")
def kafka_release() -> Callable[[str], Installation]:
    """Installs a version where it is not there yet. Only where none can be fetched from here is that a skip.

    With ACKPROOF_NEEDS_KAFKA in the environment, as in .ci/run, it is a failure there, too.
    """

    def have(version: str) -> Installation:
        try:
            return install(version, make_archive)
        except NotReachableError as error:
            if os.environ.get("ACKPROOF_NEEDS_KAFKA"):
                raise
            pytest.skip(str(error))

    return have


@pytest.fixture(scope="session")
def real_kafka(kafka_release: Callable[[str], Installation]) -> Installation:
    """The default release."""
    return kafka_release(DEFAULT_VERSION)


@pytest.fixture
def plain_server(ports: Ports) -> Iterator[str]:
    """A server that does not understand TLS: it hangs up."""
    host, port = ports.take("127.0.0.1")
    with socket.create_server((host, port)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1_000)

        threading.Thread(target=serve, daemon=True).start()
        yield f"{host}:{port}"
        server.shutdown(socket.SHUT_RDWR)

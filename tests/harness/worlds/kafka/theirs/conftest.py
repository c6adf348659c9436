"""One cluster for all tests of this folder: somebody else's, with listeners that are open, and others that are not.

Each test leaves it as it was: with the topic "theirs" and no other.
"""

from collections.abc import Iterator

import pytest

from harness.runs.run.healing import heal
from harness.worlds.hosts import Ports
from harness.worlds.kafka.installation import Installation
from tests.harness.worlds.kafka.theirs.secured import SecuredCluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory, real_kafka: Installation) -> Iterator[SecuredCluster]:
    """Three brokers; whatever happens, nothing of them is left."""
    directory = tmp_path_factory.mktemp("theirs")
    try:
        with Ports() as ports:
            theirs = SecuredCluster(directory, ports)
            yield theirs
            theirs.world.close()
    finally:
        heal(directory)

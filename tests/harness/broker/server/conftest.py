"""Makes the helpers beside the tests importable, and starts a cluster for those that ask for one."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lone_broker import LoneBroker
from process_cluster import Cluster


@pytest.fixture
def alone(tmp_path):
    """A broker alone in its cluster, which coordinates all groups and transactions."""
    made = LoneBroker(tmp_path)
    yield made
    for log in made.logs.values():
        log.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three brokers and a controller, shared by the tests of a module."""
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield made.start()
    finally:
        made.close()

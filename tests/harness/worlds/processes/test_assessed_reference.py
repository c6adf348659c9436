"""A cluster of the reference broker is assessed as one of Kafka is: it is asked, and has the answer of its settings."""

from __future__ import annotations

import pytest

from harness.assess import Client, Performer, Question, assess, read_live
from harness.ground.progress import Progress
from harness.plan import Existing
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster

pytestmark = pytest.mark.system


def test_the_reference_broker_is_read_and_named_clean(cluster: Cluster) -> None:
    read = read_live(Existing(bootstrap=cluster.world.clients.bootstrap), Progress())
    (topic,) = read.topics
    assert (topic.name, topic.partitions, topic.replicas) == ("ackproof", len(PARTITIONS), 3)
    assert (read.brokers, topic.settings["min.insync.replicas"]) == (3, "2")
    with Performer(only=("S01", "S06", "S32")) as stage:
        (group,) = assess(Question(read, [Client(name="defaults", library="java")]), stage, Progress()).groups
    assert {concern.name for concern in group.concerns if concern.kind in {"now", "weakness", "risk"}} == set()

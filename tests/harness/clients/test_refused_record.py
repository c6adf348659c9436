"""KAFKA-9279 and its like: which clients commit a transaction without a record that was too large for them.

Where this fails with a newer library, docs/guides/clients.md has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.refused_record import played
from workloads.operations import EventType

pytestmark = [pytest.mark.system, pytest.mark.finding]


def test_only_kafkas_own_client_refuses_the_commit(real_kafka: Installation, tmp_path: Path) -> None:
    seen = played([f"java:{real_kafka.version}", "confluent-kafka", "kafka-python"], tmp_path)
    assert [(each.commit, each.read) for each in seen.values()] == [
        (EventType.FAIL, 0),
        (EventType.OK, 1),
        (EventType.OK, 1),
    ]

"""Finding 014: a member that has left its group commits in a transaction.

Where this fails with a newer kafka-python, the library has changed: docs/findings/014 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.worlds import ClientName
from harness.worlds.kafka.installation import Installation
from tests.harness.clients.left_member import RECORDS, Seen, played

pytestmark = [pytest.mark.system, pytest.mark.finding]


def test_kafka_python_commits_a_second_effect(real_kafka: Installation, tmp_path: Path) -> None:
    assert played("kafka-python", tmp_path, version=str(real_kafka.version)) == Seen("", 2, RECORDS)


@pytest.mark.parametrize("client", ["java", "confluent-kafka"])
def test_the_others_are_refused(client: ClientName, real_kafka: Installation, tmp_path: Path) -> None:
    seen = played(client, tmp_path, version=str(real_kafka.version))
    assert seen.refused
    assert (seen.effects, seen.committed) == (1, RECORDS)

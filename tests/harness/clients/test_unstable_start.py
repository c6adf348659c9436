"""Finding 010: where members begin that wait for the end of a transaction while partitions are dealt out again.

Where this fails with a newer librdkafka, the library has changed: docs/findings/010 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.plan.worlds import ClientName
from harness.worlds.kafka.installation import Installation
from tests.harness.clients.unstable_start import PENDING, played
from tests.harness.worlds.processes.conftest import PARTITIONS

pytestmark = [pytest.mark.system, pytest.mark.finding]

#: The request that is out when partitions are dealt out again misses the new assignment now and then.
TRIES = 3


def test_librdkafka_begins_at_the_start_and_the_group_goes_back(real_kafka: Installation, tmp_path: Path) -> None:
    tries = played("confluent-kafka", tmp_path, TRIES, version=str(real_kafka.version))
    struck = [seen for seen in tries if seen.early]
    assert struck
    for seen in struck:
        assert set(seen.early.values()) == {0}
        assert set(seen.committed.values()) == {PENDING}
        assert {seen.again[name] for name in seen.early} == {1}


@pytest.mark.parametrize("client", ["java", "kafka-python"])
def test_other_clients_wait_for_the_end(client: ClientName, real_kafka: Installation, tmp_path: Path) -> None:
    (seen,) = played(client, tmp_path, 1, version=str(real_kafka.version))
    assert seen.early == {}
    assert seen.begun == seen.committed == dict.fromkeys(PARTITIONS, PENDING)

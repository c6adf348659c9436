"""Finding 008: a transaction that ends while one of its log partitions has no leader.

Where this fails with a newer release, Kafka has changed: docs/findings/008 has to follow.
"""

from __future__ import annotations

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.leaderless_end import LEADERLESS, LED, Played, Seen, played
from workloads.operations import EventType

pytestmark = [pytest.mark.system, pytest.mark.finding]


@pytest.fixture(scope="module")
def seen(real_kafka: Installation, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return played(str(real_kafka.version), tmp_path_factory.mktemp("run"))


def test_a_commit_that_is_answered_never_reaches_a_partition_without_a_leader(seen: Played) -> None:
    """The partition that had a leader has its part of the transaction: it is torn."""
    assert seen.commit == Seen(EventType.OK, held=True, first={LED}, second=set())


def test_an_abort_that_is_answered_never_reaches_it_and_the_next_commit_commits_what_it_aborted(seen: Played) -> None:
    assert seen.abort == Seen(EventType.OK, held=True, first={LEADERLESS}, second={LEADERLESS})


def test_kafka_python_commits_without_a_write_that_expired(seen: Played) -> None:
    """It is in docs/guides/clients.md; librdkafka asks for an abort."""
    assert seen.after_expiry == {"confluent-kafka": EventType.FAIL, "kafka-python": EventType.OK}

"""Finding 008: a transaction that ends while one of its log partitions has no leader.

Where this fails with a newer release, Kafka has changed: docs/findings/008 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.leaderless_end import LEADERLESS, LED, Seen, played
from workloads.operations import EventType

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("findings")]


def test_an_end_that_is_answered_never_reaches_a_partition_without_a_leader(
    real_kafka: Installation, tmp_path: Path
) -> None:
    seen = played(str(real_kafka.version), tmp_path)
    # Committed, and for good not there; the partition that had a leader has it: torn.
    assert seen["commit"] == Seen(EventType.OK, held=True, first={LED}, second=set())
    # Aborted, and then committed by the commit of the next transaction.
    assert seen["abort"] == Seen(EventType.OK, held=True, first={LEADERLESS}, second={LEADERLESS})

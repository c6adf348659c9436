"""Finding 015: a new coordinator tells an older offset than was acknowledged, until its high watermark has moved.

Where this fails with a newer release, Kafka has changed: docs/findings/015 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.new_coordinator import played

pytestmark = [pytest.mark.system, pytest.mark.finding]
ROUNDS = 5


def test_a_new_coordinator_tells_an_older_offset_than_was_acknowledged(
    real_kafka: Installation, tmp_path: Path
) -> None:
    rounds = list(played(str(real_kafka.version), "confluent-kafka", tmp_path, ROUNDS))
    for asker in ("request", "client, read_uncommitted", "assigned, read_uncommitted"):
        assert any(each.too_old(asker) for each in rounds), asker
    for asker in ("request, stable", "client, read_committed", "assigned, read_committed", "member"):
        assert any(each.answers[asker] for each in rounds), asker
        assert not any(each.too_old(asker) for each in rounds), asker


def test_none_is_told_where_the_followers_know_what_is_committed(real_kafka: Installation, tmp_path: Path) -> None:
    (seen,) = played(str(real_kafka.version), "confluent-kafka", tmp_path, 1, rest_s=2)
    assert seen.high_watermark == seen.end
    assert (
        seen.answers["request"][-1].answer == seen.answers["client, read_uncommitted"][-1].answer == seen.acknowledged
    )
    assert not any(map(seen.too_old, seen.answers))

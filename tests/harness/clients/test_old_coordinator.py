"""Finding 011: a coordinator that is cut off tells old offsets of its groups, until it hears the controller again.

Where this fails with a newer release, Kafka has changed: docs/findings/011 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.old_coordinator import AFTER, BEFORE, NEXT, OLD, played
from tests.harness.needs import needs_root

pytestmark = [
    pytest.mark.system,
    pytest.mark.root,
    pytest.mark.finding,
    needs_root("ip", "nft", "nsenter"),
]


def test_a_coordinator_that_is_cut_off_tells_an_older_offset_than_was_acknowledged(
    real_kafka: Installation, tmp_path: Path
) -> None:
    seen = played(str(real_kafka.version), "confluent-kafka", tmp_path, wait_s=1)
    assert (seen.later.direct, seen.later.coordinator) == (BEFORE, OLD)
    assert (seen.healed.direct, seen.healed.coordinator) == ("NotCoordinatorError", NEXT)
    assert not seen.healed.too_old
    assert seen.healed.kept == AFTER

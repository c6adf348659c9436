"""Finding 012: commits that are cut from the log, and acknowledged all the same. Mended since 4.3.1, so the control.

Where this fails with a newer release, Kafka has changed: docs/findings/012 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.truncated_commits import played
from tests.harness.needs import needs_root

pytestmark = [
    pytest.mark.system,
    pytest.mark.root,
    pytest.mark.finding,
    needs_root("ip", "nft", "nsenter"),
]


def test_a_busy_coordinator_that_is_none_any_more_acknowledges_nothing_that_is_gone(
    real_kafka: Installation, tmp_path: Path
) -> None:
    (seen,) = played(str(real_kafka.version), tmp_path)
    assert seen.others > 0
    assert seen.answers.keys() - {"NoError"}
    assert seen.lost == 0

"""Finding 007: a coordinator that missed a leader epoch, or that acts on what its replicas do not have.

Where this fails with a newer release, Kafka has changed: docs/findings/007 has to follow.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worlds.kafka.installation import Installation
from tests.harness.clients.missed_commits import REACHED, played
from tests.harness.needs import needs_root

pytestmark = [
    pytest.mark.system,
    pytest.mark.root,
    pytest.mark.finding,
    needs_root("ip", "nft", "nsenter"),
]


def test_an_acknowledged_commit_of_a_group_is_gone(real_kafka: Installation, tmp_path: Path) -> None:
    seen = played(str(real_kafka.version), "commit", tmp_path)
    assert seen.acknowledged
    assert seen.left == {REACHED: 1}


def test_a_coordinator_that_heard_of_each_epoch_does_not_acknowledge_it(
    real_kafka: Installation, tmp_path: Path
) -> None:
    assert not played(str(real_kafka.version), "commit", tmp_path, told=True).acknowledged


def test_a_decision_that_was_loaded_before_it_was_replicated_tears_the_transaction(
    real_kafka: Installation, tmp_path: Path
) -> None:
    seen = played(str(real_kafka.version), "decision", tmp_path)
    assert not seen.acknowledged
    assert seen.left.keys() == {REACHED}

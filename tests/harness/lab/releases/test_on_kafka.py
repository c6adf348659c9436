"""A release of Apache Kafka is judged by a play on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ground.progress import Progress
from harness.lab.releases import Kept, PlayingTime, command_player, harms_of, judge
from harness.lab.releases.judging import Side
from harness.worlds.kafka.installation import Installation


@pytest.mark.system
def test_finding_008_is_still_on_the_default_release(real_kafka: Installation, tmp_path: Path) -> None:
    release, kept = str(real_kafka.version), Kept.of(tmp_path, str(real_kafka.version))
    with (tmp_path / "lock").open("w") as lock:
        side = Side(release, kept, command_player(release, None, tmp_path / "work", tmp_path / "runs", lock.fileno()))
        harms = [harm for harm in harms_of(release, release, tmp_path) if harm.name == "finding 008 commit"]
        (judgement,) = judge(harms, side, side, PlayingTime(20), Progress())
    assert (judgement.result, judgement.shown) == ("still", 1)

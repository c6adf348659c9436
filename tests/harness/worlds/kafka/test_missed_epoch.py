"""Real Kafka loses by its rule for a missed leader epoch what it acknowledged with acks=all (docs/findings/002)."""

from pathlib import Path

import msgspec
import pytest

from checkers import Outcome, check_one, judge
from harness.plan import read_plan
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.runs.run import perform_run
from tests.harness.needs import needs_root

PLAN = Path(__file__).parents[4] / "plans" / "stories" / "S40.toml"


@pytest.mark.system
@pytest.mark.kafka
@pytest.mark.root
@pytest.mark.xdist_group("kafka")
@pytest.mark.usefixtures("real_kafka")
@needs_root("ip", "nft", "nsenter")
def test_kafka_loses_an_acknowledged_write_by_cuts_and_planned_moves_alone(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(read_plan(PLAN).single(None, "kafka", None), seed=11)
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(spec.chosen(), check_one(tmp_path / "run" / HISTORY), 1, ["S40"])
    assert (judgement.outcome, judgement.lost) == (Outcome.BROKEN_PROMISE, 1)
    assert not_undone(tmp_path / "run" / FILE_NAME) == []

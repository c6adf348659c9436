"""Schedules that a hunt found and docs/hunt.md publishes show what is written there of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import Outcome, check_one, judge
from harness.plan import read_plan
from harness.records.files import HISTORY
from harness.run import perform

HUNTED = Path(__file__).parents[3] / "results" / "reference" / "hunt"


@pytest.mark.parametrize(("window", "broken"), [("connection", {"duplicate": 1}), ("partition", {})])
def test_batches_under_way_over_two_connections_are_written_twice_and_over_one_are_not(
    tmp_path: Path, window: str, broken: dict[str, int]
) -> None:
    plan = read_plan(HUNTED / "doubled-by-the-producer.toml", {"idempotence.window": window})
    (spec,) = plan.runs()
    ended = perform(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    verdict = check_one(tmp_path / "run" / HISTORY)
    judgement = judge(spec.chosen(), verdict, 1, ["partition", "move"])
    assert {name: count for name, count in judgement.broken.items() if name == "duplicate"} == broken
    assert (judgement.outcome is Outcome.BROKEN_PROMISE) == bool(broken)

"""Runs in virtual time over a compacted topic whose cleaners work, and whose cleaners have died."""

from pathlib import Path

import pytest

from checkers import check_one, judge
from harness.broker.core.cleaner import Cleaner
from harness.plan import parse_plan
from harness.runs.run.performing import perform_run

PLAN = """
seed = 1
families = ["client-crash"]
[settings]
min.insync.replicas = 2
cleanup.policy = "compact"
segment.ms = 1000
min.cleanable.dirty.ratio = 0.01
[workload]
name = "keyed"
[worlds.simulated]
runs = 1
workload = { writes_per_second = 40.0, keys = 4, duration_ms = 4_000, drain_limit_ms = 60_000 }
[[schedule]]
begin_ms = 1_000
end_ms = 1_500
fault = "clientcrash"
role = "producer"
"""


@pytest.mark.parametrize("dead", [False, True])
def test_cleaners_that_died_are_a_warning_for_each_reader_and_break_no_promise(
    dead: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if dead:
        monkeypatch.setattr(Cleaner, "clean", lambda *_: None)
    (spec,) = parse_plan(PLAN, "p.toml").runs()
    assert perform_run(spec, tmp_path / "run").status == "completed"
    verdict = check_one(tmp_path / "run")
    # Three log partitions are read once, and again under each of three leaders.
    assert verdict.counts == ({"dead-cleaner": 12} if dead else {})
    assert judge(spec.chosen(), verdict).broken == {}
    assert verdict.valid

"""Commits that the model of a consumer makes by itself, in whole runs in virtual time."""

from __future__ import annotations

import pytest

from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.plan import parse_plan

PLAN = """
seed = 5
families = ["kill"]
[settings]
acks = "all"
min.insync.replicas = 2
session.timeout.ms = 2_000
group.protocol = "consumer"
commit.mode = "{mode}"
[workload]
name = "groups"
partitions = 4
consumers = 3
member_change_ms = {member_change_ms}
[worlds.simulated]
runs = 1
workload = {{ writes_per_second = 40.0, duration_ms = 12_000, drain_limit_ms = 60_000 }}
faults = {{ count = 1, exercised_min = 1, at_stake_min = 1 }}
"""


def run(mode: str, member_change_ms: int) -> JudgedRun:
    (spec,) = parse_plan(PLAN.format(mode=mode, member_change_ms=member_change_ms), "p.toml").runs()
    return run_in_memory(spec)


@pytest.mark.parametrize("mode", ["auto", "after-processing"])
def test_a_group_whose_members_stay_is_not_put_to_the_test_however_it_commits(mode: str) -> None:
    judged_run = run(mode, 3_600_000)
    assert judged_run.verdict.groups.commits_acknowledged > 20
    assert (judged_run.verdict.groups.rebalanced_over_commits, judged_run.verdict.anomalies) == (0, {})
    assert judged_run.judgement.outcome == "not exercised"
    assert "no rebalance struck while a commit was due" in judged_run.judgement.lacks


def test_a_group_whose_members_come_and_go_is_put_to_the_test() -> None:
    judged_run = run("auto", 1_500)
    assert judged_run.verdict.groups.rebalanced_over_commits > 0
    assert (judged_run.judgement.outcome, judged_run.verdict.anomalies) == ("held", {})

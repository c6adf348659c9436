"""Topics with retention.ms in virtual time: what is older goes, and what is younger is lost only to wrong rules."""

from __future__ import annotations

from typing import Any

import pytest

from checkers import ReplicaOutOfSync
from harness.broker.core.replica import Replica
from harness.broker.core.retention import ExpiredPart, Retention
from harness.ground.errors import PlanError
from harness.lab.search.coordinated_portfolios import GROUPED, TRANSACTIONAL
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.lab.search.portfolios import PORTFOLIOS
from harness.plan import parse_plan
from workloads import Settings, SettingsError

PLAN = """
seed = {seed}
families = ["{family}"]
[settings]
min.insync.replicas = 2
enable.idempotence = true
segment.ms = 500
retention.ms = 5_000
[worlds.{world}]
runs = 1
workload = {{ name = "{workload}", {times} }}
"""
LONG = "duration_ms = 20_000"


def run(family: str, seed: int) -> JudgedRun:
    text = PLAN.format(family=family, seed=seed, world="simulated", workload="steady", times=LONG)
    return run_in_memory(parse_plan(text, "p.toml").runs()[0])


@pytest.mark.parametrize(("family", "seed"), [("kill", 1), ("partition", 2), ("move", 1)])
def test_what_is_too_old_goes_and_nothing_is_lost(family: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[ExpiredPart] = []
    right = Retention.expire

    def noted(*asked: Any) -> ExpiredPart | None:
        part = right(*asked)
        gone.extend(each for each in (part,) if each is not None)
        return part

    monkeypatch.setattr(Retention, "expire", noted)
    judged_run = run(family, seed)
    assert sum(part.records for part in gone) > 0
    assert judged_run.broken is None
    assert judged_run.verdict.counts.keys() <= {"expired-write"}
    assert judged_run.judgement.lost == 0


def test_a_retention_that_drops_younger_records_breaks_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Retention._is_over
    monkeypatch.setattr(Retention, "_is_over", lambda *asked: right(*asked[:-1], asked[-1] + 4_500_000))
    judged_run = run("kill", 1)
    assert judged_run.judgement.outcome == "broken promise"
    assert "lost-write" in judged_run.verdict.counts


def test_a_retention_that_drops_what_is_not_committed_breaks_an_invariant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retention, "_bound", lambda _, log, __: log.end_offset)
    broken = [judged_run.broken for seed in range(1, 3) if (judged_run := run("partition", seed)).broken]
    assert {each.name for each in broken} == {"high-watermark-on-log"}


def test_a_follower_that_keeps_what_its_leader_has_dropped_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "restart_at", lambda *_: None)
    seen = run("partition", 2).verdict.findings(ReplicaOutOfSync)
    assert {finding.key: finding.lack for finding in seen} == {"ackproof-2": "not in its ISR: broker 0"}


@pytest.mark.parametrize(
    ("world", "workload", "wrong"),
    [
        ("simulated", "groups", 'the workload "groups" expects records to stay at any age'),
        ("kafka", "transactions", 'the workload "transactions" expects records to stay at any age'),
    ],
)
def test_workloads_that_cannot_be_judged_by_age_are_refused(world: str, workload: str, wrong: str) -> None:
    text = PLAN.format(family="kill", seed=1, world=world, workload=workload, times="writes_per_second = 60")
    with pytest.raises(PlanError, match=wrong):
        parse_plan(text, "p.toml")


def test_portfolios_of_other_workloads_refuse_it() -> None:
    chosen: dict[str, Any] = {"retention.ms": 5_000}
    PORTFOLIOS[0].storms(chosen)
    kept = [each for each in (*TRANSACTIONAL, *GROUPED) if each.settings.get("cleanup.policy") != "compact"]
    assert len(kept) > 10
    for portfolio in kept:
        with pytest.raises(SettingsError, match="expects records to stay at any age"):
            portfolio.storms(chosen)


def test_a_retention_that_no_final_reader_could_keep_up_with_is_refused() -> None:
    with pytest.raises(SettingsError, match="before the final readers come to them"):
        Settings(retention_ms=4_999)
    assert not Settings(retention_ms=-1).expires
    assert not Settings(retention_ms=604_800_000).expires

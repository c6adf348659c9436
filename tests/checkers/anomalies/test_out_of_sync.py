"""A replica that never comes back into the ISR is a finding of a run in virtual time, which nothing permits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from checkers import Judgement, Outcome, Verdict, check_one, judge
from checkers.anomalies.out_of_sync import ReplicaOutOfSync
from harness.plan import RunSpec, parse_plan
from harness.runs.run import perform_run

PLAN = """
name = "planted"
families = ["kill"]
settings = { acks = "all", "min.insync.replicas" = 2, "planted.bug" = "keep-fenced-out" }
[worlds.simulated]
runs = 1
workload = { duration_ms = 6_000, writes_per_second = 20.0, partitions = 2 }
"""


@pytest.fixture
def spec() -> RunSpec:
    """A run with a bug that keeps a follower out of the ISR for ever."""
    (spec,) = parse_plan(PLAN, "planted.toml").runs()
    return spec


def judged(spec: RunSpec, directory: Path) -> tuple[Verdict, Judgement]:
    """The run's verdict from its files, and what it means."""
    assert perform_run(spec, directory).status == "completed"
    verdict = check_one(directory)
    return verdict, judge(spec.chosen(), verdict)


def test_a_replica_that_stays_out_of_the_isr_is_a_broken_promise(spec: RunSpec, tmp_path: Path) -> None:
    verdict, judgement = judged(spec, tmp_path / "run")
    findings = verdict.findings(ReplicaOutOfSync)
    assert findings
    assert all(finding.lack.startswith("not in its ISR: broker ") for finding in findings)
    assert verdict.times_us["out-of-sync"] == [finding.time_us for finding in findings]
    assert (verdict.valid, judgement.outcome) == (False, Outcome.BROKEN_PROMISE)
    assert judgement.broken == {"out-of-sync": len(findings)}
    assert len(judgement.identities["out-of-sync"]) == 1


def test_the_same_run_without_the_bug_has_none(spec: RunSpec, tmp_path: Path) -> None:
    spec = msgspec.structs.replace(spec, settings={**spec.settings, "planted.bug": "none"})
    verdict, judgement = judged(spec, tmp_path / "run")
    assert "out-of-sync" not in verdict.counts
    assert (verdict.valid, judgement.broken) == (True, {})

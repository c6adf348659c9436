"""A broken invariant that a run's world wrote down is a finding that nothing permits."""

from __future__ import annotations

import msgspec
import pytest

from checkers import Outcome, check_one, judge
from checkers.anomalies.broken_invariant import InvariantBroken
from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run import perform_run
from workloads.history import export_jsonl, import_jsonl

PLAN = """
name = "planted"
families = ["kill"]
settings = { acks = "all", "min.insync.replicas" = 2, "planted.bug" = "commit-largest-log-end" }
[worlds.simulated]
runs = 1
workload = { duration_ms = 6_000, writes_per_second = 20.0, partitions = 2 }
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with a planted bug, and where it is."""
    (spec,) = parse_plan(PLAN, "planted.toml").runs()
    directory = tmp_path_factory.mktemp("run") / "run"
    assert perform_run(spec, directory).status == "completed"
    return spec, directory


def test_a_broken_invariant_of_a_run_is_a_broken_promise_with_its_step(run):
    spec, directory = run
    verdict = check_one(directory)
    (finding,) = verdict.findings(InvariantBroken)
    assert finding.invariant == "candidates-are-complete"
    assert finding.text.startswith(f"candidates-are-complete: {finding.key}: broker ")
    assert verdict.times_us["broken-invariant"] == [finding.time_us]
    assert verdict.valid is False
    judgement = judge(spec.chosen(), verdict)
    assert judgement.outcome is Outcome.BROKEN_PROMISE
    assert judgement.broken["broken-invariant"] == 1
    assert len(judgement.identities["broken-invariant"]) == 1


def test_it_survives_the_way_through_json_lines(run, tmp_path):
    _, directory = run
    with (tmp_path / "history.jsonl").open("wb") as lines:
        export_jsonl(directory / HISTORY, lines)
    import_jsonl(tmp_path / "history.jsonl", tmp_path / "run" / HISTORY)
    again, before = check_one(tmp_path / "run"), check_one(directory)
    assert again.anomalies["broken-invariant"] == before.anomalies["broken-invariant"]


def test_a_run_of_the_core_as_it_is_has_none(run, tmp_path):
    spec, _ = run
    spec = msgspec.structs.replace(spec, settings={**spec.settings, "planted.bug": "none"})
    assert perform_run(spec, tmp_path / "run").status == "completed"
    verdict = check_one(tmp_path / "run")
    assert "broken-invariant" not in verdict.counts
    assert verdict.valid is True

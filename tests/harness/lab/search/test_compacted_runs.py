"""Keyed records over a compacted topic in virtual time: what finding 006 says of Kafka, in the core and by checkers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers import TransactionPart, read_replicas
from harness.ground.choices import Choices
from harness.lab.search.judged_run import JudgedRun, run_in_memory
from harness.plan import RunSpec, parse_plan
from harness.runs.run.performing import perform_run
from harness.worlds.simulated import SimulatedWorld

PLAN = """
seed = {seed}
families = ["{family}"]
[settings]
min.insync.replicas = 2
enable.idempotence = true
cleanup.policy = "compact"
min.cleanable.dirty.ratio = 0.01
{settings}
[worlds.simulated]
runs = 1
workload = {{ name = "keyed", writes_per_second = 60.0, keys = 20, duration_ms = 32_000, drain_limit_ms = 60_000 }}
faults = {{ count = {count}, fault_ms_min = 8_000, fault_ms_max = 8_000, exercised_min = 1, at_stake_min = 1 }}
"""


def spec(family: str, seed: int = 1, count: int = 1, **settings: Any) -> RunSpec:
    """One run like those of plans/keyed.toml."""
    chosen = {"segment_ms": 1_000, **settings}
    lines = "\n".join(f"{name.replace('_', '.')} = {value!r}" for name, value in chosen.items())
    (run,) = parse_plan(PLAN.format(family=family, seed=seed, count=count, settings=lines), "p.toml").runs()
    return run


def run(family: str, seed: int = 1, count: int = 1, **settings: Any) -> JudgedRun:
    return run_in_memory(spec(family, seed, count, **settings))


DAY_MS = 86_400_000


def test_a_broker_that_was_away_for_longer_than_the_retention_brings_deleted_keys_back() -> None:
    judged_run = run("away", delete_retention_ms=1_000)
    assert judged_run.judgement.outcome == "broken promise"
    assert judged_run.verdict.anomalies.keys() == {"returned-key", "divergent-state", "divergent-tables"}
    assert judged_run.broken is None, "no rule of replication is broken: Kafka's rules do this"


@pytest.mark.parametrize(
    ("family", "retention_ms"), [("away", DAY_MS), ("away-wiped", 1_000), ("kill", DAY_MS), ("partition", DAY_MS)]
)
def test_nothing_is_found_with_the_cure_or_without_the_cause(family: str, retention_ms: int) -> None:
    judged_run = run(family, delete_retention_ms=retention_ms)
    assert (judged_run.verdict.anomalies, judged_run.broken) == ({}, None)
    assert judged_run.judgement.outcome == "held"


def test_the_files_of_replicas_have_keys_tombstones_and_gaps(tmp_path: Path) -> None:
    assert perform_run(spec("kill", delete_retention_ms=DAY_MS), tmp_path / "run").status == "completed"
    replicas = read_replicas(tmp_path / "run" / "replicas.parquet")
    assert replicas is not None
    ends, table = replicas
    keys, deletes = (table.column(name).to_numpy() for name in ("record_key", "tombstone"))
    assert all(end.compacted for end in ends.partitions.values())
    assert keys.min() >= 0
    assert 0 < deletes.sum() < len(keys)
    assert len(keys) < 3 * sum(end.end_offset or 0 for end in ends.partitions.values()), "records are gone"
    assert {*table.column("part").to_pylist()} == {TransactionPart.RECORD}


def test_clients_in_virtual_time_lack_nothing_and_write_tombstones() -> None:
    clients = SimulatedWorld(spec("kill"), Choices(1)).clients
    assert clients.lacks == {}
    assert clients.producer(0).tombstones is not None


@pytest.mark.parametrize(
    ("bug", "family", "seed", "settings", "anomaly"),
    [
        ("remove-tombstone-early", "kill", 1, {"delete_retention_ms": DAY_MS}, "lost-tombstone"),
        ("keep-first-value", "kill", 1, {"delete_retention_ms": DAY_MS}, "lost-write"),
        ("ignore-compaction-lag", "kill", 1, {"min_compaction_lag_ms": DAY_MS}, "cleaned-early"),
        # What it loses, one replica has lost: a cut leader whose last records are truncated when it follows.
        (
            "clean-above-high-watermark",
            "partition",
            3,
            {"delete_retention_ms": DAY_MS, "segment_ms": 100},
            "divergent-tables",
        ),
    ],
)
def test_a_wrong_cleaner_is_found(bug: str, family: str, seed: int, settings: dict[str, int], anomaly: str) -> None:
    right = run(family, seed, count=4, **settings)
    assert (right.judgement.outcome, right.verdict.anomalies) == ("held", {})
    wrong = run(family, seed, count=4, **settings, planted_bug=bug)
    assert wrong.judgement.outcome == "broken promise"
    assert anomaly in wrong.verdict.anomalies

"""A rolling upgrade of real Apache Kafka: every node says itself what it runs, and no acknowledged write is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkers import check_one, judge
from harness.plan import Kafka, RunSpec
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from harness.worlds.kafka.installation import Installation
from nemesis.evidence import by_node
from nemesis.plan import FaultPlan
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-upgrade")]
FIRST, NEXT = "3.9.2", "4.3.1"


def test_every_node_becomes_the_next_release_and_then_the_features_are_raised(
    kafka_release: Callable[[str], Installation], tmp_path: Path
) -> None:
    for release in (FIRST, NEXT):
        kafka_release(release)
    spec = RunSpec(
        world=Kafka(version=FIRST, upgrade_to=NEXT, client="confluent-kafka", change=(("num.io.threads", "3"),)),
        cell="cell/upgrade",
        family="upgrade",
        settings=Settings.from_mapping({"min.insync.replicas": 2}).to_mapping(),
        workload=WorkloadPlan(writes_per_second=60.0, duration_ms=40_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=("upgrade",)),
        seed=11,
    )
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    verdict = check_one(tmp_path / "run" / HISTORY)
    receipts = [receipt for receipt in verdict.faults if receipt.mark == "end" and receipt.family == "upgrade"]
    *steps, last = sorted(receipts, key=lambda receipt: receipt.sequence)
    assert [(step.targets, step.took_effect) for step in steps] == [((node,), True) for node in (100, 0, 1, 2)]
    begun = [seen for step in steps for seen in by_node(step.begin_evidence).values()]
    ended_as = [seen for step in steps for seen in by_node(step.end_evidence).values()]
    assert [(seen["version"], after["version"]) for seen, after in zip(begun, ended_as, strict=True)] == [
        (FIRST, NEXT)
    ] * len(steps)
    assert [after.get("changed") for after in ended_as] == [None, *[{"num.io.threads": "3"}] * 3]
    assert [step.out_of_sync for step in steps] == [{}] * len(steps)
    (raised,) = by_node(last.begin_evidence).values()
    assert raised["features"]["metadata.version"] > raised["features_before"]["metadata.version"]
    judgement = judge(spec.chosen(), verdict, families=("upgrade",))
    assert judgement.lost == 0
    assert judgement.exercised is not None
    assert judgement.exercised.families["upgrade"].exercised >= len(steps) - 1

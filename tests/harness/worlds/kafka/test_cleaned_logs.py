"""The cleaner of real Kafka, and checkers of compacted logs that judge what it removes."""

from pathlib import Path

import msgspec
import pytest

from checkers import check_one as check
from harness.plan import Kafka, RunSpec
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from nemesis.plan import FaultPlan
from tests.checkers.in_memory import judge_events
from workloads import CleanerTimes, Function
from workloads.history import read_events
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-run")]
EARLY = {"lost-tombstone", "cleaned-early"}
DAY_MS = 86_400_000
SETTINGS = {
    "min.insync.replicas": 2,
    "enable.idempotence": True,
    "cleanup.policy": "compact",
    "delete.retention.ms": 1_000,
    "segment.ms": 1_000,
    "min.cleanable.dirty.ratio": 0.01,
    # A machine that stands still for seconds must not move leaders.
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 1_000,
    "replica.lag.time.max.ms": 6_000,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
}


def gone_early(history: Path, times: CleanerTimes) -> set[str]:
    """The findings in a history whose topic is said to keep records for these times."""
    detail = msgspec.json.encode(times).decode()
    events = [
        msgspec.structs.replace(event, detail=detail) if event.function is Function.DRAIN else event
        for event in read_events(history)
    ]
    return set(judge_events(events).counts) & EARLY


@pytest.mark.usefixtures("real_kafka")
def test_what_the_cleaner_removes_is_early_only_for_a_topic_that_keeps_it_longer(tmp_path: Path) -> None:
    spec = RunSpec(
        world=Kafka(client="confluent-kafka"),
        cell="cell/client-crash",
        family="client-crash",
        settings=Settings.from_mapping(SETTINGS).to_mapping(),
        workload=WorkloadPlan(name="keyed", keys=20, writes_per_second=60.0, duration_ms=15_000, drain_limit_ms=60_000),
        faults=FaultPlan(families=("client-crash",), count=1),
        seed=11,
    )
    ended = perform_run(spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    history = tmp_path / "run" / HISTORY
    verdict = check(history)
    assert verdict.exercise.drained, "the final readers did not come to the end"
    assert not set(verdict.counts) & EARLY
    assert gone_early(history, CleanerTimes(record_ms=DAY_MS, tombstone_ms=0)) == EARLY
    assert gone_early(history, CleanerTimes(record_ms=0, tombstone_ms=DAY_MS)) == {"lost-tombstone"}

"""The workloads that only Apache Kafka can take, each in one run: they meet what they are about, and break nothing."""

from pathlib import Path

import msgspec
import pytest

from checkers import Verdict, judge
from checkers import check_one as check
from harness.plan import parse_plan
from harness.records.files import HISTORY
from harness.runs.run.performing import perform_run
from tests.harness.worlds.kafka.theirs.secured import SecuredCluster
from workloads import Function
from workloads.history import read_events

pytestmark = [pytest.mark.system, pytest.mark.kafka, pytest.mark.xdist_group("kafka-theirs")]


def verdict_on(
    cluster: SecuredCluster, directory: Path, workload: str, settings: str, client: str = "confluent-kafka"
) -> Verdict:
    """The verdict on one run in which nothing was broken."""
    text = f"""
    families = ["client-crash"]
    [settings]
    min.insync.replicas = 2
    enable.idempotence = true
    max.in.flight.requests.per.connection = 1
    {settings}
    [workload]
    topic = "ours"
    writes_per_second = 60.0
    duration_ms = 6_000
    drain_limit_ms = 60_000
    {workload}
    [worlds.kafka]
    host = "existing"
    bootstrap = {msgspec.json.encode(cluster.ways.plain[:2]).decode()}
    client = "{client}"
    faults.count = 1
    """
    run = parse_plan(text, "p.toml").single(None, None, None)
    ended = perform_run(run, directory)
    assert ended.status == "completed", ended.reason
    verdict = check(directory / HISTORY)
    judgement = judge(run.chosen(), verdict)
    assert (judgement.judged, judgement.broken, judgement.lost) == (True, {}, 0)
    return verdict


def test_transactions_are_committed_and_aborted_and_readers_come_past_aborted_ones(cluster, tmp_path: Path) -> None:
    workload = 'name = "transactions"\n    aborts_percent = 40\n    takeover_every_ms = 1_500'
    counts = verdict_on(cluster, tmp_path / "run", workload, 'isolation.level = "read_committed"').transactions
    assert min(counts.committed, counts.aborted_passed, counts.superseded) > 0


def test_members_of_a_group_come_and_go_while_commits_are_due(cluster, tmp_path: Path) -> None:
    workload = 'name = "groups"\n    consumers = 3\n    member_change_ms = 1_500'
    groups = verdict_on(cluster, tmp_path / "run", workload, "").groups
    assert (groups.unfinished, groups.rebalanced_over_commits != 0) == (0, True)
    assert groups.processed is not None
    assert groups.processed > 100


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_write_and_commit_in_one_transaction_and_each_record_has_its_effect_once(
    cluster, tmp_path: Path, protocol: str
) -> None:
    workload = 'name = "consume-transform-produce"\n    consumers = 3\n    member_change_ms = 1_500\n'
    settings = f'isolation.level = "read_committed"\n    group.protocol = "{protocol}"'
    # With librdkafka and classic groups a member once began at the start of its log partition, not where its group was.
    verdict = verdict_on(cluster, tmp_path / "run", f"{workload}    aborts_percent = 40", settings, "java")
    counts, groups = verdict.transactions, verdict.groups
    assert min(counts.committed, counts.offsets_aborted, counts.aborted_passed) > 0
    assert (groups.unfinished, groups.rebalanced_over_commits != 0) == (0, True)
    assert counts.effects > 100


def test_a_compacted_topic_is_read_to_its_end_under_each_leader(cluster, tmp_path: Path) -> None:
    settings = 'cleanup.policy = "compact"\n    segment.ms = 1_000\n    min.cleanable.dirty.ratio = 0.01'
    verdict_on(cluster, tmp_path / "run", 'name = "keyed"', settings)
    drains = [event for event in read_events(tmp_path / "run" / HISTORY) if event.function is Function.DRAIN]
    read = {(event.node, name) for event in drains if event.error is None for name in event.partitions}
    names = {name for event in drains for name in event.partitions}
    assert len(names) == 3
    assert read == {(node, name) for node in (None, 0, 1, 2) for name in names}

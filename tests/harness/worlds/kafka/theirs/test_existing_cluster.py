"""A cluster that exists already, real: a run makes its topic there, moves its leaders, and leaves nothing."""

import multiprocessing
from pathlib import Path

import msgspec
import pytest
from kafka import KafkaAdminClient

from checkers import check_one as check
from checkers import judge
from harness.ground.observations import LeaderElected
from harness.plan import RunSpec, parse_plan
from harness.records.cluster_file import read_observations
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.runs.run.healing import heal
from harness.runs.run.performing import perform_run
from harness.worlds.kafka.releases import DEFAULT_VERSION
from tests.harness.worlds.kafka.theirs.secured import SecuredCluster
from tests.waiting import LIMIT_S, wait_for_topics, wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka-theirs")]


def create(cluster: SecuredCluster, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=cluster.ways.plain) as admin:
        admin.create_topics([topic])


def run_of(cluster: SecuredCluster, family: str, duration_ms: int = 8_000, **settings: object) -> RunSpec:
    """The one run of a plan that names two of the three brokers."""
    chosen = "\n".join(f"{name} = {value}" for name, value in settings.items())
    text = f"""
    families = ["{family}"]
    [settings]
    {chosen}
    [workload]
    topic = "ours"
    writes_per_second = 60.0
    duration_ms = {duration_ms}
    drain_limit_ms = 60_000
    [worlds.kafka]
    host = "existing"
    bootstrap = {msgspec.json.encode(cluster.ways.plain[:2]).decode()}
    faults.count = 3
    """
    return parse_plan(text, "p.toml").single(None, None, None)


def test_leaders_of_the_runs_own_topic_move_and_it_is_gone_afterwards(cluster, tmp_path: Path) -> None:
    """With acks=1; test_secured_cluster.py has acks=all."""
    run_spec = run_of(cluster, "move", acks=1)
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(run_spec.chosen(), check(tmp_path / "run" / HISTORY))
    assert judgement.judged
    assert judgement.broken == {}
    assert "moveleader" in {fault.kind for fault in judgement.faults}
    elections = [seen for seen in read_observations(tmp_path / "run") if isinstance(seen.fact, LeaderElected)]
    assert len(elections) > run_spec.workload.partitions, "leaders are followed through the administration"
    assert ended.configuration is not None
    assert ended.configuration["topic"]["min.insync.replicas"] == "1"
    assert ended.configuration["broker"]["broker.session.timeout.ms"] == "1500"
    assert DEFAULT_VERSION.startswith(ended.configuration["broker"]["version"])
    wait_for_topics(cluster.topics, ["theirs"])
    assert not_undone(tmp_path / "run" / FILE_NAME) == []


def test_what_needs_the_clusters_machines_is_skipped_and_the_receipts_say_why(cluster, tmp_path: Path) -> None:
    run_spec = run_of(cluster, "kill", duration_ms=4_000)
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    assert ended.report is not None
    assert {fault["mark"] for fault in ended.report["faults"]} == {"skipped"}
    assert all("out of reach" in fault["reason"] for fault in ended.report["faults"])
    assert all(fault["reason"].endswith(": move, reassign, client-crash") for fault in ended.report["faults"])
    verdict = check(tmp_path / "run" / HISTORY)
    judgement = judge(run_spec.chosen(), verdict)
    assert (judgement.faults, judgement.lost, judgement.judged) == ((), 0, True)
    assert verdict.exercise.acknowledged > verdict.exercise.acknowledged_in_fault == 0, "so its cell is not exercised"


def test_the_runs_own_producers_crash_and_the_cluster_is_not_touched(cluster, tmp_path: Path) -> None:
    run_spec = run_of(cluster, "client-crash", acks=1)
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "completed", ended.reason
    judgement = judge(run_spec.chosen(), check(tmp_path / "run" / HISTORY))
    assert (judgement.judged, judgement.broken, judgement.lost) == (True, {}, 0)
    assert {fault.kind for fault in judgement.faults} == {"clientcrash"}


def test_a_topic_of_somebody_else_is_left_alone(cluster, tmp_path: Path) -> None:
    run_spec = run_of(cluster, "move")
    create(cluster, run_spec.workload.topic)
    ended = perform_run(run_spec, tmp_path / "run")
    assert ended.status == "harness-failed"
    assert f'a topic "{run_spec.workload.topic}" that this run did not create' in str(ended.reason)
    heal(tmp_path)
    wait_for_topics(cluster.topics, sorted([run_spec.workload.topic, "theirs"]))
    with KafkaAdminClient(bootstrap_servers=cluster.ways.plain) as admin:
        admin.delete_topics([run_spec.workload.topic])


def test_heal_deletes_the_topic_of_a_killed_harness(cluster, tmp_path: Path) -> None:
    run_spec = run_of(cluster, "move", duration_ms=60_000)
    harness = multiprocessing.get_context("spawn").Process(target=perform_run, args=(run_spec, tmp_path / "run"))
    harness.start()
    wait_until((tmp_path / "run" / "logs" / "trace-100.jsonl").exists, "the run looks at the cluster")
    harness.kill()
    harness.join(LIMIT_S)
    wait_until(lambda: run_spec.workload.topic in cluster.topics(), "every broker knows the topic")
    assert heal(tmp_path) == [f"topic {run_spec.workload.topic}"]
    wait_for_topics(cluster.topics, ["theirs"])
    assert heal(tmp_path) == []


def test_a_cluster_that_cannot_be_reached_gets_its_sentence(tmp_path: Path) -> None:
    text = 'families = ["move"]\n[worlds.kafka]\nhost = "existing"\nbootstrap = ["127.0.0.1:1"]\n'
    ended = perform_run(parse_plan(text, "p.toml").single(None, None, None), tmp_path / "run")
    assert ended.status == "harness-failed"
    assert "no broker answered within 10 s" in str(ended.reason)
    assert "tried 127.0.0.1:1" in str(ended.reason)
    assert not_undone(tmp_path / "run" / FILE_NAME) == []

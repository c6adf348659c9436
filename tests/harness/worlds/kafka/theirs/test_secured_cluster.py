"""A cluster behind TLS and SASL, real: whole runs with each library, refusals in a sentence, and no secret on disk."""

import itertools
import multiprocessing
from pathlib import Path

import msgspec
import pytest

from checkers import check_one as check
from harness.ground.errors import HostError
from harness.plan import RunSpec, Security, parse_plan
from harness.records.files import HISTORY
from harness.records.journal import FILE_NAME, not_undone
from harness.records.run_record import read_record
from harness.runs.run.healing import heal
from harness.runs.run.performing import perform_run
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.own_topic import KIND
from tests.harness.worlds.kafka.theirs.secured import PASSWORD, STRANGER, USER, SecuredCluster
from tests.harness.worlds.trials import hit_by, lose_or_hold
from tests.waiting import LIMIT_S, wait_for_topics, wait_until

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka-theirs")]
VARIABLE = "AK_TEST_PASSWORD"
#: A refusal comes within two seconds on a machine that does nothing else. Who does not hear why hears of it after ten,
#: and in other words.
#: The time for eight refusals, of which each takes a few seconds.
REFUSED_S = 300.0


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)


def scram(cluster: SecuredCluster) -> Security:
    return Security(
        protocol="SASL_SSL",
        ca=str(cluster.authority.file),
        mechanism="SCRAM-SHA-512",
        username=USER,
        password_env=VARIABLE,
    )


def mutual(cluster: SecuredCluster) -> Security:
    return Security(protocol="SSL", ca=str(cluster.authority.file), certificate=str(cluster.client))


def run_of(servers: list[str], security: Security, client: str = "kafka-python", duration_ms: int = 3_000) -> RunSpec:
    """The one run of a plan."""
    login_settings = "\n".join(f'{name} = "{value}"' for name, value in msgspec.to_builtins(security).items())
    text = f"""
    families = ["move"]
    settings = {{ acks = "all" }}
    [workload]
    topic = "ours"
    partitions = 2
    producers = 2
    consumers = 1
    writes_per_second = 40.0
    duration_ms = {duration_ms}
    drain_limit_ms = 60_000
    [faults]
    count = 1
    [worlds.kafka]
    host = "existing"
    client = "{client}"
    bootstrap = {msgspec.json.encode(servers).decode()}
    [worlds.kafka.security]
    {login_settings}
    """
    return parse_plan(text, "p.toml").single(None, None, None)


@pytest.mark.parametrize(
    ("client", "listener"),
    list(itertools.product(("kafka-python", "confluent-kafka", "java"), ("sasl", "mutual"))),
)
def test_a_run_writes_reads_and_moves_leaders_and_leaves_no_secret(cluster, tmp_path: Path, client, listener) -> None:
    security = {"sasl": scram, "mutual": mutual}[listener](cluster)
    run_spec = run_of(getattr(cluster.ways, listener), security, client)
    run = lose_or_hold(run_spec, tmp_path, loses=False, exercised=hit_by("moveleader")).directory
    assert check(run / HISTORY).exercise.acknowledged > 0
    ended = read_record(run).ended
    assert ended.configuration is not None
    assert security.protocol in ended.configuration["producer"].values()
    assert ended.configuration["topic"]["min.insync.replicas"] == "1"
    assert "replica.lag.time.max.ms" in ended.configuration["broker"]
    wait_for_topics(cluster.topics, ["theirs"])
    written = [path for path in run.rglob("*") if path.is_file()]
    assert {"run.json", "journal.jsonl", "cluster.jsonl"} <= {path.name for path in written}
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.timeout(REFUSED_S)
def test_who_is_not_let_in_gets_one_sentence_and_is_not_tried_for_minutes(cluster, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("AK_TEST_WRONG", "battery-staple")
    right, change = scram(cluster), msgspec.structs.replace
    wrong_password = {"password_env": "AK_TEST_WRONG"}
    for number, (servers, security, sentence) in enumerate(
        [
            (cluster.ways.sasl, change(right, **wrong_password), "correct protocol, mechanism, username"),
            (cluster.ways.sasl, change(right, ca=str(cluster.stranger.file)), "certificate verify failed"),
            (cluster.ways.sasl, change(right, mechanism="SCRAM-SHA-256"), "Unsupported SASL mechanism"),
            (cluster.ways.mutual, change(mutual(cluster), certificate=""), "bad certificate"),
            (cluster.ways.false_name, mutual(cluster), "certificate verify failed"),
            (cluster.ways.sasl, Security(), "refuses this client (Disconnected"),
            (
                cluster.ways.sasl,
                change(right, username=STRANGER),
                "refuses a request that a run needs (TopicAuthorizationFailed",
            ),
            (cluster.ways.plain, right, "connecting to a PLAINTEXT broker listener?"),
        ]
    ):
        ended = perform_run(run_of(servers, security), tmp_path / str(number))
        assert ended.status == "harness-failed"
        assert sentence in str(ended.reason)
        assert "\n" not in str(ended.reason)
        assert not_undone(tmp_path / str(number) / FILE_NAME) == []


def test_heal_deletes_the_topic_of_a_killed_harness_with_the_password_from_where_it_was(
    cluster, tmp_path: Path, monkeypatch
) -> None:
    run_spec = run_of(cluster.ways.sasl, scram(cluster), duration_ms=60_000)
    harness = multiprocessing.get_context("spawn").Process(target=perform_run, args=(run_spec, tmp_path / "run"))
    harness.start()
    wait_until((tmp_path / "run" / "logs" / "trace-100.jsonl").exists, "the run looks at the cluster")
    harness.kill()
    harness.join(LIMIT_S)
    wait_until(lambda: run_spec.workload.topic in cluster.topics(), "every broker knows the topic")
    (action,) = not_undone(tmp_path / "run" / FILE_NAME)
    assert (action.kind, action.facts["security"]["password_env"]) == (KIND, VARIABLE)
    assert PASSWORD not in (tmp_path / "run" / FILE_NAME).read_text()
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(HostError, match=f"the environment variable {VARIABLE} is not set"):
        heal(tmp_path)
    monkeypatch.setenv(VARIABLE, "battery-staple")
    with pytest.raises(HostError, match="refuses this client"):
        heal(tmp_path)
    monkeypatch.setenv(VARIABLE, PASSWORD)
    assert heal(tmp_path) == [f"topic {run_spec.workload.topic}"]
    wait_for_topics(cluster.topics, ["theirs"])


def test_eligible_leader_replicas_are_asked_for(cluster) -> None:
    administration = Administration(lambda: cluster.ways.plain)

    def shown(isr: set[int], elr: tuple[int, ...]) -> bool:
        image = administration.topic("theirs")
        return image is not None and all(
            (set(partition.isr), partition.elr) == (isr, elr) for partition in image.partitions.values()
        )

    try:
        assert shown({0, 1, 2}, ())
        cluster.world.target.processes.kill(1)
        wait_until(lambda: shown({0, 2}, (1,)), "broker 1 is eligible")
        cluster.world.target.processes.restart(1)
        wait_until(lambda: shown({0, 1, 2}, ()), "everybody is in sync")
    finally:
        administration.close()

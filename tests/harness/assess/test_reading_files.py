"""A cluster and its clients from files: what Kafka's own tools print, and nonsense, which ends in a sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.assess import Client, Cluster, ClusterFiles, Release, Topic, clients_named
from harness.assess.client_files import properties_in
from harness.assess.client_settings import effective
from harness.assess.configuration import Now
from harness.assess.grouping import groups_of
from harness.cli.app import exit_code_of
from harness.ground.errors import PlanError
from harness.worlds.kafka.releases import parse_version

DESCRIBED = """\
Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,cleanup.policy=compact,delete
\tTopic: orders\tPartition: 0\tLeader: 0\tReplicas: 0,1,2\tIsr: 0,1,2\tElr: \tLastKnownElr:\x20
\tTopic: orders\tPartition: 1\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr:\x20
Topic:old\tPartitionCount:1\tReplicationFactor:1\tConfigs:
\tTopic: old\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0
"""
CONFIGS = """\
All configs for topic orders are:
  min.insync.replicas=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=1, DEFAULT_CONFIG:x=1}
  unclean.leader.election.enable=true sensitive=false synonyms={}
All configs for broker 1 are:
  log.retention.hours=24 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.retention.hours=24}
  ssl.key.password=null sensitive=true synonyms={}
"""


def read(tmp_path: Path, **texts: str) -> ClusterFiles:
    files = ClusterFiles()
    for name, text in texts.items():
        path = tmp_path / name
        path.write_text(text)
        files.add(path)
    return files


def test_the_text_of_kafka_topics_is_read(tmp_path: Path) -> None:
    cluster = read(tmp_path, topics=DESCRIBED).cluster()
    assert cluster.topics == (
        Topic(name="old", partitions=1, replicas=1, now=Now(in_sync=1)),
        Topic(
            name="orders",
            partitions=2,
            replicas=2,
            settings={"min.insync.replicas": "2", "cleanup.policy": "compact,delete"},
            now=Now(in_sync=2),
        ),
    )
    assert cluster.brokers == 3


def test_settings_of_topics_win_over_those_of_brokers_and_these_over_defaults(tmp_path: Path) -> None:
    server = "node.id=1\nmin.insync.replicas=2\nlisteners=PLAINTEXT://:9092\n"
    cluster = read(tmp_path, topics=DESCRIBED, configs=CONFIGS, server=server).cluster()
    old, orders = cluster.topics
    assert [cluster.setting_of(topic, "min.insync.replicas") for topic in (old, orders)] == ["2", "1"]
    assert cluster.setting_of(orders, "unclean.leader.election.enable") == "true"
    assert cluster.setting_of(old, "retention.ms") == str(24 * 3_600_000)
    assert cluster.setting_of(old, "cleanup.policy") == "delete"


def test_racks_are_those_of_the_servers_properties(tmp_path: Path) -> None:
    servers = {f"s{node}": f"node.id={node}\nbroker.rack={'a' if node < 2 else 'b'}\n" for node in range(3)}
    old, orders = read(tmp_path, topics=DESCRIBED, **servers).cluster().topics
    assert (old.racks, orders.racks) == (1, 2)


def test_brokers_that_differ_are_seen(tmp_path: Path) -> None:
    servers = {f"s{node}": f"node.id={node}\nmin.insync.replicas={node}\n" for node in (1, 2)}
    assert read(tmp_path, topics=DESCRIBED, **servers).cluster().differing == {"min.insync.replicas": ("1", "2")}


def test_a_reassignment_is_read(tmp_path: Path) -> None:
    text = '{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}'
    assert read(tmp_path, moves=text).cluster().topics == (Topic(name="t", partitions=1, replicas=2),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "{",
        "{}",
        '{"partitions": 3}',
        '{"partitions": [{"topic": "t"}]}',
        "Topic: t\tPartition: 0\tIsr: 1\n",
    ],
)
def test_nonsense_ends_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert exit_code_of(["assess", str(file)]) == 64
    said = capsys.readouterr().err
    assert str(file) in said
    assert "kafka-topics.sh --describe" in said


PARTS = ("Topic: t", "Partition: 0", "Replicas: ", "1,2", "\t", "\n", "{", "}", "a=b", '"', ":")


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from(PARTS)).map("".join))
def test_any_text_is_a_cluster_or_a_sentence(text: str) -> None:
    files, said = ClusterFiles(), ""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        try:
            files.add(Path(file.name))
            topics = groups_of(files.cluster())
        except PlanError as error:
            said = str(error)
    assert file.name in said if said else topics


def test_deep_json_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="cannot be understood"):
        read(tmp_path, deep='{"a": ' + "[" * 100_000)


def test_properties_without_topics_say_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.properties"
    file.write_text("min.insync.replicas=2\n")
    assert exit_code_of(["assess", str(file)]) == 64
    assert "no topic with its replicas" in capsys.readouterr().err


def test_java_properties_are_read_as_java_does() -> None:
    text = "# c\n! c\nacks = all\nretries: 3\nlinger.ms 7\nclient.id=a\\\n   b\nsasl\\:x=1\n"
    assert properties_in(text) == {"acks": "all", "retries": "3", "linger.ms": "7", "client.id": "ab", "sasl:x": "1"}


def test_a_client_keeps_no_secret_and_its_names_tell_its_library(tmp_path: Path) -> None:
    java, rdkafka = tmp_path / "java.properties", tmp_path / "rdkafka.conf"
    java.write_text("acks=-1\nsasl.jaas.config=secret\n")
    rdkafka.write_text("request.required.acks=1\nmessage.timeout.ms=1000\n")
    assert clients_named([str(java), str(rdkafka), "acks=0", "linger.ms=5"], "--producer") == [
        Client(name=str(java), library="java", settings={"acks": "-1"}),
        Client(name=str(rdkafka), library="librdkafka", settings={"acks": "1", "delivery.timeout.ms": "1000"}),
        Client(name="of the command line", library="java", settings={"acks": "0", "linger.ms": "5"}),
    ]


@pytest.mark.parametrize(
    ("library", "version", "settings", "acks", "idempotence"),
    [
        ("java", "", {}, "all", "true"),
        ("java", "2.8.2", {}, "1", "false"),
        ("java", "2.8.2", {"enable.idempotence": "true"}, "all", "true"),
        ("java", "2.8.2", {"transactional.id": "t"}, "all", "true"),
        ("java", "", {"acks": "1"}, "1", "false"),
        ("java", "", {"acks": "-1", "retries": "0"}, "all", "false"),
        ("librdkafka", "", {}, "all", "false"),
        ("librdkafka", "", {"enable.idempotence": "true"}, "all", "true"),
        ("librdkafka", "", {"transactional.id": "t"}, "all", "true"),
    ],
)
def test_defaults_are_those_of_the_library(
    library: str, version: str, settings: dict[str, str], acks: str, idempotence: str
) -> None:
    (client,) = clients_named(["linger.ms=5"], "--producer", f"{library}:{version}" if version else library)
    values = effective(Client(name="c", library=client.library, version=version, settings=settings))
    assert (values["acks"], values["enable.idempotence"]) == (acks, idempotence)


@pytest.mark.parametrize(
    ("version", "acks", "linger", "no_retries"),
    [
        ("2.0.1", "1", "0", True),
        ("2.1.0", "1", "0", False),
        ("3.0.0", "all", "0", False),
        ("3.9.2", "all", "0", False),
        ("4.0.0", "all", "5", False),
        ("", "all", "5", False),
    ],
)
def test_defaults_of_kafkas_own_client_are_those_of_its_release(
    *, version: str, acks: str, linger: str, no_retries: bool
) -> None:
    values = effective(Client(name="c", library="java", version=version))
    assert (values["acks"], values["linger.ms"], values["retries"] == "0") == (acks, linger, no_retries)


@pytest.mark.parametrize(
    ("version", "lag", "unclean"),
    [
        ("0.10.2.2", "10000", "true"),
        ("0.11.0.0", "10000", "false"),
        ("2.4.1", "10000", "false"),
        ("2.5.0", "30000", "false"),
        ("", "30000", "false"),
    ],
)
def test_defaults_of_brokers_are_those_of_their_release(version: str, lag: str, unclean: str) -> None:
    topic = Topic(name="t", partitions=1, replicas=3)
    release = Release(parse_version(version)) if version else None
    cluster = Cluster(source="a test", topics=(topic,), release=release)
    assert cluster.broker_setting("replica.lag.time.max.ms") == lag
    assert cluster.setting_of(topic, "unclean.leader.election.enable") == unclean


@pytest.mark.parametrize(
    ("words", "library", "said"),
    [
        (["acks=maybe"], "", "choose one of -1, 0, 1, all"),
        (["retries=many"], "", "takes a whole number"),
        (["/nowhere/p.properties"], "", "is not a file"),
        (["acks=1"], "jafa", "java"),
        (["acks=1"], "java:new", "is not a version"),
    ],
)
def test_clients_that_cannot_be_are_refused(words: list[str], library: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        clients_named(words, "--producer", library)


@pytest.mark.parametrize(
    ("option", "word", "said"),
    [
        ("--producer", "ack=all", "no producer has a setting ack; did you mean acks?"),
        ("--producer", "ackss=0", "no producer has a setting ackss; did you mean acks?"),
        ("--producer", "enable.idempotance=false", "did you mean enable.idempotence?"),
        ("--producer", "group.id=7", "no producer has a setting group.id; a consumer has it: write --consumer"),
        ("--producer", "min.insync.replicas=2", "no producer has a setting min.insync.replicas; correct its name"),
        ("--consumer", "acks=all", "no consumer has a setting acks; a producer has it: write --producer"),
        ("--consumer", "isolation.level=committed", "choose one of read_committed, read_uncommitted"),
    ],
)
def test_a_setting_that_no_client_has_is_refused_on_the_command_line(
    option: str, word: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = tmp_path / "topics"
    topics.write_text(DESCRIBED)
    assert exit_code_of(["assess", str(topics), option, word]) == 64
    assert said in capsys.readouterr().err


def test_a_setting_that_no_client_is_known_to_have_is_kept_by_name_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "p.properties"
    file.write_text("bootstrap.servers=b:1\nack=0\nacks=1\nschema.registry.url=u\nssl.key.password=p\ngroup.id=g\n")
    (client,) = clients_named([str(file)], "--producer")
    assert client.settings == {"acks": "1"}
    assert client.strange == ("ack", "group.id", "schema.registry.url")


@pytest.mark.parametrize("name", ["max_in_flight_requests_per_connection", "max.in.flight", "queue.buffering.max.ms"])
def test_every_spelling_of_a_setting_is_known(name: str) -> None:
    (client,) = clients_named([f"{name}=3"], "--producer")
    assert list(client.settings.values()) == ["3"]


def test_fields_behind_spaces_are_read_as_those_behind_tabs(tmp_path: Path) -> None:
    spaced = DESCRIBED.replace("\t", "    ")
    single = DESCRIBED.replace("\t", " ")
    (tmp_path / "a").mkdir()
    expected = read(tmp_path, topics=DESCRIBED).cluster().topics
    assert read(tmp_path, topics=spaced).cluster().topics == expected
    assert read(tmp_path, topics=single).cluster().topics == expected


def test_replicas_of_a_reassignment_under_way_are_not_taken_for_the_present_ones(tmp_path: Path) -> None:
    text = "\tTopic: t\tPartition: 0\tLeader: 0\tReplicas: 0,1,3\tIsr: 0,1\tAdding Replicas: 3\tRemoving Replicas: \n"
    (topic,) = read(tmp_path, topics=text).cluster().topics
    assert (topic.replicas, topic.now) == (3, Now(behind=1, in_sync=2))


def test_a_topic_in_two_files_counts_once(tmp_path: Path) -> None:
    once = read(tmp_path, a=DESCRIBED, configs=CONFIGS).cluster().topics
    moves = '{"version": 1, "partitions": [{"topic": "orders", "partition": 1, "replicas": [2, 1]}]}'
    twice = read(tmp_path, a=DESCRIBED, b=DESCRIBED, configs=CONFIGS, configs2=CONFIGS, moves=moves).cluster().topics
    assert twice == once


@pytest.mark.parametrize(
    ("in_a", "in_b", "said"),
    [
        ("Replicas: 1,2", "Replicas: 1,3", "log partition 1 of orders has the replicas 1,2 in {a}, and 1,3 in {b}"),
        ("min.insync.replicas=2", "min.insync.replicas=1", "orders has min.insync.replicas=2 in {a}, and "),
    ],
)
def test_files_that_contradict_each_other_are_refused(in_a: str, in_b: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read(tmp_path, a=DESCRIBED, b=DESCRIBED.replace(in_a, in_b))
    assert said.format(a=tmp_path / "a", b=tmp_path / "b") in str(caught.value)
    assert str(tmp_path / "b") in str(caught.value)


@pytest.mark.parametrize(("leader", "isr"), [("none", ""), ("-1", "0")])
def test_a_log_partition_without_a_leader_is_seen(leader: str, isr: str, tmp_path: Path) -> None:
    text = DESCRIBED.replace("Leader: 0\tReplicas: 0,1,2\tIsr: 0,1,2", f"Leader: {leader}\tReplicas: 0,1,2\tIsr: {isr}")
    _, orders = read(tmp_path, topics=text).cluster().topics
    assert orders.now == Now(leaderless=1, behind=1, in_sync=len(isr))

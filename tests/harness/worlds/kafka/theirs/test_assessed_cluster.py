"""A live cluster is assessed, also through TLS and SASL, and has the same answer as files of Kafka's own tools."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from harness.assess import (
    Assessment,
    Client,
    Cluster,
    ClusterFiles,
    Performer,
    Question,
    Release,
    assess,
    read_live,
)
from harness.assess.broker_risks import of_brokers
from harness.cli.app import exit_code_of
from harness.ground.progress import Progress
from harness.plan import Existing, Security
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import tool_command
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version
from tests.harness.worlds.kafka.theirs.secured import PASSWORD, STRANGER, USER, SecuredCluster
from tests.waiting import wait_for_topics

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("kafka-theirs")]
VARIABLE = "AK_TEST_PASSWORD"
RELEASE = parse_version(DEFAULT_VERSION)
TELLING = ("S01", "S02", "S07", "S14", "S22", "S32", "S40", "S52")
#: Each with its replicas, its settings, and what must be named.
TOPICS: dict[str, tuple[int, dict[str, str], set[str]]] = {
    "clean": (3, {"min.insync.replicas": "2"}, set()),
    "unclean": (3, {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}, {"unclean-election"}),
    "one-in-sync": (3, {"min.insync.replicas": "1"}, {"too-few-in-sync"}),
    "all-in-sync": (3, {"min.insync.replicas": "3"}, {"all-must-be-in-sync"}),
    "one-copy": (1, {"min.insync.replicas": "1"}, {"replicas"}),
    "two-copies": (2, {"min.insync.replicas": "1"}, {"replicas"}),
    "short": (3, {"min.insync.replicas": "2", "retention.ms": "3600000"}, {"retention"}),
    "beyond": (1, {"min.insync.replicas": "2"}, {"replicas", "unmet-demand"}),
    "theirs": (3, {}, {"all-must-be-in-sync"}),
}
NEW = [name for name in TOPICS if name != "theirs"]


@pytest.fixture
def topics(cluster: SecuredCluster) -> Iterator[None]:
    with KafkaAdminClient(bootstrap_servers=cluster.ways.plain) as admin:
        admin.create_topics(
            {
                name: {"num_partitions": 1, "replication_factor": replicas, "configs": configs}
                for name, (replicas, configs, _) in TOPICS.items()
                if name in NEW
            }
        )
        try:
            wait_for_topics(cluster.topics, sorted(TOPICS))
            yield
        finally:
            admin.delete_topics(NEW)
            wait_for_topics(cluster.topics, ["theirs"])


@pytest.fixture
def readers(cluster: SecuredCluster) -> Iterator[None]:
    """The users of TLS and of SASL may see every topic, and nothing more."""
    every = ResourcePattern(ResourceType.TOPIC, "*", ACLResourcePatternType.LITERAL)
    rights = [
        ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, every)
        for user in (USER, "CN=client")
        for operation in (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS)
    ]
    with KafkaAdminClient(bootstrap_servers=cluster.ways.plain) as admin:
        admin.create_acls(rights)
        try:
            yield
        finally:
            admin.delete_acls(rights)


def assessed(cluster: Cluster, stage: Performer) -> Assessment:
    named = Cluster(
        **{name: getattr(cluster, name) for name in Cluster.__struct_fields__} | {"release": Release(RELEASE)}
    )
    return assess(Question(named, [Client(name="defaults", library="java")]), stage, Progress())


def printed(cluster: SecuredCluster, real_kafka: Installation, directory: Path) -> list[Path]:
    """The files: what kafka-topics.sh and kafka-features.sh print, and the properties of the brokers."""
    tools = {
        "topics.txt": [
            "org.apache.kafka.tools.TopicCommand",
            "--bootstrap-server",
            cluster.ways.plain[0],
            "--describe",
        ],
        "features.txt": [
            "org.apache.kafka.tools.FeatureCommand",
            "--bootstrap-server",
            cluster.ways.plain[0],
            "describe",
        ],
    }
    for name, words in tools.items():
        ended = subprocess.run(tool_command(real_kafka, words), capture_output=True, text=True, timeout=300, check=True)
        (directory / name).write_text(ended.stdout)
    servers = cluster.authority.file.parent.rglob("*.properties")
    brokers = [file for file in servers if "process.roles=broker" in file.read_text()]
    return [*(directory / name for name in tools), *brokers]


@pytest.mark.usefixtures("topics")
def test_a_live_cluster_and_its_files_have_the_same_answer(
    cluster: SecuredCluster, real_kafka: Installation, tmp_path: Path
) -> None:
    live = read_live(Existing(bootstrap=tuple(cluster.ways.plain)), Progress())
    files = ClusterFiles()
    for file in printed(cluster, real_kafka, tmp_path):
        files.add(file)
    with Performer(only=TELLING) as stage:
        by_life, by_files = assessed(live, stage), assessed(files.cluster(), stage)
    assert live.release is not None
    assert live.release.version[:2] == RELEASE[:2]
    assert live.features["eligible.leader.replicas.version"] == 1
    of_every_topic = {concern.name for concern in of_brokers(live, [])}
    assert "few-controllers" in of_every_topic
    named = {
        topic: {concern.name for concern in group.concerns if concern.kind != "defect"} - of_every_topic
        for group in by_life.groups
        for topic in group.topics
        if topic in TOPICS
    }
    assert named == {name: names for name, (_, _, names) in TOPICS.items()}
    own = [group for group in by_life.groups if group.topics[0] in TOPICS]
    assert own == [group for group in by_files.groups if group.topics[0] in TOPICS]


@pytest.mark.usefixtures("topics", "readers")
def test_a_cluster_behind_tls_and_sasl_is_read_as_an_open_one(
    cluster: SecuredCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    ca = str(cluster.authority.file)
    live = read_live(Existing(bootstrap=tuple(cluster.ways.plain)), Progress())
    for servers, security in (
        (cluster.ways.mutual, Security(protocol="SSL", ca=ca, certificate=str(cluster.client))),
        (cluster.ways.sasl, by_password(ca, USER, "SCRAM-SHA-512")),
        (cluster.ways.sasl, by_password(ca, USER, "PLAIN")),
    ):
        secured = read_live(Existing(bootstrap=tuple(servers), security=security), Progress())
        assert not secured.unread
        assert msgspec.structs.replace(secured, source=live.source) == live
    # A user without these rights is told so, and no requirement is met by what it may not see.
    world = Existing(bootstrap=tuple(cluster.ways.sasl), security=by_password(ca, STRANGER, "SCRAM-SHA-512"))
    hidden = read_live(world, Progress())
    assert not hidden.topics
    assert hidden.unread == ("settings of brokers (DescribeConfigs on the cluster)",)


def by_password(ca: str, user: str, mechanism: Literal["SCRAM-SHA-512", "PLAIN"]) -> Security:
    return Security(protocol="SASL_SSL", ca=ca, mechanism=mechanism, username=user, password_env=VARIABLE)


def test_an_unreachable_cluster_ends_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["assess", "--bootstrap", "127.0.0.1:1"]) == 69
    assert "127.0.0.1:1 refuses connections" in capsys.readouterr().err

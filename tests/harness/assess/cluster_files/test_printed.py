"""Texts of Kafka's tools, of every release, are read with the values that they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.assess.configuration import Now
from tests.harness.assess.cluster_files.reading import (
    IN_SYNC,
    LISTING,
    UNCLEAN,
    decided,
    entry,
    read,
    unclear,
    with_listing,
)

OF_0_10 = """\
Topic:orders\tPartitionCount:2\tReplicationFactor:3\tConfigs:min.insync.replicas=2,cleanup.policy=compact,delete
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr:\x20
"""
OF_1_0 = OF_0_10.replace("delete\n", "delete\tMarkedForDeletion:true\n", 1)
OF_2_6 = """\
Topic: orders\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,cleanup.policy=compact,delete
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tAdding Replicas: 4\tRemoving Replicas: 1
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr:\x20
"""
OF_4_2 = """\
Topic: orders\tTopicId: X\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: cleanup.policy=compact,delete,min.insync.replicas=2
\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr:\x20
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: \tElr: 3,2\tLastKnownElr: N/A
"""  # noqa: E501 - a line as the tool prints it
NOISE = """\
[2026-11-02 10:11:12,345] WARN [AdminClient clientId=adminclient-1] Connection to node -1 could not be established.
SLF4J: Class path contains multiple SLF4J bindings.
operator@bastion:~$ kafka-topics.sh --bootstrap-server b-1.example:9092 --describe
"""


@pytest.mark.parametrize("text", [OF_0_10, OF_1_0, OF_2_6, OF_4_2, NOISE + OF_4_2, OF_4_2.replace("\n", "\r\n")])
def test_listings_of_every_release_say_the_same(text: str, tmp_path: Path) -> None:
    (topic,) = read(tmp_path, {"topics.txt": text}).topics
    assert topic.settings == {IN_SYNC: "2", "cleanup.policy": "compact,delete"}
    assert (topic.partitions, topic.replicas, topic.not_understood) == (2, 3, ())
    assert topic.now == Now(leaderless=1, behind=1, in_sync=0, eligible=(2, 3) if "Elr: 3,2" in text else ())


def test_settings_behind_a_value_with_spaces_are_read(tmp_path: Path) -> None:
    placed = 'confluent.placement.constraints={"version": 1, "replicas": [{"count": 3}]},min.insync.replicas=2'
    text = LISTING.replace("segment.bytes=1073741824", placed)
    assert decided(read(tmp_path, {"topics.txt": text}), IN_SYNC) == {IN_SYNC: "2"}


def test_a_topic_of_which_only_the_heading_is_there_has_its_replicas(tmp_path: Path) -> None:
    text = "Topic: a\tPartitionCount: 5\tReplicationFactor: 2\tConfigs: min.insync.replicas=2\n"
    (topic,) = read(tmp_path, {"topics.txt": text}).topics
    assert (topic.partitions, topic.replicas, topic.settings) == (5, 2, {IN_SYNC: "2"})


def test_a_listing_that_is_cut_off_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    short = "\n".join(LISTING.splitlines()[:2])
    cluster = read(tmp_path, {"topics.txt": short})
    (said,) = cluster.topics[0].not_understood
    assert (said.name, "only 1 of them" in said.words) == ("", True)


NEW = (
    "Dynamic configs for broker 1 are:\n"
    + entry(IN_SYNC, "2", "DYNAMIC_BROKER", "DEFAULT=1")
    + "Default configs for brokers in the cluster are:\n"
    + entry(UNCLEAN, "true", "DYNAMIC_DEFAULT_BROKER")
)
OLD = NEW.replace("Dynamic configs for broker", "Configs for broker").replace(
    "Default configs for", "Default config for"
)
ALL = (
    "All configs for broker 1 are:\n"
    + entry("advertised.listeners", "PLAINTEXT://b-1.example:9092", "STATIC_BROKER")
    + entry("broker.rack", "null")
    + entry("log.retention.hours", "168", "DEFAULT")
    + entry("log.retention.ms", "null")
    + entry(IN_SYNC, "2", "STATIC_BROKER", "DEFAULT=1")
    + "  ssl.keystore.password=null sensitive=true synonyms={}\n"
    + entry(UNCLEAN, "true", "DYNAMIC_DEFAULT_BROKER", "DEFAULT=false")
)
TRIMMED = """\
Dynamic configs for broker 1 are:
  min.insync.replicas=2
  unclean.leader.election.enable=true
"""
BY_ZOOKEEPER = "Configs for brokers '1' are min.insync.replicas=2,unclean.leader.election.enable=true\n"


@pytest.mark.parametrize("text", [NEW, OLD, ALL, TRIMMED, BY_ZOOKEEPER, NOISE + NEW, OLD.replace("\n", "\r\n")])
def test_settings_of_brokers_are_read_in_every_form(text: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "configs.txt", text)
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}
    assert not unclear(cluster)


@pytest.mark.parametrize(
    "text",
    [
        "Configs for topic 'orders' are unclean.leader.election.enable=true,min.insync.replicas=2\n",
        "Configs for topics:orders are min.insync.replicas=2,unclean.leader.election.enable=true\n",
        "Dynamic configs for topic orders are:\n" + entry(IN_SYNC, "2") + entry(UNCLEAN, "true", "DYNAMIC_TOPIC"),
        "All configs for topic orders are:\n" + entry(IN_SYNC, "2", "STATIC_BROKER") + entry(UNCLEAN, "true"),
    ],
)
def test_settings_of_topics_are_read_in_every_form(text: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "configs.txt", text)
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}


def test_settings_of_users_loggers_and_groups_are_not_those_of_brokers(tmp_path: Path) -> None:
    text = (
        "Quota configs for user-principal 'u' are producer_byte_rate=1.0\n"
        f"All configs for broker-logger 1 are:\n{entry(IN_SYNC, 'INFO')}"
        "Configs for client-id 'c' are consumer_byte_rate=3\n" + NEW
    )
    assert decided(with_listing(tmp_path, "configs.txt", text), IN_SYNC) == {IN_SYNC: "2"}


def test_the_output_of_several_tools_in_one_file_is_read(tmp_path: Path) -> None:
    supported = "\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\tFinalizedVersionLevel:"
    features = f"Feature: eligible.leader.replicas.version{supported} 1\tEpoch: 9\n"
    metadata = f"Feature: metadata.version{supported} 4.1-IV1\tEpoch: 9\n"
    cluster = read(tmp_path, {"all.txt": NOISE + LISTING + NOISE + NEW + features + metadata})
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}
    assert cluster.features == {"eligible.leader.replicas.version": 1, "metadata.version": 27}


@pytest.mark.parametrize(
    "line",
    [
        "  min.insync.replicas : 2",
        "  min.insync.replicas",
        "  min.insync.replicas=2 sensitive=false synonyms={STATIC_BROKER_CONFIG:min.insync.replicas=3}",
        "  min.insync.replicas=two sensitive=false synonyms={}",
    ],
)
def test_a_line_that_contradicts_itself_or_has_another_form_is_not_passed_over(line: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "configs.txt", f"Dynamic configs for broker 1 are:\n{line}\n")
    assert unclear(cluster) == {IN_SYNC}


GENERATED = """\
Current partition replica assignment
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["any","any","any"]}]}

Proposed partition reassignment configuration
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","any"]}]}
"""
EXECUTED = """\
Current partition replica assignment

{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]}]}

Save this to use as the --reassignment-json-file option during rollback
Successfully started partition reassignment for orders-0
"""
WARNED = """\
[2026-11-02 10:11:12] WARN something
{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[3,2,1]}]}
"""


@pytest.mark.parametrize("text", [GENERATED, EXECUTED, WARNED, NOISE + GENERATED, GENERATED.replace("\n", "\r\n")])
def test_of_a_reassignment_the_present_replicas_count(text: str, tmp_path: Path) -> None:
    (topic,) = read(tmp_path, {"moves.txt": text}).topics
    assert (topic.name, topic.replicas) == ("orders", 3)


@pytest.mark.parametrize(
    "subject", ["default brokers", "default broker", "brokers '<default>'", "broker '<default>'", "broker <default>"]
)
def test_values_of_every_broker_by_zookeeper_are_read(subject: str, tmp_path: Path) -> None:
    text = f"Configs for {subject} are {UNCLEAN}=true,log.cleaner.threads=2\n"
    cluster = with_listing(tmp_path, "configs.txt", text, "2.3.0")
    assert decided(cluster, UNCLEAN) == {UNCLEAN: "true"}
    assert not unclear(cluster)


@pytest.mark.parametrize(
    "text",
    [
        f"broker.id=1\n{UNCLEAN}=true\n",
        f"    Dynamic configs for topic orders are:\n      {UNCLEAN}=true sensitive=false synonyms={{}}\n",
        f"$ kafka-configs.sh --alter --entity-name orders --add-config {UNCLEAN}=true\n",
        f"| {UNCLEAN}: true |\n",
    ],
)
def test_a_setting_in_a_line_that_no_tool_prints_is_not_passed_over(text: str, tmp_path: Path) -> None:
    assert unclear(read(tmp_path, {"all.txt": LISTING + text})) == {UNCLEAN}


@pytest.mark.parametrize("topics", [["a"], ["a", "b", "c", "d", "e"]])
def test_topics_of_which_only_replicas_are_known_are_named(topics: list[str], tmp_path: Path) -> None:
    lines = "".join(f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n" for name in topics)
    (unread,) = read(tmp_path, {"topics.txt": LISTING + lines}).unread
    assert unread.endswith("settings of a" if topics == ["a"] else "settings of a, b, c and 2 more")

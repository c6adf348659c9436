"""A node's properties, directory and command line, from settings. No Java runs here."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest

from harness.ground.errors import PlanError
from harness.worlds.hosts import Address
from harness.worlds.kafka.formatting import FirstFeatures
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import LogFiles, archive_command, archive_path, node_command
from harness.worlds.kafka.properties import (
    RULES_SINCE,
    NodePlace,
    as_text,
    foreign_rule,
    lone_properties,
    node_properties,
    possible,
    possible_with_kraft,
    transactions_possible,
)
from harness.worlds.kafka.releases import Version, artifacts, parse_version
from harness.worlds.reference_settings import broker_config, refuse_what_it_lacks
from nemesis.cluster import CONTROLLER
from workloads.settings import MissedEpoch, Settings

BROKER = NodePlace(
    node=1,
    data=Path("/run/1"),
    address=Address("10.77.0.2", 9092),
    controllers={CONTROLLER: Address("10.77.0.101", 9092)},
)
THE_CONTROLLER = NodePlace(
    node=CONTROLLER, data=Path("/run/100"), address=BROKER.controllers[CONTROLLER], controllers=BROKER.controllers
)


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    libs = tmp_path / "4.1.1" / "libs"
    libs.mkdir(parents=True)
    (libs / "kafka_2.13-4.1.1.jar").touch()
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    return Installation(Version(4, 1, 1), libs.parent)


def test_a_broker_and_the_controller_know_each_others_address() -> None:
    broker, controller = (node_properties(node, Settings(), 3) for node in (BROKER, THE_CONTROLLER))
    assert broker["controller.quorum.voters"] == controller["controller.quorum.voters"] == "100@10.77.0.101:9092"
    assert broker["advertised.listeners"] == "PLAINTEXT://10.77.0.2:9092"
    assert controller["listeners"] == "CONTROLLER://10.77.0.101:9092"
    assert "advertised.listeners" not in controller
    assert (broker["process.roles"], controller["process.roles"]) == ("broker", "controller")


def test_several_controllers_vote_and_every_node_knows_them() -> None:
    several = {CONTROLLER + number: Address(f"10.77.0.{101 + number}", 9092) for number in range(3)}
    last = msgspec.structs.replace(THE_CONTROLLER, node=102, address=several[102], controllers=several)
    for node in (msgspec.structs.replace(BROKER, controllers=several), last):
        voters = node_properties(node, Settings(), 3)["controller.quorum.voters"]
        assert voters == "100@10.77.0.101:9092,101@10.77.0.102:9092,102@10.77.0.103:9092"
    assert node_properties(last, Settings(), 3)["process.roles"] == "controller"


def test_a_node_that_nobody_ends_ends_by_itself_after_whole_minutes(installation: Installation, tmp_path: Path) -> None:
    properties, files = tmp_path / "p", LogFiles(tmp_path / "l", tmp_path / "gc")
    assert "-XX:SelfDestructTimer=3" in node_command(installation, 0, properties, files, max_lifetime_s=121.0)
    assert not [word for word in node_command(installation, 0, properties, files) if "Destruct" in word]
    assert "-XX:SelfDestructTimer=3" in archive_command(installation, properties, files, tmp_path / "a.jsa")


def test_a_colon_in_the_path_of_a_run_does_not_end_the_name_of_its_log(installation: Installation, tmp_path) -> None:
    files = LogFiles(tmp_path / "l", tmp_path / "a:b" / "gc.log")
    (word,) = [word for word in node_command(installation, 0, tmp_path / "p", files) if "safepoint" in word]
    assert f':file="{tmp_path}/a:b/gc.log":utctime' in word


def test_the_settings_of_brokers_reach_the_configuration_and_those_of_topics_do_not() -> None:
    written = node_properties(BROKER, Settings(broker_session_timeout_ms=3_000, min_insync_replicas=2), 3)
    assert written["broker.session.timeout.ms"] == "3000"
    assert "replication.factor" not in written


def test_the_log_of_groups_has_the_in_sync_replicas_and_elections_of_the_run() -> None:
    settings = Settings(replication_factor=5, min_insync_replicas=4, unclean_leader_election_enable=True)
    written = [node_properties(BROKER, each, 5) for each in (Settings(min_insync_replicas=2), settings)]
    names = ("offsets.topic.replication.factor", "min.insync.replicas", "unclean.leader.election.enable")
    assert [[each[name] for name in names] for each in written] == [["3", "2", "false"], ["3", "3", "true"]]


@pytest.mark.parametrize(("session_ms", "beat_ms"), [(3_000, 1_000), (45_000, 15_000), (120_000, 15_000)])
def test_a_session_of_members_is_within_the_limits_that_brokers_have(session_ms: int, beat_ms: int) -> None:
    written = node_properties(BROKER, Settings(session_timeout_ms=session_ms), 3)
    limits = [int(written[f"group.consumer.{limit}.session.timeout.ms"]) for limit in ("min", "max")]
    assert limits[0] <= session_ms <= limits[1]
    assert int(written["group.consumer.heartbeat.interval.ms"]) == beat_ms
    assert int(written["group.consumer.min.heartbeat.interval.ms"]) <= beat_ms


def test_the_flusher_looks_as_often_as_the_topic_is_to_be_flushed() -> None:
    assert node_properties(BROKER, Settings(flush_ms=250), 3)["log.flush.scheduler.interval.ms"] == "250"


def test_a_small_cluster_can_still_make_its_own_topics() -> None:
    written = node_properties(BROKER, Settings(replication_factor=1), 1)
    assert written["offsets.topic.replication.factor"] == "1"
    assert written["transaction.state.log.min.isr"] == "1"


def test_a_node_alone_is_its_own_controller() -> None:
    written = lone_properties(BROKER, Settings(replication_factor=1))
    assert written["process.roles"] == "broker,controller"
    assert written["controller.quorum.voters"] == "1@10.77.0.101:9092"
    assert written["listeners"] == "PLAINTEXT://10.77.0.2:9092,CONTROLLER://10.77.0.101:9092"


def test_properties_are_a_line_each() -> None:
    assert as_text({"node.id": "1", "log.dirs": "/a"}) == "node.id=1\nlog.dirs=/a\n"


def test_rules_that_kafka_fixed_cannot_be_switched_in_its_world() -> None:
    with pytest.raises(PlanError, match=r"truncation=kip-101 is not how .* 4\.1\.1 works.* write truncation=on-fetch"):
        possible(Settings(truncation="kip-101"), Version(4, 1, 1))


def test_an_old_release_must_be_called_what_it_is() -> None:
    possible(Settings(strict_min_isr=False), Version(3, 6, 2))
    with pytest.raises(PlanError, match=r"3\.6\.2 works; in its world write strict\.min\.isr=false"):
        possible(Settings(), Version(3, 6, 2))
    possible(Settings(), Version(3, 7, 0))


def test_what_kafka_does_after_a_missed_epoch_is_nobodys_choice() -> None:
    for missed_epoch in get_args(MissedEpoch):
        possible(Settings(missed_epoch=missed_epoch), Version(4, 3, 1))


def test_eligible_leader_replicas_are_chosen_where_a_release_knows_them() -> None:
    possible(Settings(eligible_leader_replicas=True), Version(4, 0, 0))
    possible(Settings(eligible_leader_replicas=False), Version(4, 3, 1))
    with pytest.raises(PlanError, match=r"eligible\.leader\.replicas=true is not how Apache Kafka 3\.9\.1 works"):
        possible(Settings(eligible_leader_replicas=True), Version(3, 9, 1))


def test_a_cluster_has_the_version_of_transactions_that_is_chosen_where_its_release_has_both() -> None:
    old, new = Version(3, 9, 1), Version(4, 0, 0)
    first, second = Settings(transaction_version=1), Settings(transaction_version=2)
    for settings in (first, second):
        possible(settings, old)  # of no meaning, where no transactions are written
        transactions_possible(settings, new)
    transactions_possible(first, old)
    with pytest.raises(PlanError, match=r"version=2 is not how Apache Kafka 3\.9\.1 works; .* transaction\.version=1"):
        transactions_possible(second, old)
    assert FirstFeatures(transactions=1).of(old) == {}
    assert FirstFeatures(transactions=1).of(new)["transaction.version"] == 1
    assert foreign_rule({"transaction.version": 2}, old) == "transaction.version=2"
    assert foreign_rule({"transaction.version": 1}, old) == foreign_rule({"transaction.version": 1}, new) == ""


@pytest.mark.parametrize(("feature", "has"), [(0, 1), (1, 1), (2, 2)])
def test_a_cluster_that_exists_has_the_version_of_transactions_that_it_says(feature: int, has: int) -> None:
    transactions_possible(Settings(transaction_version=has), Version(4, 3, 1), feature)
    with pytest.raises(PlanError, match=f"is not how this cluster works; .* write transaction.version={has}"):
        transactions_possible(Settings(transaction_version=3 - has), Version(4, 3, 1), feature)


@pytest.mark.parametrize("without", [{"strict_min_isr": False}, {"broker_epochs": False}])
def test_the_reference_broker_keeps_eligible_leaders_only_with_the_rules_that_they_rest_on(without) -> None:
    with pytest.raises(PlanError, match=r"needs strict\.min\.isr=true and broker\.epochs=true"):
        refuse_what_it_lacks(Settings(eligible_leader_replicas=True, **without))
    refuse_what_it_lacks(Settings(eligible_leader_replicas=True))
    refuse_what_it_lacks(Settings(**without))


@pytest.mark.parametrize("world", ["simulated", "processes"])
def test_groups_expire_in_every_world(world: str) -> None:
    settings = Settings(offsets_retention_minutes=1)
    refuse_what_it_lacks(settings, world)
    assert broker_config(settings).offsets_retention_minutes == 1


def test_brokers_with_a_compacted_topic_clean_the_log_of_groups_by_its_settings() -> None:
    times = {"segment.ms": 1_000, "delete.retention.ms": 2_000, "min.cleanable.dirty.ratio": 0.1}
    cleaned = node_properties(BROKER, Settings.from_mapping({"cleanup.policy": "compact", **times}), 3)
    names = ("log.roll.ms", "log.cleaner.delete.retention.ms", "log.cleaner.min.cleanable.ratio")
    assert [cleaned[name] for name in names] == ["1000", "2000", "0.1"]
    assert not {*names} & node_properties(BROKER, Settings.from_mapping(times), 3).keys()


def test_the_logging_binding_is_the_one_that_the_release_reads() -> None:
    assert [artifact.name for artifact in artifacts(parse_version("3.9.1"))] == [
        "kafka_2.13",
        "kafka-tools",
        "slf4j-reload4j",
    ]
    assert artifacts(parse_version("4.0.0"))[-1].name == "log4j-slf4j-impl"


@pytest.mark.parametrize(
    ("version", "fetched"),
    [
        ("0.8.1.1", ["kafka_2.10", "slf4j-reload4j", "jaxb-api"]),
        ("0.11.0.3", ["kafka_2.11", "kafka-tools", "slf4j-reload4j", "jaxb-api"]),
        ("1.1.1", ["kafka_2.12", "kafka-tools", "slf4j-reload4j"]),
        ("2.3.1", ["kafka_2.12", "kafka-tools", "slf4j-reload4j", "zookeeper"]),
        ("2.4.1", ["kafka_2.13", "kafka-tools", "slf4j-reload4j"]),
    ],
)
def test_old_releases_are_fetched_with_what_todays_java_needs(version: str, fetched: list[str]) -> None:
    assert [artifact.name for artifact in artifacts(parse_version(version))] == fetched


def test_a_release_before_kraft_wants_zookeeper() -> None:
    with pytest.raises(PlanError, match=r'Apache Kafka 3\.2\.3 is started with ZooKeeper .* mode = "zookeeper"'):
        possible_with_kraft(Settings(), Version(3, 2, 3))
    possible_with_kraft(Settings(), Version(4, 3, 1))


def test_releases_are_ordered_as_they_came() -> None:
    written = ["0.8.0", "0.8.1.1", "0.8.2.2", "0.10.2.2", "0.11.0.3", "1.0.2", "3.9.2", "4.1.1", "4.10.0"]
    assert [str(version) for version in sorted(map(parse_version, reversed(written)))] == written


def test_an_archive_of_class_data_is_used_where_there_is_one(installation: Installation, tmp_path: Path) -> None:
    files = LogFiles(tmp_path / "log.properties", tmp_path / "gc.log")
    before = node_command(installation, 0, tmp_path / "server.properties", files)
    installation.made.mkdir()
    archive_path(installation).touch()
    after = node_command(installation, 0, tmp_path / "server.properties", files)
    assert set(after) - set(before) == {f"-XX:SharedArchiveFile={archive_path(installation)}"}
    assert after[-2:] == ("kafka.Kafka", str(tmp_path / "server.properties"))


@pytest.mark.parametrize(("version", "reads"), [((4, 1, 1), "appender.out.layout"), ((3, 9, 1), "log4j.appender.out")])
def test_nodes_log_in_the_form_of_their_binding(tmp_path: Path, version, reads: str) -> None:
    files = LogFiles(tmp_path / "log.properties", tmp_path / "gc.log")
    files.write(Installation(Version(*version), tmp_path))
    assert reads in files.configuration.read_text()


def test_a_broker_is_told_the_rack_that_the_plan_names_else_one_of_its_own() -> None:
    """broker.rack: replicas alternate between racks (KIP-36)."""
    assert node_properties(BROKER, Settings(), brokers=3)["broker.rack"] == "r1"
    assert node_properties(msgspec.structs.replace(BROKER, rack="b"), Settings(), brokers=3)["broker.rack"] == "b"
    assert "broker.rack" not in node_properties(THE_CONTROLLER, Settings(), brokers=3)


def test_brokers_choose_the_follower_that_a_consumer_reads_from_where_the_plan_says_so() -> None:
    near = Settings(follower_fetching=True)
    chosen = node_properties(BROKER, near, brokers=3)["replica.selector.class"]
    assert chosen == "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    assert "replica.selector.class" not in node_properties(BROKER, Settings(), brokers=3)
    possible(near, Version(2, 4, 0), free=("truncation", *RULES_SINCE))
    with pytest.raises(PlanError, match=r"follower\.fetching=true is not how Apache Kafka 2\.3\.1 works"):
        possible(near, Version(2, 3, 1), free=("truncation", *RULES_SINCE))

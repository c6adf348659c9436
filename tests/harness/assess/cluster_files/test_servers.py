"""Files of brokers and containers are read by the rules of what starts these, and their values by Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.assess.configuration import OF_BROKERS, OF_TOPICS
from harness.assess.values import READ, understood
from harness.ground.errors import PlanError
from tests.harness.assess.cluster_files.reading import IN_SYNC, UNCLEAN, decided, read, unclear, with_listing

LOG = """\
[2026-11-02 10:00:00,000] INFO Registered signal handlers (kafka.Main$)
[2026-11-02 10:00:01,000] INFO KafkaConfig values:\x20
\tadvertised.listeners = PLAINTEXT://b-1.example:9092
\tbroker.rack = null
\tlog.cleanup.policy = [compact, delete]
\tmin.insync.replicas = 2
\tnode.id = 1
\tunclean.leader.election.enable = true
 (kafka.server.KafkaConfig)
[2026-11-02 10:00:02,000] INFO min.insync.replicas = 7 says nothing here
"""


@pytest.mark.parametrize(
    "text",
    [
        "min.insync.replicas=2\nunclean.leader.election.enable=true\n",
        "min.insync.replicas = 2 \r\nunclean.leader.election.enable: TRUE\r\n",
        "! old\nmin.insync.replicas 2\nunclean.leader.election.enable\\\n   =True\n",
        "# a comment \\\nmin.insync.replicas=+2\n\nunclean.leader.election.enable=true\t\n",
        "min.insync.replicas=1\nmin.insync.replicas=2\nunclean.leader.election.enable=\\u0074rue\n",
        LOG,
        LOG + LOG.replace("min.insync.replicas = 2", "min.insync.replicas = 2"),
        "KAFKA_NODE_ID=1\nKAFKA_MIN_INSYNC_REPLICAS=2\n# c\nKAFKA_UNCLEAN_LEADER_ELECTION_ENABLE=true\n",
        "export KAFKA_CFG_NODE_ID=1\nKAFKA_CFG_MIN_INSYNC_REPLICAS=2\nKAFKA_CFG_UNCLEAN_LEADER_ELECTION_ENABLE=true\n",
    ],
)
def test_every_form_of_a_servers_file_says_the_same(text: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "server", text)
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}
    assert not unclear(cluster)


def test_a_log_with_names_of_containers_is_read(tmp_path: Path) -> None:
    text = "".join(f"broker-1  | {line}\n" for line in LOG.splitlines())
    assert decided(with_listing(tmp_path, "compose.log", text), IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}


@pytest.mark.parametrize(
    "before", ["pod/b-0 kafka ", "2026-11-02 10:00:01,000 INFO [main] ", "Nov 02 10:00:01 host kafka[7]: "]
)
def test_a_log_with_words_before_every_line_is_read(before: str, tmp_path: Path) -> None:
    text = "".join(f"{before}{line}\n" for line in LOG.splitlines())
    assert decided(with_listing(tmp_path, "journal.log", text), IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}


@pytest.mark.parametrize("name", [IN_SYNC, UNCLEAN])
def test_a_byte_order_mark_is_a_part_of_the_first_name(name: str, tmp_path: Path) -> None:
    values = {IN_SYNC: "2", UNCLEAN: "true"}
    text = f"\ufeff{name}={values[name]}\nnode.id=1\nlog.dirs=/d\n"
    cluster = with_listing(tmp_path, "server.properties", text)
    assert decided(cluster, name) == {name: OF_TOPICS[name].default}
    assert unclear(cluster) == {name}


def test_a_byte_order_mark_before_a_comment_hides_nothing(tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "server.properties", f"\ufeff# node 1\nnode.id=1\n{IN_SYNC}=2\n")
    assert decided(cluster, IN_SYNC) == {IN_SYNC: "2"}
    assert not unclear(cluster)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_properties_in_utf_16_are_refused(encoding: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="UTF-16"):
        with_listing(tmp_path, "server.properties", f"node.id=1\n{IN_SYNC}=2\n".encode(encoding))


def test_a_file_without_a_number_stands_in_for_every_broker_that_has_none(tmp_path: Path) -> None:
    files = {
        "all.properties": "broker.id=-1\nmin.insync.replicas=2\n",
        "one.properties": "broker.id=1\n" + f"{IN_SYNC}=3\n",
    }
    cluster = read(tmp_path, {"topics.txt": _listed("orders"), **files})
    assert (cluster.brokers, cluster.differing[IN_SYNC], decided(cluster, IN_SYNC)) == (3, ("2", "3"), {IN_SYNC: "2"})


def test_of_a_log_the_last_start_counts(tmp_path: Path) -> None:
    text = LOG.replace("min.insync.replicas = 2", "min.insync.replicas = 1") + LOG
    assert decided(with_listing(tmp_path, "server.log", text), IN_SYNC) == {IN_SYNC: "2"}


@pytest.mark.parametrize(
    ("line", "name", "why"),
    [
        ('min.insync.replicas="2"', IN_SYNC, "quotes"),
        ("min.insync.replicas=2  # two copies", IN_SYNC, "comment"),
        ("min.insync.replicas=${env:MIN_ISR}", IN_SYNC, "filled in elsewhere"),
        ("min.insync.replicas={{ min_isr }}", IN_SYNC, "filled in elsewhere"),
        ("min.insync.replicas=2.0", IN_SYNC, "whole number"),
        ("min.insync.replicas=0", IN_SYNC, "no value below 1"),
        ("min.insync.replicas=99999999999", IN_SYNC, "beyond"),
        ("unclean.leader.election.enable='false'", UNCLEAN, "quotes"),
        ("unclean.leader.election.enable=no", UNCLEAN, "true or false"),
        ("unclean.leader.election.enable=0", UNCLEAN, "true or false"),
        ("log.retention.hours=7d", "log.retention.hours", "whole number"),
        ("log.retention.ms=1_000", "log.retention.ms", "whole number"),
        ("log.cleanup.policy=compacted", "log.cleanup.policy", "not one of delete, compact"),
        ("min.insync.replica=2", IN_SYNC, "no such setting"),
        ("min.in.sync.replicas=2", IN_SYNC, "no such setting"),
        ("kafka.min.insync.replicas=2", IN_SYNC, "no such setting"),
        ("spring.kafka.unclean.leader.election.enable=true", UNCLEAN, "no such setting"),
        ("KAFKA_MIN_INSYNC_REPLICAS=2", IN_SYNC, "no such setting"),
        ("retention.ms=1000", "log.retention.ms", "no such setting"),
        ("process.roles=${env:ROLES}", "process.roles", "filled in elsewhere"),
    ],
)
def test_what_is_no_value_is_said_with_its_place(line: str, name: str, why: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "server.properties", f"# one\nlisteners=PLAINTEXT://:9092\n{line}\n")
    said = {each.name: each for each in (*cluster.not_understood, *cluster.topics[0].not_understood)}
    assert said.keys() == {name}
    assert said[name].where == f"{tmp_path / 'server.properties'}, line 3"
    assert why in said[name].why


@pytest.mark.parametrize("value", ["", "null", "None", " ", "NULL"])
def test_what_is_not_set_has_its_default_and_no_word(value: str, tmp_path: Path) -> None:
    lines = [f"{name}={value}" for name in (IN_SYNC, UNCLEAN, "broker.rack", "log.retention.ms")]
    text = "\n".join(["node.id=1", *lines])
    cluster = with_listing(tmp_path, "server.properties", text)
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "1", UNCLEAN: "false"}
    assert (cluster.topics[0].racks, unclear(cluster), cluster.settings) == (None, set(), {})


def test_a_topics_own_value_is_not_touched_by_what_a_broker_has_wrong(tmp_path: Path) -> None:
    configs = "Dynamic configs for topic orders are:\n  min.insync.replicas=2 sensitive=false synonyms={}\n"
    server = "node.id=1\nmin.insync.replicas=two\n"
    cluster = read(tmp_path, {"server": server, "configs": configs, "topics": _listed("orders") + _listed("other")})
    orders, other = cluster.topics
    assert (orders.settings, orders.not_understood) == ({IN_SYNC: "2"}, ())
    assert [each.name for each in other.not_understood] == [IN_SYNC]


def _listed(topic: str) -> str:
    return f"Topic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"


def test_names_of_vendors_and_of_others_are_said_as_unknown_and_decide_nothing(tmp_path: Path) -> None:
    text = "node.id=1\nconfluent.balancer.topic.min.insync.replicas=2\nour.own=3\nmin.insync.replicas=2\n"
    cluster = with_listing(tmp_path, "server.properties", text)
    assert not unclear(cluster)
    assert {"our.own", "confluent.balancer.topic.min.insync.replicas"} <= set(cluster.given["broker"])


def test_it_is_written_how_kafka_reads_each_setting_that_decides() -> None:
    deciding = {*OF_BROKERS, *OF_TOPICS, *(name for each in OF_TOPICS.values() for name in each.brokers)}
    assert deciding <= READ


def test_every_default_is_a_value_that_kafka_takes() -> None:
    defaults = OF_BROKERS | {name: inherited.default for name, inherited in OF_TOPICS.items()}
    assert {name: understood(name, text) or "" for name, text in defaults.items()} == defaults

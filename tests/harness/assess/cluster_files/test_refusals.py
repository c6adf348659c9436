"""Texts of other programs are refused by name, with what to give instead, and no text is tried as something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.ground.errors import PlanError
from tests.harness.assess.cluster_files.reading import LISTING, decided, read, with_listing

KCAT = """\
Metadata for all topics (from broker 1: b-1.example:9092/1):
 3 brokers:
  broker 1 at b-1.example:9092 (controller)
 1 topics:
  topic "orders" with 1 partitions:
    partition 0, leader 1, replicas: 1,2,3, isrs: 1,2,3
"""
KCAT_JSON = '{"originating_broker":{"id":1},"query":{"topic":"*"},"controllerid":1,"brokers":[{"id":1}],"topics":[]}'
RPK = """\
SUMMARY
=======
NAME        orders
PARTITIONS  3

CONFIGS
=======
KEY                    VALUE   SOURCE
min.insync.replicas    2       DYNAMIC_TOPIC_CONFIG
"""
RPK_CONFIGS = "KEY                 VALUE  SOURCE\nmin.insync.replicas 2      DYNAMIC_TOPIC_CONFIG\n"
RPK_LIST = "NAME    PARTITIONS  REPLICAS\norders  3           3\n"
CONFLUENT = """\
+---------------------+--------+
| Name                | orders |
| Replication Factor  | 3      |
+---------------------+--------+
"""
CONFLUENT_ROWS = (
    "  Topic  | Partition | Leader | Replicas |   ISR\n  orders |         0 |      1 | [1 2 3]  | [1 2 3]\n"
)
REST = '{"kind":"KafkaTopicConfigList","metadata":{},"data":[{"name":"min.insync.replicas","value":"2"}]}'
HELM = """\
replicaCount: 3
config: |-
  min.insync.replicas=2
extraEnvVars: []
controller:
  replicaCount: 3
"""
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\ndata:\n  server.properties: {{ .Values.minIsr }}\n  x: {{ y\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("kcat.txt", KCAT, "kcat"),
        ("kcat-one.txt", KCAT.replace("all topics", "orders"), "kcat"),
        ("kcat.json", KCAT_JSON, "kcat"),
        ("rpk.txt", RPK, "rpk"),
        ("rpk-configs.txt", RPK_CONFIGS, "rpk"),
        ("rpk-list.txt", RPK_LIST, "rpk"),
        ("confluent.txt", CONFLUENT, "Confluent"),
        ("rows.txt", CONFLUENT_ROWS, "Confluent"),
        ("rest.json", REST, "Confluent"),
        ("values.yaml", HELM, "Helm"),
        ("template.yaml", TEMPLATE, "not YAML"),
        ("connect.yaml", "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaConnect\nspec: {}\n", "KafkaConnect"),
        ("move.json", '{"version":1,"topics":[{"topic":"orders"}]}', "--generate"),
        ("proposed.txt", "Proposed partition reassignment configuration\n{}\n", "Current partition replica assignment"),
        ("answer.json", '{"source":"x","groups":[]}', "--save"),
        ("page.html", "<html><body>min.insync.replicas = 2</body></html>", "page"),
        ("producer.log", "INFO ProducerConfig values: \n\tacks = 1\n", "--producer"),
        ("groups.txt", "GROUP TOPIC PARTITION CURRENT-OFFSET\ng orders 0 5\n", "kafka-consumer-groups.sh"),
        ("mail.txt", "we set min.insync.replicas=2 everywhere\nso all is well\n", "not every line is an entry"),
        ("notes.md", "# Settings\n\n- min.insync.replicas: 2\n", "not every line is an entry"),
        (
            "script.sh",
            "kafka-configs.sh --alter \\\n --add-config min.insync.replicas=2\n",
            "not every line is an entry",
        ),
        ("part.txt", "brokers have\nmin.insync.replicas=2\n", "not every line is an entry"),
        ("mail.eml", "To: all\nSubject: brokers\nmin.insync.replicas=2\n", "no broker has 2, To among them"),
        ("cut.log", "INFO KafkaConfig values: \nINFO next\n", "no settings are below"),
        ("producer.properties", "acks=1\nlinger.ms=5\n", "no setting of a broker"),
        ("newer.json", '{"source":"x","topics":[],"soon":1}', "does not know"),
    ],
)
def test_another_kind_of_file_is_refused_with_what_it_is(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        with_listing(tmp_path, name, text)
    assert str(tmp_path / name) in str(caught.value)
    assert "kafka-topics.sh --describe" in str(caught.value)


def test_a_saved_cluster_is_whole_and_takes_no_other_file(tmp_path: Path) -> None:
    saved = '{"source":"x","topics":[{"name":"t","partitions":1,"replicas":3}]}'
    for files in ({"a.json": saved, "topics.txt": LISTING}, {"topics.txt": LISTING, "a.json": saved}):
        with pytest.raises(PlanError, match="name it alone"):
            read(tmp_path, files)


def test_values_of_a_saved_cluster_are_held_against_kafka_too(tmp_path: Path) -> None:
    topic = '{"name":"t","partitions":1,"replicas":3,"settings":{"min.insync.replicas":"two"}}'
    settings = '{"unclean.leader.election.enable":"TRUE","broker.rack":"null"}'
    cluster = read(tmp_path, {"a.json": f'{{"source":"x","topics":[{topic}],"settings":{settings}}}'})
    assert [each.name for each in cluster.topics[0].not_understood] == ["min.insync.replicas"]
    assert cluster.settings == {"unclean.leader.election.enable": "true"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_a_listing_in_any_encoding_with_a_mark_is_read(encoding: str, tmp_path: Path) -> None:
    text = LISTING.replace("segment.bytes=1073741824", "min.insync.replicas=2")
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    cluster = read(tmp_path, {"topics.txt": mark + text.encode(encoding)})
    assert decided(cluster, "min.insync.replicas") == {"min.insync.replicas": "2"}


def test_a_file_in_utf_16_without_a_mark_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="UTF-16"):
        read(tmp_path, {"topics.txt": LISTING.encode("utf-16-le")})


def test_latin_1_in_comments_hides_nothing(tmp_path: Path) -> None:
    text = "# f\xfcr alle\nmin.insync.replicas=2\n".encode("latin-1")
    cluster = with_listing(tmp_path, "server.properties", text)
    assert decided(cluster, "min.insync.replicas") == {"min.insync.replicas": "2"}

"""YAML and JSON of operators and containers: every value as it is written, or not understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.assess.cluster_files.yaml_texts import documents_in
from harness.ground.errors import PlanError
from tests.harness.assess.cluster_files.reading import IN_SYNC, UNCLEAN, decided, read, unclear, with_listing

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata:
  name: events
spec:
  kafka:
    config:
      min.insync.replicas: 2
      unclean.leader.election.enable: true
"""
QUOTED = STRIMZI.replace(": 2", ': "2"').replace("enable: true", "enable: 'True' # said")
FLOW = """\
---
{apiVersion: kafka.strimzi.io/v1, kind: Kafka, metadata: {name: events},
 spec: {kafka: {config: {min.insync.replicas: 2, unclean.leader.election.enable: true}}}}
---
apiVersion: v1
kind: Service
"""
COMPOSE = """\
x-common: &common
  KAFKA_MIN_INSYNC_REPLICAS: "1"
  KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE: "true"
services:
  schema-registry:
    image: confluentinc/cp-schema-registry:7.9.0
    environment:
      SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS: broker:9092
  broker:
    image: confluentinc/cp-kafka:7.9.0
    environment:
      <<: *common
      KAFKA_NODE_ID: 1
      KAFKA_MIN_INSYNC_REPLICAS: 2
      KAFKA_HEAP_OPTS: -Xmx1G
"""
COMPOSE_LIST = """\
services:
  kafka-2:
    image: bitnami/kafka:3.9
    environment:
      - KAFKA_CFG_NODE_ID=2
      - KAFKA_CFG_PROCESS_ROLES=controller,broker
      - KAFKA_CFG_MIN_INSYNC_REPLICAS=2
      - KAFKA_CFG_UNCLEAN_LEADER_ELECTION_ENABLE=true
"""
STATEFUL = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kafka}
spec:
  template:
    spec:
      containers:
        - name: kafka
          image: apache/kafka:4.1.0
          env:
            - {name: KAFKA_LISTENERS, value: "PLAINTEXT://:9092"}
            - name: KAFKA_MIN_INSYNC_REPLICAS
              value: "2"
            - {name: KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE, value: "true"}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: kafka-config}
data:
  log4j.properties: |
    log4j.rootLogger=INFO
  server.properties: |
    # made by a chart
    node.id=2
    min.insync.replicas=2
    unclean.leader.election.enable=true
"""
CONFLUENT = """\
apiVersion: platform.confluent.io/v1beta1
kind: Kafka
metadata: {name: kafka}
spec:
  replicas: 3
  configOverrides:
    server:
      - min.insync.replicas=2
      - unclean.leader.election.enable=true
"""
INSPECTED = json.dumps(
    [{"Name": "/b", "Config": {"Image": "apache/kafka:4.1.0", "Env": [
        "PATH=/bin", "KAFKA_NODE_ID=1", "KAFKA_MIN_INSYNC_REPLICAS=2", "KAFKA_UNCLEAN_LEADER_ELECTION_ENABLE=true"]}}]
)  # fmt: skip


def _as_json(text: str) -> str:
    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items()}
        return {"2": 2, "true": True}.get(str(value), str(value))

    (document,) = documents_in(text)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [plain(document)]})


@pytest.mark.parametrize(
    "text",
    [STRIMZI, QUOTED, FLOW, _as_json(STRIMZI), STRIMZI.replace("\n", "\r\n"), COMPOSE, COMPOSE_LIST, STATEFUL,
     CONFIG_MAP, CONFLUENT, INSPECTED],
)  # fmt: skip
def test_every_form_says_the_same(text: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "kafka.yaml", text)
    assert decided(cluster, IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}
    assert (unclear(cluster), cluster.brokers) == (set(), 3)


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (": 2", ": 0x2", IN_SYNC),
        (": 2", ": 02", IN_SYNC),
        (": 2", ": 2.0", IN_SYNC),
        (": 2", ": [2]", IN_SYNC),
        (": 2", ": ${MIN_ISR}", IN_SYNC),
        (": 2", ": '{{ .Values.minIsr }}'", IN_SYNC),
        ("enable: true", "enable: yes", UNCLEAN),
        ("enable: true", "enable: on", UNCLEAN),
        ("min.insync.replicas: 2", "kafka.min.insync.replicas: 2", IN_SYNC),
    ],
)
def test_what_yaml_or_a_template_makes_of_it_is_not_guessed(before: str, after: str, name: str, tmp_path: Path) -> None:
    cluster = with_listing(tmp_path, "kafka.yaml", STRIMZI.replace(before, after))
    assert unclear(cluster) == {name}


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ("KAFKA_MIN_INSYNC_REPLICAS: 2", "KAFKA_MIN_INSYNC_REPLICAS: ${ISR:-2}", {IN_SYNC}),
        ("KAFKA_MIN_INSYNC_REPLICAS: 2", "KAFKA_MIN_INSYNC_REPLICAS: $ISR", {IN_SYNC}),
        ("KAFKA_NODE_ID: 1", "MIN_INSYNC_REPLICAS: 2", {IN_SYNC}),
        ("cp-kafka:7.9.0", "cp-kafka:7.9.0\n    env_file: kafka.env", {""}),
        ("cp-kafka:7.9.0", "cp-kafka:7.9.0\n    extends: {service: base}", {""}),
        ("cp-kafka:7.9.0", "cp-kafka:7.9.0\n    volumes: ['./server.properties:/etc/kafka/kafka.properties']", {""}),
        ("confluentinc/cp-kafka:7.9.0", "bitnami/kafka:3.9", {IN_SYNC, UNCLEAN}),
    ],
)
def test_what_a_container_has_from_elsewhere_is_said(before: str, after: str, names: set[str], tmp_path: Path) -> None:
    assert unclear(with_listing(tmp_path, "compose.yaml", COMPOSE.replace(before, after))) == names


def test_a_variable_whose_value_is_in_another_object_is_said(tmp_path: Path) -> None:
    text = STATEFUL.replace('value: "2"', "valueFrom: {configMapKeyRef: {name: a, key: b}}")
    assert unclear(with_listing(tmp_path, "kafka.yaml", text)) == {IN_SYNC}
    text = STATEFUL.replace("          env:", "          envFrom: [{configMapRef: {name: a}}]\n          env:")
    assert unclear(with_listing(tmp_path, "kafka.yaml", text)) == {""}


@pytest.mark.parametrize(
    "words",
    ["sh -c 'exec kafka-server-start.sh s.properties --override min.insync.replicas=3'",
     "[kafka-server-start.sh, s.properties, --override, min.insync.replicas=3]"],
)  # fmt: skip
def test_values_that_a_command_overrides_count(words: str, tmp_path: Path) -> None:
    command = f"\n    command: {words}"
    text = COMPOSE.replace("cp-kafka:7.9.0", f"cp-kafka:7.9.0{command}")
    assert decided(with_listing(tmp_path, "compose.yaml", text), IN_SYNC) == {IN_SYNC: "3"}


TOPICS = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: orders, labels: {strimzi.io/cluster: events}}
spec:
  partitions: 12
  replicas: 3
  config: {min.insync.replicas: "2", retention.ms: 7200000}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: their-audit}
spec: {topicName: audit}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata: {name: brokers}
spec: {replicas: 3, roles: [broker]}
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata: {name: controllers}
spec: {replicas: 5, roles: [controller]}
"""


def test_topics_and_pools_are_read_and_controllers_are_no_brokers(tmp_path: Path) -> None:
    kafka = STRIMZI.replace("config:", "config:\n      default.replication.factor: 2")
    cluster = read(tmp_path, {"all.yaml": TOPICS + "---\n" + kafka})
    audit, orders = cluster.topics
    assert (orders.name, orders.partitions, orders.replicas) == ("orders", 12, 3)
    assert orders.settings == {IN_SYNC: "2", "retention.ms": "7200000"}
    assert (audit.name, audit.replicas, cluster.brokers) == ("audit", 2, 3)
    assert cluster.setting_of(audit, UNCLEAN) == "true"


def test_two_clusters_are_not_one(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="several clusters"):
        read(tmp_path, {"a.yaml": STRIMZI + "---\n" + STRIMZI.replace("events", "others")})


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="stands twice"):
        with_listing(tmp_path, "kafka.yaml", STRIMZI + "      min.insync.replicas: 3\n")


def test_aliases_of_aliases_do_not_grow(tmp_path: Path) -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40))
    with pytest.raises(PlanError, match="no known kind"):
        read(tmp_path, {"bomb.yaml": f"a0: &a0 [x]\n{levels}\n"})


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'echo {} >> /etc/kafka/server.properties; /run.sh'",
        '["sh", "-c", "sed -i s/^x.*/{}/ server.properties && run"]',
        "sh -c 'printf \"a=b\\n{}\\n\" > c; run'",
    ],
)
@pytest.mark.parametrize("key", ["command", "entrypoint"])
def test_what_a_command_writes_into_a_brokers_file_is_said(key: str, command: str, tmp_path: Path) -> None:
    text = f"services:\n  k:\n    environment: {{KAFKA_NODE_ID: 1}}\n    {key}: {command.format(UNCLEAN + '=true')}\n"
    assert unclear(with_listing(tmp_path, "compose.yml", text)) == {UNCLEAN}


@pytest.mark.parametrize("key", ["kafka.conf", "extra", "server.properties.tpl"])
def test_every_file_of_a_config_map_is_looked_at(key: str, tmp_path: Path) -> None:
    data = f"  server.properties: |\n    node.id=1\n    {IN_SYNC}=2\n  {key}: |\n    node.id=1\n    {UNCLEAN}=true\n"
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: k}}\ndata:\n{data}"
    assert decided(with_listing(tmp_path, "map.yml", text), IN_SYNC, UNCLEAN) == {IN_SYNC: "2", UNCLEAN: "true"}
    templated = with_listing(tmp_path, "map.yml", f"{text}    {{{{ if .Values.more }}}}\n")
    assert (decided(templated, IN_SYNC), unclear(templated)) == ({IN_SYNC: "2"}, {UNCLEAN})


def test_a_topic_of_confluents_operator_is_read(tmp_path: Path) -> None:
    text = (
        "apiVersion: platform.confluent.io/v1beta1\nkind: KafkaTopic\nmetadata: {name: orders-1}\n"
        f"spec:\n  name: orders.1\n  replicas: 3\n  partitionCount: 6\n  configs:\n    {IN_SYNC}: '2'\n"
    )
    cluster = read(tmp_path, {"topic.yml": text})
    assert [(each.name, each.partitions, each.replicas) for each in cluster.topics] == [("orders.1", 6, 3)]
    assert decided(cluster, IN_SYNC) == {IN_SYNC: "2"}


def test_a_name_in_parts_is_no_setting_of_strimzis_and_is_said(tmp_path: Path) -> None:
    text = (
        "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nspec:\n  kafka:\n    config:\n      min: {insync.replicas: 2}\n"
    )
    assert unclear(with_listing(tmp_path, "kafka.yml", text)) == {IN_SYNC}


@pytest.mark.parametrize(
    ("key", "mounts", "said"),
    [
        ("volumes", "['./config:/mnt/shared/config']", True),
        ("volumes", "['./k:/etc/kafka:ro']", True),
        ("volumes", "[{type: bind, source: ./k, target: /opt/bitnami/kafka/config}]", True),
        ("configs", "[{source: s, target: /opt/kafka/config/server.properties}]", True),
        ("volumes", "['data:/var/lib/kafka/data', './l:/opt/kafka/config/log4j.properties']", False),
        ("volumes", "['./certs:/etc/kafka/secrets', 'data:/bitnami/kafka']", False),
    ],
)
def test_files_of_settings_that_are_mounted_are_said(key: str, mounts: str, said: bool, tmp_path: Path) -> None:
    text = f"services:\n  k:\n    environment: {{KAFKA_NODE_ID: 1}}\n    {key}: {mounts}\n"
    assert unclear(with_listing(tmp_path, "compose.yml", text)) == ({""} if said else set())


def test_files_that_are_mounted_into_a_pod_are_said(tmp_path: Path) -> None:
    text = "kind: Pod\nspec:\n  containers:\n  - env: [{name: KAFKA_NODE_ID, value: '1'}]\n    volumeMounts:\n"
    mounted = text + "    - {name: c, mountPath: /mnt/shared/config}\n"
    assert unclear(with_listing(tmp_path, "pod.yml", mounted)) == {""}
    assert not unclear(with_listing(tmp_path, "pod.yml", text + "    - {name: d, mountPath: /var/lib/kafka}\n"))

"""Clients in the forms that people have: read as the client takes them, or what was not understood is said."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from harness import assess as assessing
from harness.assess import Client, Performer, clients_named
from harness.assess.client_settings import effective
from harness.cli.app import exit_code_of
from harness.ground.errors import EXIT_BROKEN, EXIT_HELD, EXIT_UNKNOWN, PlanError

TOPICS: Final = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: 0\tReplicas: 0,1,2\tIsr: 0,1,2\n"
)
BLOCK: Final = (
    "\tacks = {acks}\n\tclient.id = {client}\n\tenable.idempotence = {idempotent}\n"
    "\tmax.in.flight.requests.per.connection = 5\n\tretries = 2147483647\n\ttransactional.id = {transactional}\n"
)


def block(acks: str, *, client: str = "a", idempotent: str = "false", transactional: str = "null") -> str:
    return BLOCK.format(acks=acks, client=client, idempotent=idempotent, transactional=transactional)


class Case(NamedTuple):
    """A file, and the outcome: settings of its first client, and names that are not understood."""

    name: str
    text: str
    settings: dict[str, str]
    unclear: frozenset[str] = frozenset()
    option: str = "--producer"
    library: str = ""


def producers(case: Case, tmp_path: Path) -> list[Client]:
    file = tmp_path / case.name
    file.write_text(case.text)
    return clients_named([str(file)], case.option, case.library)


CONSUMER: Final = "--consumer"
ONE: Final = {"acks": "1"}
IN_LOGS: Final = (
    Case("a.log", f"[2026-05-04 10:11:12,131] INFO ProducerConfig values:\n{block('1')} (o.a.k.ProducerConfig)\n", ONE),
    Case("b.log", f"10:11 [main] INFO o.a.k.ProducerConfig - ProducerConfig values: \n{block('0')}\n", {"acks": "0"}),
    Case(
        "c.log",
        '{"message": "ProducerConfig values: \\n' + block("1").replace("\n", "\\n").replace("\t", "\\t") + '"}',
        ONE,
    ),
    Case("d.log", "".join(f"app-1  | {line}\n" for line in f"ProducerConfig values:\n{block('1')}".splitlines()), ONE),
    Case("e.log", f"ConsumerConfig values:\n\tgroup.id = g\n\nProducerConfig values:\n{block('1')}", ONE),
    Case("pasted.properties", block("1", transactional="None"), ONE),
    Case("pasted.txt", block("1", transactional=""), ONE),
    Case(
        "cut.log",
        "ProducerConfig values:\n\tacks = all\n",
        {"acks": "all"},
        frozenset({"enable.idempotence", "retries"}),
    ),
    Case("noted.log", "ProducerConfig values:\n\tacks = 1 # why?\n", {}, frozenset({"acks"})),
    Case(
        "3.1.0.log",
        f"Kafka version: 3.1.0\nProducerConfig values:\n{block('-1', idempotent='true')}",
        {"acks": "-1"},
        frozenset({"enable.idempotence"}),
    ),
)
#: Releases 3.0.0 and 3.1.0 log idempotence also where it is off; a log that does not tell its release may be of them.
OF_UNKNOWN_RELEASES: Final = (
    Case("1.log", f"ProducerConfig values:\n{block('1', idempotent='true')}", ONE, frozenset({"enable.idempotence"})),
    *(
        Case(
            f"{version}.log",
            f"ProducerConfig values:\n{block('-1', idempotent='true')}Kafka version: {version}\n",
            {"acks": "-1"},
            frozenset({"enable.idempotence"}),
        )
        for version in ("7.1.0-ccs", "7.0.0-ce", "3.1.0.redhat-00001", "3.1.0\nKafka version: 3.6.1")
    ),
    Case(
        "named.log",
        f"ProducerConfig values:\n{block('-1', idempotent='true')}Kafka version: 7.1.1-ccs\n",
        {"acks": "-1", "enable.idempotence": "true"},
        library="java:3.1.1",
    ),
)
_APP: Final = "services:\n  app:\n    environment:\n      SPRING_KAFKA_BOOTSTRAP_SERVERS: b\n"
_POD: Final = "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - env:\n    - {name: KAFKA_LINGER_MS, value: '5'}\n"
_OPAQUE: Final = "kind: Secret\napiVersion: v1\n"
_MAP: Final = "kind: ConfigMap\n  apiVersion: v1\n  data:\n    a.properties: |\n      acks=1\n"
#: The settings of a container may be in the words that start it, and in files beside it.
OF_CONTAINERS: Final = (
    *(
        Case(f"{number}.yml", text, {}, frozenset({"acks"}))
        for number, text in enumerate(
            (
                f"{_APP}    command: [java, -Dspring.kafka.producer.acks=1, -jar, a.jar]\n",
                f"{_APP}    entrypoint: java -jar a.jar --spring.kafka.producer.acks=1\n",
                f"{_APP}    command: sh -c 'KAFKA_ACKS=1 ./run'\n",
                f"{_APP}      JAVA_TOOL_OPTIONS: -Xmx1g -Dspring.kafka.producer.acks=1\n",
                f'{_APP}      SPRING_APPLICATION_JSON: \'{{"spring.kafka.producer.acks":"1"}}\'\n',
                f"{_APP}    env_file: app.env\n",
                f"{_APP}    env_file:\n    - path: app.env\n",
                f"{_APP}    extends: {{file: common.yml, service: app}}\n",
                f"{_APP}    volumes: ['./certs:/certs', './application.yml:/app/config/application.yml:ro']\n",
                f"{_POD}    volumeMounts:\n    - {{name: x, mountPath: /app/config}}\n",
                f"{_POD}    args: [--kafka.producer.acks=1]\n",
                f"{_POD}    envFrom:\n    - configMapRef: {{name: x}}\n",
            )
        )
    ),
    Case("secret.yml", f"{_OPAQUE}stringData: {{KAFKA_LINGER_MS: '5'}}\ndata:\n  a.properties: YWNrcz0xCg==\n", ONE),
    Case("secret2.yml", f"{_OPAQUE}data:\n  KAFKA_ACKS: MQ==\n", ONE),
    Case("secret3.yml", f"{_OPAQUE}data:\n  KAFKA_ACKS: /w==\n", {}, frozenset({"acks"})),
    Case("data.yml", f"{_APP}    volumes: ['data:/var/lib/app', './l:/app/config/logback.xml']\n", {}),
    Case("idle.yml", f"{_APP}    command: java -jar a.jar --server.port=1\n", {}),
    Case(
        "said.yml",
        f"{_APP}      SPRING_KAFKA_PRODUCER_ACKS: 1\n    env_file: app.env\n",
        ONE,
        frozenset({"enable.idempotence", "retries"}),
    ),
    Case("list.yml", f"apiVersion: v1\nkind: List\nitems:\n- {_MAP}", ONE),
    Case("maps.yml", f"kind: ConfigMapList\napiVersion: v1\nitems:\n- {_MAP}- {_MAP}", ONE),
    Case("jvm.properties", "org.gradle.jvmargs=-Dspring.kafka.producer.acks=1\n", {}, frozenset({"acks"})),
)
INSIDE: Final = (
    Case("a.json", '{"bootstrap.servers": "b", "default.topic.config": {"acks": 1, "message.timeout.ms": 3000}}', ONE),
    Case("b.json", '{"bootstrap.servers": "b", "default_topic_conf": {"request.required.acks": 1}}', ONE),
    Case("c.properties", "bootstrap.servers=b\ndefault.topic.config={'acks': 1, 'message.timeout.ms': 3000}\n", ONE),
    Case("d.txt", "{'bootstrap.servers': 'b', 'default.topic.config': {'acks': 1}, 'transactional.id': None}", ONE),
    Case("e.txt", "{\n  'bootstrap.servers': 'b',\n  topic: { acks: 1 },\n}", ONE),
    Case("f.conf", "bootstrap.servers=b\ntopic.acks=1\n", ONE),
    Case("g.json", '{"producer": {"acks": 1}, "consumer": {"group.id": "g"}}', ONE),
    Case("h.json", '{"conf": {"producer": {"default.topic.config": {"acks": "1"}}}}', ONE),
    Case("i.json", '{"bootstrap.servers": "b", "config": [{"key": "acks", "value": "1"}]}', ONE),
    Case("j.properties", "bootstrap.servers=b\ndefault.topic.config=map[acks:1]\n", {}, frozenset({"acks"})),
    Case("k.json", '{"acks": "all", "default.topic.config": {"acks": 1}}', {}, frozenset({"acks"})),
    Case("l.json", '{"bootstrap.servers": "b", "topics": {"orders": {"acks": 1}}}', {}, frozenset({"acks"})),
    Case("m.json", '{"bootstrap.servers": "b", "options": "acks=1"}', {}, frozenset({"acks"})),
    Case("n.json", '{"acks": 1, "acks": "all"}', {}, frozenset({"acks"})),
)
NOT_SET: Final = (
    Case("a.properties", "acks=1\ntransactional.id=\n", ONE),
    Case("b.properties", "acks=1\ntransactional.id = null\n", ONE),
    Case("c.json", '{"acks": 1, "transactional.id": null}', ONE),
    Case("d.yml", "acks: 1\ntransactional.id: ~\n", ONE),
    Case("e.json", '{"bootstrap.servers": "b", "acks": null}', {}),
    Case("f.properties", "bootstrap.servers=b\nacks=\n", {}, frozenset({"acks"})),
    Case("g.properties", "bootstrap.servers=b\nenable.idempotence=None\n", {}, frozenset({"enable.idempotence"})),
    Case("h.properties", "group.id=\nauto.offset.reset=none\n", {"auto.offset.reset": "none"}, option=CONSUMER),
)
NO_VALUES: Final = (
    Case("a.properties", 'acks="1"\n', {}, frozenset({"acks"})),
    Case("b.properties", "acks=1  # the leader\n", {}, frozenset({"acks"})),
    Case("c.properties", "acks=${env:ACKS}\n", {}, frozenset({"acks"})),
    Case("d.properties", "acks={{ .Values.acks }}\n", {}, frozenset({"acks"})),
    Case("e.properties", "acks=ALL\n", {}, frozenset({"acks"})),
    Case("f.properties", "acks=ALL\n", {"acks": "all"}, library="librdkafka"),
    Case("g.properties", "enable.idempotence= TRUE \nacks=all\n", {"acks": "all", "enable.idempotence": "true"}),
    Case("h.properties", "enable.idempotence=yes\n", {}, frozenset({"enable.idempotence"})),
    Case("i.properties", "enable.idempotence=1\n", {"enable.idempotence": "true"}, library="librdkafka"),
    Case("j.properties", "retries=+3\nlinger.ms=007\n", {"retries": "3", "linger.ms": "7"}),
    Case("k.properties", "retries=3;\nlinger.ms=5ms\n", {}, frozenset({"retries", "linger.ms"})),
    Case("l.properties", "retries=2147483648\nacks=2\n", {}, frozenset({"retries", "acks"})),
    Case("m.properties", "linger.ms=0.5\n", {"linger.ms": "0.5"}, library="librdkafka:2.16.0"),
    Case("n.properties", "linger.ms=0.5\n", {}, frozenset({"linger.ms"}), library="java"),
    Case(
        "o.json",
        '{"queue.buffering.max.ms": 0.5, "message.timeout.ms": 3e5}',
        {"linger.ms": "0.5"},
        frozenset({"delivery.timeout.ms"}),
    ),
    Case("p.properties", "acks=all\ntransactional.id=${TX}\n", {"acks": "all"}, frozenset({"transactional.id"})),
    Case("q.properties", "transactional.id=orders-${HOST}\n", {"transactional.id": "orders-${HOST}"}),
    Case(
        "r.yml",
        "acks: all # strong\nretries: 010\nlinger.ms: !env L\n",
        {"acks": "all"},
        frozenset({"retries", "linger.ms"}),
    ),
    Case("s.properties", "isolation.level=committed\n", {}, frozenset({"isolation.level"}), CONSUMER),
)
SPRING: Final = (
    Case("null.yml", "spring.kafka.producer:\n  acks:\n  transaction-id-prefix:\n", {}, frozenset({"acks"})),
    Case("a.properties", "spring.kafka.producer.acks=1\nspring.kafka.consumer.group-id=g\n", ONE),
    Case("b.properties", "spring.kafka.producer.properties[acks]=1\nserver.port=1\n", ONE),
    Case("c.properties", "spring.kafka.properties.acks=0\nspring.kafka.producer.acks=1\n", ONE),
    Case("d.properties", "spring.kafka.producer.acks=all\nspring.kafka.producer.properties.acks=1\n", ONE),
    Case("e.yml", "spring.kafka:\n  producer:\n    acks: '1'\n    properties:\n      '[linger.ms]': 5\n", ONE),
    Case(
        "f.yml",
        "spring.kafka.producer:\n  properties:\n    max.in.flight:\n      requests.per.connection: 1\n  acks: 1\n",
        ONE,
    ),
    Case("g.properties", "spring.kafka.producer.transactionIdPrefix=tx-\n", {"transactional.id": "tx-"}),
    Case("h.env", "SPRING_KAFKA_PRODUCER_ACKS=1\nSPRING_KAFKA_PRODUCER_PROPERTIES_ENABLE_IDEMPOTENCE=false\n", ONE),
    Case(
        "i.yml",
        "spring:\n  kafka:\n    consumer:\n      isolation-level: READ_COMMITTED\n",
        {"isolation.level": "read_committed"},
        option=CONSUMER,
    ),
    Case(
        "j.yml",
        "spring:\n  kafka:\n    producer:\n      enable-idempotence: false\n",
        {},
        frozenset({"enable.idempotence"}),
    ),
    Case("k.yml", "spring:\n  kafka:\n    producer:\n      acks: ${ACKS:all}\n", {}, frozenset({"acks"})),
    Case(
        "l.yml",
        "spring.kafka.producer.acks: all\n---\nspring:\n  profiles: dev\n  kafka.producer.acks: 0\n",
        {},
        frozenset({"acks"}),
    ),
    Case(
        "m.properties",
        "spring.kafka.producer.acks=all\n#---\nspring.config.activate.on-profile=x\nspring.kafka.producer.acks=1\n",
        {},
        frozenset({"acks"}),
    ),
    Case(
        "n.yml",
        "spring:\n  cloud:\n    stream:\n      kafka:\n        binder:\n          required-acks: 1\n",
        {},
        frozenset({"acks"}),
    ),
    Case(
        "o.yml",
        "spring:\n  kafka.bootstrap-servers: b\n  cloud.stream:\n    bindings:\n      out: {destination: o}\n",
        {},
        frozenset({""}),
    ),
    Case("p.properties", "spring.kafka.bootstrap-servers=b\napp.kafka.producer.acks=1\n", {}, frozenset({"acks"})),
)
PREFIXES: Final = (
    Case(
        "worker.properties",
        "group.id=w\nkey.converter=x\nproducer.acks=1\nacks=0\n",
        ONE | {"enable.idempotence": "false"},
    ),
    Case(
        "standalone.properties",
        "offset.storage.file.filename=/o\nproducer.linger.ms=20\n",
        {"acks": "all", "enable.idempotence": "false"},
    ),
    Case(
        "sink.properties",
        "group.id=w\nkey.converter=x\nconsumer.auto.offset.reset=latest\n",
        {"auto.offset.reset": "latest"},
        option=CONSUMER,
    ),
    Case("worker.env", "CONNECT_GROUP_ID=w\nCONNECT_PRODUCER_ACKS=1\n", ONE | {"enable.idempotence": "false"}),
    Case(
        "worker.yaml",
        "kind: KafkaConnect\napiVersion: v1\nspec:\n  config:\n    producer.acks: 1\n",
        ONE | {"enable.idempotence": "false"},
    ),
    Case(
        "once.properties", "plugin.path=/p\nexactly.once.source.support=enabled\n", {"transactional.id": "of each task"}
    ),
    Case("no-worker.properties", "plugin.path=/p\nproducer.override.acks=1\n", {"acks": "all"}, frozenset({"acks"})),
    Case("slip.properties", "plugin.path=/p\nproducers.acks=1\n", {}, frozenset({"acks"})),
    Case(
        "connector.json",
        '{"name": "c", "config": {"connector.class": "x", "producer.override.acks": "1", "max.retries": "3"}}',
        ONE,
        frozenset({"enable.idempotence", "retries"}),
    ),
    Case("streams.properties", "application.id=a\nproducer.acks=1\nacks=all\n", ONE | {"linger.ms": "100"}),
    Case(
        "once.streams",
        "application.id=a\nprocessing.guarantee=exactly_once_v2\n",
        {"transactional.id": "a", "enable.idempotence": "true"},
    ),
    Case(
        "group.streams",
        "application.id=a\nmain.consumer.auto.offset.reset=latest\n",
        {"group.id": "a", "auto.offset.reset": "latest"},
        option=CONSUMER,
    ),
    Case(
        "mm2.properties", "clusters=A, B\nA->B.enabled=true\nB.producer.acks=1\n", ONE | {"enable.idempotence": "false"}
    ),
    Case("mm2b.properties", "clusters=A, B\nA->B.enabled=true\nA->B.producer.acks=1\n", {}, frozenset({"acks"})),
    Case("quarkus.properties", "mp.messaging.outgoing.o.connector=smallrye-kafka\nkafka.bootstrap.servers=b\n", ONE),
    Case(
        "quarkus2.properties",
        "mp.messaging.outgoing.o.acks=all\n%prod.mp.messaging.outgoing.o.acks=1\n",
        {},
        frozenset({"acks"}),
    ),
    Case("micronaut.yml", "kafka:\n  producers:\n    default:\n      acks: 1\n", ONE),
    Case("app.env", 'export KAFKA_PRODUCER_ACKS="1"\n# KAFKA_PRODUCER_ACKS=all\nAPP=x\n', ONE),
    Case("app2.env", "MY_KAFKA_PRODUCER_ACKS=1\n", {}, frozenset({"acks"})),
    Case(
        "compose.yml",
        "services:\n  k:\n    environment:\n      KAFKA_NODE_ID: 1\n  app:\n    environment:\n    - KAFKA_ACKS=1\n",
        ONE,
    ),
    Case(
        "pod.yml",
        "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - env:\n    - name: KAFKA_ACKS\n      value: '1'\n",
        ONE,
    ),
    Case(
        "secret.yml",
        "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - env:\n    - name: KAFKA_ACKS\n      valueFrom: {x: y}\n",
        {},
        frozenset({"acks"}),
    ),
    Case("map.yml", "kind: ConfigMap\napiVersion: v1\ndata:\n  p.properties: |\n    acks=1\n    linger.ms=5\n", ONE),
    Case("sections.ini", "[default]\nacks=1\n[consumer]\ngroup.id=g\n", ONE),
    Case("tables.toml", '[producer]\nacks = "1"\nretries = 3\n', ONE),
    Case("words.properties", "kafka.producer.acks=1\nkafka.consumer.group.id=g\n", ONE),
    Case("python.json", '{"bootstrap_servers": "b", "acks": 1, "linger_ms": 5}', ONE | {"linger.ms": "5"}),
    Case("beats.yml", "output.kafka:\n  required_acks: 1\n", {}, frozenset({"acks"})),
    Case(
        "sarama.yml",
        "producer:\n  requiredAcks: WaitForLocal\n  idempotent: false\n",
        {},
        frozenset({"acks", "enable.idempotence"}),
    ),
    Case(
        "slips.properties",
        "bootstrap.servers=b\nack=0\nenable.idempotance=false\n",
        {},
        frozenset({"acks", "enable.idempotence"}),
    ),
    Case(
        "settings.json",
        '{"Kafka": {"Producer": {"Acks": "Leader", "LingerMs": 5}}}',
        {},
        frozenset({"acks", "linger.ms"}),
    ),
    Case("producer.py", 'producer = KafkaProducer(bootstrap_servers="b", acks=1)\n', {}, frozenset({"acks"})),
    Case("start.sh", "kafka-console-producer.sh --producer-property acks=1\n", {}, frozenset({"acks"})),
    Case("kafka.properties", "kafka_producer_acks=1\nkafka_linger_ms=5\n", ONE | {"linger.ms": "5"}),
    Case("under.properties", "bootstrap.servers=b\nlinger_ms=5\n", {}, frozenset({"linger.ms"}), library="java"),
)


@pytest.mark.parametrize(
    "case",
    [*IN_LOGS, *OF_UNKNOWN_RELEASES, *OF_CONTAINERS, *INSIDE, *NOT_SET, *NO_VALUES, *SPRING, *PREFIXES],
    ids=lambda case: case.name,
)
def test_a_file_is_read_or_what_is_not_understood_is_said(case: Case, tmp_path: Path) -> None:
    client = producers(case, tmp_path)[0]
    assert case.settings.items() <= client.settings.items()
    assert {each.name for each in client.not_understood} >= case.unclear
    if not case.unclear:
        assert not client.not_understood
    assert ("transactional.id" in client.settings) == ("transactional.id" in case.settings)
    for each in client.not_understood:
        assert str(tmp_path / case.name) in each.where
        assert each.why


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Metadata for all topics (from broker 1: b:9092/1):\n 1 brokers:\n", "a listing of kcat -L"),
        ("BROKERS\n=======\nID    HOST\n0     b\n", "a listing of rpk"),
        ("KEY  VALUE  SOURCE\nretention.ms  1  DYNAMIC\n", "a listing of rpk"),
        (
            "    Name    | Value | Read-Only\n------------+-------+---\n  acks | 1 | no\n",
            "a table of the Confluent CLI",
        ),
        (TOPICS, "what kafka-topics.sh printed"),
        (
            "Dynamic configs for topic t are:\n  min.insync.replicas=2 sensitive=false\n",
            "what kafka-configs.sh printed",
        ),
        ("Configs for topic 't' are retention.ms=1\n", "what kafka-configs.sh printed"),
        ("<?xml version='1.0'?>\n<beans/>\n", "XML"),
        ("akka.kafka.producer {\n  kafka-clients {\n    acks = 1\n  }\n}\n", "HOCON"),
        ("replicaCount: 3\nimage:\n  tag: x\n", "has no setting of a client"),
        ("broker.id=1\nlog.dirs=/d\ncompression.type=producer\n", "of a broker, which is given as FILE"),
        ("some words without a setting\n", "has no setting of a client"),
        ("INFO KafkaConfig values: \n\tacks = 1\n", "a log without"),
        ("INFO ProducerConfig values: acks = 1 retries = 0\n", "each setting has a line of its own"),
        ("{", "is not JSON"),
        ("bootstrap.servers=b\nacks=\\u00\n", "no sign of Unicode"),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_with_its_kind(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(PlanError, match=said) as caught:
        clients_named([str(file)], "--producer")
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep.yml", "a: " + "[" * 3000),
        ("deep.yml", "\n".join(" " * depth + "a:" for depth in range(100)) + " 1"),
        ("deep.json", '{"a":' * 3000),
        ("deep.json", '{"acks":' * 100 + "1" + "}" * 100),
        ("round.yml", "a: &a\n  b: *a\nacks: 1\n"),
        (
            "wide.yml",
            "a: &a [x, y]\n"
            + "".join(
                f"{n}: &{n} {{p: *{b}, q: *{b}}}\n"
                for b, n in zip("abcdefghijklmnopq", "bcdefghijklmnopqr", strict=True)
            ),
        ),
        ("list.json", '[{"acks": 1}]'),
        ("text.yml", "only text\n"),
        ("tabs.yml", "a:\n\t- b\n"),
    ],
)
def test_a_text_that_would_never_end_or_has_no_table_is_refused(name: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(PlanError, match="cannot be understood"):
        clients_named([str(file)], "--producer")


def test_utf_16_is_refused_with_what_to_do_and_a_mark_before_a_name_is_said(tmp_path: Path) -> None:
    file = tmp_path / "p.properties"
    file.write_bytes("acks=1\n".encode("utf-16"))
    with pytest.raises(PlanError, match="save it as UTF-8, for example by iconv"):
        clients_named([str(file)], "--producer")
    file.write_bytes("acks=1\nretries=3\n".encode("utf-8-sig"))
    (client,) = clients_named([str(file)], "--producer")
    assert ({each.name for each in client.not_understood}, client.settings) == ({"acks"}, {"retries": "3"})
    file.write_bytes("# first\nacks=1\n".encode("utf-8-sig"))
    (client,) = clients_named([str(file)], "--producer")
    assert (client.not_understood, client.settings) == ((), ONE)


def test_each_client_of_a_file_is_one(tmp_path: Path) -> None:
    text = f"ProducerConfig values:\n{block('1')}ProducerConfig values:\n{block('all', client='b')}"
    several = {
        "a.log": (text + text, ["a", "b"]),
        "mm2.properties": ("clusters=A,B\nA->B.enabled=true\nA.producer.acks=1\nB.producer.acks=all\n", ["A", "B"]),
        "c.properties": ("mp.messaging.outgoing.x.acks=1\nmp.messaging.outgoing.y.acks=all\n", ["x", "y"]),
        "compose.yml": (
            "services:\n  one: {environment: {KAFKA_ACKS: 1}}\n  two: {environment: {KAFKA_ACKS: all}}\n",
            ["service one", "service two"],
        ),
    }
    for name, (content, labels) in several.items():
        clients = producers(Case(name, content, {}), tmp_path)
        assert [client.name for client in clients] == [f"{tmp_path / name} ({label})" for label in labels]
        assert [client.settings["acks"] for client in clients] == ["1", "all"]


def test_the_release_of_a_client_is_told_by_its_log(tmp_path: Path) -> None:
    (client,) = producers(Case("a.log", f"Kafka version: 2.8.1\nProducerConfig values:\n{block('1')}", {}), tmp_path)
    assert client.version == "2.8.1"
    (client,) = producers(
        Case("a.log", f"Kafka version : 1.1.0-cp1\nProducerConfig values:\n{block('1')}", {}), tmp_path
    )
    assert client.version == "", "a build of someone else"


def test_a_secret_of_a_file_is_in_no_word_of_it(tmp_path: Path) -> None:
    text = 'acks=all\nsasl.jaas.config=a password="hunter2";\nssl.key.pasword=hunter2\nack=0\n'
    (client,) = producers(Case("a.properties", text, {}), tmp_path)
    assert client.not_understood
    assert "hunter2" not in str(client)


@pytest.fixture(autouse=True)
def few_stories(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tell what is required here; the README's assessment performs all."""
    monkeypatch.setattr(assessing, "Performer", partial(Performer, only=("S01", "S07", "S22", "S40")))


def judged(tmp_path: Path, case: Case, *words: str) -> int:
    topics, file = tmp_path / "topics.txt", tmp_path / case.name
    topics.write_text(TOPICS)
    file.write_text(case.text)
    library = ["--client", case.library] if case.library else []
    release = ["--release", "4.1.0"] if "--release" not in words else []
    return exit_code_of(["assess", str(topics), case.option, str(file), *library, *release, *words])


LOSS: Final = ("--require", "no loss by kill")
TWICE: Final = ("--require", "no duplicates")


@pytest.mark.parametrize(
    ("case", "words", "code"),
    [
        (
            Case("p.properties", "bootstrap.servers=b\n", {}, library="java:3.1.0"),
            (*TWICE, "--release", "3.1.0"),
            EXIT_BROKEN,
        ),
        (
            Case("p.properties", "bootstrap.servers=b\n", {}, library="java:3.1.2"),
            (*TWICE, "--release", "3.1.0"),
            EXIT_HELD,
        ),
        (
            Case("p.properties", "bootstrap.servers=b\n", {}, library="java:3.1"),
            (*TWICE, "--release", "3.1.0"),
            EXIT_UNKNOWN,
        ),
        (Case("p.properties", "bootstrap.servers=b\n", {}, library="librdkafka:0.11.6"), LOSS, EXIT_BROKEN),
        (Case("a.log", f"ProducerConfig values:\n{block('1')}", {}), (*LOSS, *TWICE), EXIT_BROKEN),
        (Case("a.properties", "acks=1 # one\n", {}), LOSS, EXIT_UNKNOWN),
    ],
)
def test_a_requirement_is_met_only_where_all_is_understood(
    case: Case, words: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    assert judged(tmp_path, case, *words) == code


def test_a_worker_of_connect_is_judged_by_its_producers_and_not_by_its_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = "group.id=w\nkey.converter=x\noffset.storage.replication.factor=1\nproducer.acks=1\n"
    case = Case("worker.properties", worker, {})
    file = str(tmp_path / case.name)
    assert judged(tmp_path, case, "--consumer", file, *LOSS, "--details") == EXIT_BROKEN
    said = capsys.readouterr().out
    assert "offset.storage.replication.factor=1" in said
    assert "acks=1" in said
    assert "members as" not in said
    (consumer,) = clients_named([file], "--consumer")
    assert "group.id" not in consumer.settings


def test_half_a_millisecond_is_a_setting_of_librdkafka_and_of_no_other(tmp_path: Path) -> None:
    case = Case("p.properties", "linger.ms=0.5\nacks=all\nenable.idempotence=true\n", {}, library="librdkafka:2.16.0")
    assert judged(tmp_path, case, *TWICE) == EXIT_HELD
    assert effective(producers(case, tmp_path)[0])["linger.ms"] == "0.5"
    with pytest.raises(PlanError, match="whole number"):
        clients_named(["linger.ms=0.5"], "--producer", "java")


@pytest.mark.parametrize("library", ["java:3.9.2", "kafka-python:3.0.0"])
def test_a_name_of_another_library_is_not_known_to_decide_nothing(library: str, tmp_path: Path) -> None:
    """The file may be of that library, and the word of its user wrong; `java` only warns of a name that it lacks."""
    case = Case("p.properties", "request.required.acks=1\nenable.idempotence=true\n", {}, library=library)
    (producer,) = producers(case, tmp_path)
    assert [each.name for each in producer.not_understood if each.text == "request.required.acks=1"] == ["acks"]
    assert judged(tmp_path, case, *TWICE) == EXIT_UNKNOWN

"""Real clients against a running cluster of three brokers."""

import json
import shutil
import subprocess
from collections import Counter

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as ConfluentNewTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import KafkaError
from process_cluster import LIMIT_S, wait_for

pytestmark = pytest.mark.system
COUNT = 60


@pytest.fixture
def topic(cluster, request):
    """A topic of two partitions on all three brokers, named after the test."""
    name = request.node.name.replace("[", "-").replace("]", "")[:80]
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    admin.create_topics([NewTopic(name=name, num_partitions=2, replication_factor=3)])
    admin.close()
    cluster.wait_for_topic(name, 2)
    return name


def values(count=COUNT):
    return [b"value-%d" % number for number in range(count)]


def kafka_python_reads(cluster, topic, count=COUNT, **config):
    """(partition, offset, value) of ``count`` records."""
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(LIMIT_S * 1000),
        **config,
    )
    if "group_id" in config:
        consumer.subscribe([topic])
    else:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    read = []
    for record in consumer:
        read.append((record.partition, record.offset, record.value))
        if len(read) == count:
            break
    if "group_id" in config:
        consumer.commit()
    consumer.close()
    return read


def confluent_reads(consumer, count=COUNT):
    read = []
    wait_for(lambda: _poll(consumer, read) >= count, f"{count} records were read", LIMIT_S)
    return read


def _poll(consumer, read):
    message = consumer.poll(0.5)
    if message is not None:
        assert message.error() is None
        read.append((message.partition(), message.offset(), message.value()))
    return len(read)


def in_order(read):
    """True if every partition's offsets were read from 0 without a gap."""
    parts = Counter(partition for partition, _, _ in read)
    return all([o for p, o, _ in read if p == part] == list(range(count)) for part, count in parts.items())


@pytest.mark.parametrize("acks", [1, "all"])
def test_kafka_python_produces_and_consumes(cluster, topic, acks):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=acks, enable_idempotence=False)
    sent = [producer.send(topic, value, partition=n % 2) for n, value in enumerate(values())]
    offsets = [(f.get(LIMIT_S).partition, f.get().offset, value) for f, value in zip(sent, values(), strict=True)]
    producer.close()
    read = kafka_python_reads(cluster, topic)
    assert sorted(read) == sorted(offsets)
    assert in_order(read)


def test_kafka_python_produces_without_acknowledgement(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks=0, enable_idempotence=False)
    for value in values():
        producer.send(topic, value)
    producer.flush(LIMIT_S)
    read = kafka_python_reads(cluster, topic)
    producer.close()
    assert sorted(value for _, _, value in read) == sorted(values())


def test_kafka_python_produces_idempotently(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True)
    sent = [producer.send(topic, value, partition=0) for value in values()]
    assert [f.get(LIMIT_S).offset for f in sent] == list(range(COUNT))
    producer.close()
    assert [value for _, _, value in kafka_python_reads(cluster, topic)] == values()


@pytest.mark.parametrize("compression", ["gzip"])
def test_a_compressed_batch_passes_through_untouched(cluster, topic, compression):
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", compression_type=compression, linger_ms=50
    )
    for value in values():
        producer.send(topic, value * 20, partition=1)
    producer.flush(LIMIT_S)
    producer.close()
    assert [value for _, _, value in kafka_python_reads(cluster, topic)] == [value * 20 for value in values()]


def test_a_kafka_python_group_shares_partitions_and_continues_where_it_was(cluster, topic):
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    for n, value in enumerate(values()):
        producer.send(topic, value, partition=n % 2)
    producer.flush(LIMIT_S)
    first = kafka_python_reads(cluster, topic, group_id="python-group")
    assert in_order(first)
    for value in (b"more", b"and more"):
        producer.send(topic, value, partition=0)
    producer.close()
    second = kafka_python_reads(cluster, topic, 2, group_id="python-group")
    assert [value for _, _, value in second] == [b"more", b"and more"]


@pytest.mark.parametrize("idempotent", [False, True])
def test_confluent_kafka_produces_and_consumes(cluster, topic, idempotent):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "enable.idempotence": idempotent})
    acknowledged = []
    for value in values():
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, m: acknowledged.append((error, m.offset()))
        )
    assert producer.flush(LIMIT_S) == 0
    assert acknowledged == [(None, offset) for offset in range(COUNT)]
    read = kafka_python_reads(cluster, topic)
    assert [value for _, _, value in read] == values()


def test_a_confluent_kafka_group_of_two_splits_the_topic(cluster, topic):
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "confluent-group", "auto.offset.reset": "earliest"}
    consumers = [Consumer({**config, "session.timeout.ms": 6000}) for _ in range(2)]
    for consumer in consumers:
        consumer.subscribe([topic])

    def shares():
        for consumer in consumers:
            consumer.poll(0.1)
        return sorted(tp.partition for consumer in consumers for tp in consumer.assignment())

    wait_for(lambda: shares() == [0, 1] and all(c.assignment() for c in consumers), "each has a partition", LIMIT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for n, value in enumerate(values()):
        producer.produce(topic, value, partition=n % 2)
    assert producer.flush(LIMIT_S) == 0
    for consumer in consumers:
        assert len(confluent_reads(consumer, COUNT // 2)) == COUNT // 2
        consumer.commit(asynchronous=False)
    consumers[1].close()
    wait_for(lambda: consumers[0].poll(0.1) or len(consumers[0].assignment()) == 2, "one took over", LIMIT_S)
    committed = consumers[0].committed(consumers[0].assignment(), timeout=LIMIT_S)
    assert [tp.offset for tp in committed] == [COUNT // 2] * 2
    consumers[0].close()


@pytest.fixture(scope="module")
def kcat():
    path = shutil.which("kcat")
    assert path, "kcat is not installed: install the Debian package kcat (apt-get install kcat)"
    return path


def test_kcat_produces_consumes_and_joins_a_group(cluster, topic, kcat):
    def run(*arguments, stdin=b""):
        command = [kcat, "-b", cluster.bootstrap, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=LIMIT_S, check=True).stdout

    run("-P", "-t", topic, "-p", "1", "-X", "acks=all", stdin=b"\n".join(values()))
    assert run("-C", "-t", topic, "-p", "1", "-e", "-q").splitlines() == values()
    grouped = run("-G", "kcat-group", "-X", "auto.offset.reset=earliest", "-c", str(COUNT), "-q", topic)
    assert grouped.splitlines() == values()
    listed = json.loads(run("-L", "-J", "-t", topic))
    assert sorted(broker["id"] for broker in listed["brokers"]) == [0, 1, 2]
    assert len(listed["topics"][0]["partitions"]) == 2


def test_topics_are_made_described_and_deleted(cluster):
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    made = NewTopic(name="kept", num_partitions=1, replication_factor=3, topic_configs={"min.insync.replicas": "2"})
    admin.create_topics([made])
    cluster.wait_for_topic("kept", 1)
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "kept")])
    assert "min.insync.replicas" in str(described)
    assert cluster.status(0)["image"]["topics"]["kept"]["min_insync_replicas"] == 2
    admin.delete_topics(["kept"])
    wait_for(lambda: not cluster.partition("kept-0"), "the topic is gone")
    admin.close()


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({"num_partitions": 1, "replication_factor": 9}, "replic"),
        ({"num_partitions": 0, "replication_factor": 1}, "partition"),
        ({"num_partitions": 1, "replication_factor": 1, "config": {"min.insync.replica": "1"}}, "min.insync.replicas"),
        ({"num_partitions": 1, "replication_factor": 1, "config": {"flush.ms": "soon"}}, "impossible value"),
    ],
)
def test_an_impossible_topic_is_refused_in_words(cluster, new, words):
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    [refused] = admin.create_topics([ConfluentNewTopic("impossible", **new)], request_timeout=LIMIT_S).values()
    with pytest.raises(Exception, match=words):
        refused.result(LIMIT_S)


# --- transactions ----------------------------------------------------------------------------------------------------


def transactional_producer(cluster, name):
    """A producer of kafka-python in charge of its transactional id."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=name)
    producer.init_transactions()
    return producer


def in_transaction(producer, topic, *sent):
    """Begin a transaction, and wait until these values are acknowledged."""
    producer.begin_transaction()
    for each in [producer.send(topic, value, partition=n % 2) for n, value in enumerate(sent)]:
        each.get(LIMIT_S)


def test_a_kafka_python_reader_of_committed_records_gets_what_was_committed(cluster, topic):
    producer = transactional_producer(cluster, topic)
    for turn, end in enumerate([producer.commit_transaction, producer.abort_transaction, producer.commit_transaction]):
        in_transaction(producer, topic, *(b"%d-%d" % (turn, n) for n in range(COUNT)))
        end()
    producer.close()
    committed = kafka_python_reads(cluster, topic, 2 * COUNT, isolation_level="read_committed")
    assert sorted(value for _, _, value in committed) == sorted(b"%d-%d" % (t, n) for t in (0, 2) for n in range(COUNT))
    everything = kafka_python_reads(cluster, topic, 3 * COUNT)
    assert {value for _, _, value in everything} == {b"%d-%d" % (t, n) for t in range(3) for n in range(COUNT)}


def test_an_open_transaction_holds_readers_back_until_a_successor_fences_its_producer(cluster, topic):
    first, partition = transactional_producer(cluster, topic), TopicPartition(topic, 0)
    in_transaction(first, topic, b"open")

    def end(isolation):
        consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap, isolation_level=isolation)
        offset = consumer.end_offsets([partition])[partition]
        consumer.close()
        return offset

    assert (end("read_committed"), end("read_uncommitted")) == (0, 1)
    second = transactional_producer(cluster, topic)
    wait_for(lambda: end("read_committed") == 2, "the transaction is aborted", LIMIT_S)
    with pytest.raises(KafkaError):
        first.commit_transaction()
    in_transaction(second, topic, b"of the successor")
    second.commit_transaction()
    assert kafka_python_reads(cluster, topic, 1, isolation_level="read_committed") == [(0, 2, b"of the successor")]
    first.close()
    second.close()


def test_a_confluent_kafka_reader_of_committed_records_gets_what_was_committed(cluster, topic):
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": topic})
    producer.init_transactions(LIMIT_S)
    for turn, end in enumerate([producer.commit_transaction, producer.abort_transaction, producer.commit_transaction]):
        producer.begin_transaction()
        for n in range(COUNT):
            producer.produce(topic, b"%d-%d" % (turn, n), partition=n % 2)
        assert producer.flush(LIMIT_S) == 0
        end(LIMIT_S)
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer(config)
    consumer.assign([ConfluentTopicPartition(topic, number, 0) for number in range(2)])
    read = confluent_reads(consumer, 2 * COUNT)
    consumer.close()
    assert sorted(value for _, _, value in read) == sorted(b"%d-%d" % (t, n) for t in (0, 2) for n in range(COUNT)), (
        read
    )

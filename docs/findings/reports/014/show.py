#!/usr/bin/env python3
"""A member that has left commits. Run: KAFKA=... unshare -n python show.py [librdkafka]."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import confluent_kafka
import kafka
from cluster import Cluster

AT = "127.0.0.1:9090"
ONE = dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), 1)
ONE |= {"min.insync.replicas": 1, "transaction.state.log.min.isr": 1}


class WithKafkaPython:
    def __init__(self):
        limits = dict.fromkeys(("max_poll_interval_ms", "session_timeout_ms"), 6_000)
        own = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        self.consumer = kafka.KafkaConsumer("in", bootstrap_servers=AT, **own, **limits)

    def read(self):
        return sum(map(len, self.consumer.poll(1_000).values()))

    def commit(self, name):
        producer = kafka.KafkaProducer(bootstrap_servers=AT, transactional_id=name)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("out", name.encode())
        metadata = self.consumer.group_metadata()
        print(f"{name}: group_metadata() is generation {metadata.generation_id}, member {metadata.member_id!r}")
        offsets = {kafka.TopicPartition("in", 0): kafka.OffsetAndMetadata(10, "", -1)}
        producer.send_offsets_to_transaction(offsets, metadata)
        producer.commit_transaction()


class WithLibrdkafka:
    def __init__(self):
        own = {"bootstrap.servers": AT, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.consumer = confluent_kafka.Consumer(own | {"max.poll.interval.ms": 6_000, "session.timeout.ms": 6_000})
        self.consumer.subscribe(["in"])

    def read(self):
        return sum(message.error() is None for message in self.consumer.consume(10, 1))

    def commit(self, name):
        producer = confluent_kafka.Producer({"bootstrap.servers": AT, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("out", name)
        offsets = [confluent_kafka.TopicPartition("in", 0, 10)]
        producer.send_offsets_to_transaction(offsets, self.consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)


kind = WithLibrdkafka if "librdkafka" in sys.argv else WithKafkaPython
with Cluster(brokers=1, through=0, **ONE) as cluster:
    cluster.create("in", [0])
    cluster.create("out", [0])
    writer, effects = kafka.KafkaProducer(bootstrap_servers=AT), 0
    for number in range(10):
        writer.send("in", b"%d" % number).get(30)
    members = {}
    for name in ("slow", "successor"):
        members[name] = kind()
        read, end = 0, time.monotonic() + 60
        while read < 10 and time.monotonic() < end:
            read += members[name].read()
        print(name, "has read", read)
        time.sleep(9 if name == "slow" else 0)  # longer than max.poll.interval.ms
    for name in ("successor", "slow"):
        try:
            members[name].commit(name)
            print(name, "committed its effect and offset 10")
            effects += 1
        except Exception as error:
            print(name, "was refused:", repr(error))
sys.exit(effects > 1)

#!/usr/bin/env python3
"""A transaction that ends while a partition has no leader. Run: KAFKA=... unshare -n python show.py [abort]."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import Cluster
from confluent_kafka import Consumer, Producer, TopicPartition
from operating import until

SERVERS = "127.0.0.1:9090,127.0.0.1:9093,127.0.0.1:9094"
ABORT = "abort" in sys.argv


def ends(isolation):
    consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "e", "isolation.level": isolation})
    return consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=10)[1]


def read():
    consumer = Consumer({"bootstrap.servers": SERVERS, "group.id": "r", "isolation.level": "read_committed"})
    consumer.assign([TopicPartition("t", number, 0) for number in (0, 1)])
    end, values = time.monotonic() + 10, []
    while time.monotonic() < end:
        if (message := consumer.poll(0.5)) and not message.error():
            values.append(message.value().decode())
    return sorted(values)


# Every topic has three replicas, of which two have to be in sync; elections are clean.
with Cluster(brokers=5, through=3) as cluster:
    cluster.create("t", [0, 1, 2], [3, 4, 0])
    cluster.create("__transaction_state", [3, 4, 0], **{"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": SERVERS, "transactional.id": "x", "transaction.timeout.ms": 300_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", "a", partition=0)
    producer.produce("t", "b", partition=1)
    assert producer.flush(30) == 0
    for broker in (1, 2, 0):  # in order, by SIGTERM; the last of them is alone in sync then
        cluster.end(broker)
    print("leader of t-0:", until(lambda: (view := cluster.view("t"))["leader_id"] == -1 and view))
    (producer.abort_transaction if ABORT else producer.commit_transaction)(60)
    print("abort" if ABORT else "commit", "was answered with success")
    time.sleep(2)
    for broker in (0, 1, 2):
        cluster.start(broker)
    until(lambda: cluster.view("t")["leader_id"] != -1)
    time.sleep(10)
    stable, high = until(lambda: [ends(each) for each in ("read_committed", "read_uncommitted")])
    print("t-0 again has a leader; last stable offset", stable, "high watermark", high)
    producer.begin_transaction()
    producer.produce("t", "c", partition=0)
    assert producer.flush(60) == 0
    (producer.commit_transaction if ABORT else producer.abort_transaction)(60)
    time.sleep(3)
    expected, values = ["c"] if ABORT else ["a", "b"], read()
    print("committed records:", values, "expected:", expected)
    for line in (cluster.home / "3.log").read_text().splitlines():
        if "find leader endpoint" in line:
            print(line)
sys.exit(values != expected)

#!/usr/bin/env python3
"""A broker that was away brings back group offsets. Run: KAFKA=... unshare -n python show.py [day]."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import Cluster
from confluent_kafka import Consumer, Producer, TopicPartition
from group import Asked
from operating import until

TOPIC, AWAY, STAYS = "__consumer_offsets", 2, 0
BROKERS = {"bootstrap.servers": "127.0.0.1:9090,127.0.0.1:9091"}
#: The first is a day by default; the others are for speed.
CONFIGS = {"delete.retention.ms": 86_400_000 if "day" in sys.argv else 1_000}
CONFIGS |= {"segment.ms": 1_000, "min.cleanable.dirty.ratio": 0.01, "cleanup.policy": "compact"}


def told(broker):
    return {group: until(lambda group=group: Asked(broker).committed(group, "t")) for group in ("kept", "deleted")}


with Cluster(**{"log.cleaner.backoff.ms": 500, "log.retention.check.interval.ms": 1_000}) as cluster:
    cluster.create("t", [0, 1, 2], [0, 1, 2])
    cluster.create(TOPIC, [STAYS, 1, AWAY], **CONFIGS)
    until(lambda: Asked(STAYS).commit("kept", "t", 1) == "NoError")
    assert Asked(STAYS).commit("deleted", "t", 5) == "NoError"
    member = Consumer(BROKERS | {"group.id": "kept"})
    producer = Producer(BROKERS | {"transactional.id": "x", "transaction.timeout.ms": 300_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("t", 0, 3)], member.consumer_group_metadata(), 30)
    time.sleep(2)  # all replicas have it
    cluster.end(AWAY)
    producer.abort_transaction(30)
    cluster.admin.delete_groups(["deleted"])
    # The next marker of the producer ends what broker 2 takes for its open transaction.
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition("t", 1, 2)], member.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    print("broker", AWAY, "is away; a transaction with offset 3 of kept was aborted, and deleted was deleted")
    begun = time.monotonic()
    while time.monotonic() < begun + 45:  # other groups commit, so that segments end and are cleaned, twice
        assert Asked(STAYS).commit("other", "t", round(time.monotonic())) == "NoError"
        time.sleep(0.3)
    cluster.start(AWAY)
    until(lambda: AWAY in cluster.view(TOPIC)["isr_nodes"])
    before = told(STAYS)
    print("before the election:", before)
    cluster.prefer(TOPIC, AWAY, STAYS, 1)
    cluster.elect(TOPIC)
    until(lambda: all(isinstance(answer, int) for answer in told(AWAY).values()))
    after = told(AWAY)
    print("after the election: ", after)
sys.exit(before != after)

#!/usr/bin/env python3
"""An acknowledged record is gone. Run: KAFKA=... unshare -n python show.py [told]."""

import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from cluster import Cluster
from confluent_kafka import Consumer, Producer, TopicPartition
from missed_epoch import missed_epoch

answers = {}
with Cluster() as cluster:
    cluster.create("t", [0, 1, 2])
    producer = Producer({"bootstrap.servers": "127.0.0.1:9090", "acks": "all", "enable.idempotence": True})

    def write(value):
        producer.produce(
            "t", value, partition=0, on_delivery=lambda error, at: answers.update({value: error or at.offset()})
        )
        producer.poll(0.1)

    write("a")
    producer.flush(30)

    def acknowledged():
        producer.poll(0)
        return "b" in answers

    missed_epoch(cluster, "t", lambda: write("b"), acknowledged, told="told" in sys.argv)
    producer.flush(30)
    print("answered, by value:", answers)
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    end, read = time.monotonic() + 10, []
    while time.monotonic() < end:
        if (message := consumer.poll(0.5)) and not message.error():
            read.append(message.value().decode())
    print("read:", read)
    lost = [value for value, answer in answers.items() if isinstance(answer, int) and value not in read]
    print("acknowledged and gone:", lost)
    for line in (cluster.home / "0.log").read_text().splitlines():
        if re.search(" t-0 .*previous leader epoch was|below high watermark", line):
            print(line)
sys.exit(bool(lost))

#!/usr/bin/env python3
"""librdkafka begins elsewhere than at the group's offset. Run: python show.py [latest] [alone].
No broker is needed: librdkafka's own mock cluster answers OffsetFetch with UNSTABLE_OFFSET_COMMIT, as a coordinator
does while a transaction with the group's offsets is open. pip install confluent-kafka==2.16.1
"""

import ctypes
import re
import sys
import time
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

OFFSET_FETCH, UNSTABLE, RETRY_S = 9, 88, 5
(library,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob("librdkafka-*")
C = ctypes.CDLL(str(library))
C.rd_kafka_new.restype = C.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
C.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
MOCK = ctypes.c_void_p(C.rd_kafka_mock_cluster_new(ctypes.c_void_p(C.rd_kafka_new(0, None, None, 0)), 1))
C.rd_kafka_mock_topic_create(MOCK, b"t", 2, 1)
C.rd_kafka_mock_group_initial_rebalance_delay_ms(MOCK, 200)
AT = {"bootstrap.servers": C.rd_kafka_mock_cluster_bootstraps(MOCK).decode()}
GROUP = AT | {
    "group.id": "g",
    "enable.auto.commit": False,
    "auto.offset.reset": "latest" if "latest" in sys.argv else "earliest",
    "heartbeat.interval.ms": 200,
    "session.timeout.ms": 1_500,  # the mock cluster ends a rebalance after this, less a second
    "debug": "cgrp,topic",
    "retry.backoff.ms": RETRY_S * 1_000,
    "retry.backoff.max.ms": RETRY_S * 1_000,
}


class Log:  # prints the lines of librdkafka that tell the story
    def log(self, _level, form, *values):
        line = form % values
        if re.search("blocking offset|Starting pending|offset reset", line):
            print("   ", line)

    debug = info = warning = error = log


def write(values):
    producer = Producer(AT)
    for value in values:
        producer.produce("t", str(value), partition=value % 2)
    producer.flush(10)


def poll(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for member in members:
            if (message := member.poll(0.05)) and not message.error():
                begun.setdefault(message.partition(), message.offset())


write(range(40))
partitions = [TopicPartition("t", number, 10) for number in (0, 1)]
members, begun = [Consumer(GROUP, logger=Log())], {}
members[0].commit(offsets=partitions, asynchronous=False)
print("each partition has 20 records; the group has committed 10 of each")
# Requests for offsets are answered so until this is cleared, and then with 10.
C.rd_kafka_mock_push_request_errors(MOCK, OFFSET_FETCH, ctypes.c_size_t(100), *[UNSTABLE] * 100)
members[0].subscribe(["t"])
poll(3)  # the answer has come, and the request is to be repeated
if "alone" not in sys.argv:
    members.append(Consumer(GROUP, logger=Log()))
    members[1].subscribe(["t"])
poll(2 * RETRY_S)
C.rd_kafka_mock_clear_request_errors(MOCK, OFFSET_FETCH)
poll(2 * RETRY_S)
write((40, 41))
poll(RETRY_S)
members[0].commit(asynchronous=False)
print("began, by partition:", begun, "expected: 10; group:", [at.offset for at in members[0].committed(partitions)])
sys.exit(set(begun.values()) != {10})

"""Reads to the end of a partition with consume(), and on from the position that the library names then.

A program of its own, so that it runs with any release of confluent-kafka; librdkafka brings the broker. It prints
JSON: what was read at first, the position after it, and what was read from there once there was more.
"""

import json
import sys
import time

import psutil
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition, libversion

LIMIT_S = 20.0

producer = Producer({"test.mock.num.brokers": 1})


def write(values: str) -> None:
    for value in values:
        producer.produce("topic", value, partition=0)
    assert producer.flush(LIMIT_S) == 0


def read(offset: int) -> tuple[str, int]:
    listening = [
        connection for connection in psutil.Process().net_connections("tcp") if connection.status == psutil.CONN_LISTEN
    ]
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{listening[0].laddr.port}",
            "group.id": "group",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("topic", 0, offset)])
    text, ended, deadline = "", False, time.monotonic() + LIMIT_S
    while not ended and time.monotonic() < deadline:
        for message in consumer.consume(100, 0.2):
            if message.error() is None:
                text += message.value().decode()
            else:
                ended = message.error().code() == KafkaError._PARTITION_EOF
    position = consumer.position([TopicPartition("topic", 0)])[0].offset
    consumer.close()
    return text, position


write("01234")
first, position = read(0)
write("567")
then, _ = read(position)
json.dump({"librdkafka": libversion()[0], "first": first, "position": position, "then": then}, sys.stdout)

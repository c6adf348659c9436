"""A loop that commits after it has written, and does one thing wrong, by the word that it is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

#: Outputs of each hundredth input of a loop that floods.
FLOOD = 5_000
#: The state of a loop that counts.
COUNTS: dict[bytes, int] = {}


def outputs(wrong: str, record: Any, number: int) -> list[bytes]:
    """The outputs of the input with this number."""
    if wrong == "skips":
        return [] if number % 10 == 3 else [record.value]
    if wrong == "doubles":
        return [record.value] * (2 if number % 10 == 3 else 1)
    if wrong == "floods":
        return [record.value] * (FLOOD if number == 5 else 1)
    if wrong == "forgets ids":
        return [b"done"]
    if wrong == "invents":
        return [record.value, b'{"id": "of nothing"}'] if number % 10 == 3 else [record.value]
    return counted(wrong, record, number) if "counts" in wrong else [record.value]


def counted(wrong: str, record: Any, number: int) -> list[bytes]:
    """The count of the inputs of a key, which is forgotten now and then."""
    key = bytes(record.key)
    COUNTS[key] = 1 if wrong == "forgets counts" and number % 50 == 0 else COUNTS.get(key, 0) + 1
    return [json.dumps({"id": json.loads(record.value)["id"], "result": COUNTS[key]}).encode()]


def main(bootstrap: str, source: str, target: str, group: str, wrong: str) -> None:
    servers = bootstrap.split(",")
    options: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(*source.split(","), bootstrap_servers=servers, session_timeout_ms=6_000, **options)
    # A short poll that ends before a second join loses the assignment for good: with metadata there is no second one.
    consumer.topics()
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", retries=10)
    number, targets = 0, target.split(",")
    while True:
        for records in consumer.poll(timeout_ms=200).values():
            if wrong == "sinks":
                with Path(target).open("a", encoding="utf-8") as done:
                    done.writelines(json.loads(record.value)["id"] + "\n" for record in records)
                continue
            for record in reversed(records) if wrong == "reorders" else records:
                number += 1
                for payload in outputs(wrong, record, number):
                    producer.send(targets[number % len(targets)], key=record.key, value=payload)
        producer.flush()
        consumer.commit()


main(*sys.argv[1:])

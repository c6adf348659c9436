"""A loop that promises at least once: it commits what it has read after the brokers have acknowledged what it wrote.

    ackproof application --promise at-least-once -- \
        python examples/applications/at_least_once.py {bootstrap} {input} {output} {group}
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError

ASKED_TO_END: list[int] = []


def transform(record: Any) -> bytes:
    """The output of one input: here the same, so that it keeps the id."""
    return bytes(record.value)


def main(arguments: Sequence[str]) -> int:
    """Read, write, wait for the acknowledgements, commit; until SIGTERM."""
    bootstrap, source, target, group = arguments
    signal.signal(signal.SIGTERM, lambda number, _frame: ASKED_TO_END.append(number))
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap.split(","),
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
    )
    consumer.topics()  # else a short poll may lose the assignment (docs/guides/clients.md)
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks="all", retries=10)
    while not ASKED_TO_END:
        batches = consumer.poll(timeout_ms=200)
        sent = [
            producer.send(target, key=record.key, value=transform(record))
            for records in batches.values()
            for record in records
        ]
        try:
            for each in sent:
                each.get(timeout=30)
        except KafkaError as error:
            print(f"not written, so nothing is committed: {error!r}", flush=True)
            return 1  # started again, it goes on from the last commit
        try:
            if sent:
                consumer.commit()
        except (CommitFailedError, RebalanceInProgressError) as error:
            print(f"the group gave its partitions to others: {error!r}", flush=True)
    consumer.close()
    producer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A loop with a planted mistake: it commits before it writes. Killed in between, it passes inputs over.

    ackproof application --promise at-least-once -- \
        python examples/applications/commit_before.py {bootstrap} {input} {output} {group}

The verdict is a broken promise of `missing-effect`. With `--promise at-most-once` the same is permitted.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import CommitFailedError, RebalanceInProgressError

ASKED_TO_END: list[int] = []
#: What it does with a batch before it writes.
WORK_S = 0.1


def main(arguments: Sequence[str]) -> int:
    """Read, commit, work, write; until SIGTERM."""
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
        if not batches:
            continue
        try:
            consumer.commit()  # the mistake: nothing of this batch is written yet
        except (CommitFailedError, RebalanceInProgressError):
            continue
        time.sleep(WORK_S)
        for records in batches.values():
            for record in records:
                producer.send(target, key=record.key, value=record.value)
        producer.flush()
    consumer.close()
    producer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A loop that promises exactly once: what it writes, and what it has read, is committed in one transaction (KIP-447).

    ackproof application --promise exactly-once -- \
        python examples/applications/exactly_once.py {bootstrap} {input} {output} {group} {instance}

As the documentation of confluent-kafka has it: offsets are handed over with the group's metadata, a transaction that
can be aborted is aborted and done again from the last commit, and after any other error the program ends.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

ASKED_TO_END: list[int] = []
#: The most records of one transaction.
BATCH = 100


def rewind(consumer: Consumer) -> None:
    """Go back to what the group has committed: an aborted transaction has done nothing."""
    for partition in consumer.committed(consumer.assignment()):
        consumer.seek(TopicPartition(partition.topic, partition.partition, max(partition.offset, 0)))


def main(arguments: Sequence[str]) -> int:
    """Read, write, hand over the offsets, commit; until SIGTERM."""
    bootstrap, source, target, group, instance = arguments
    signal.signal(signal.SIGTERM, lambda number, _frame: ASKED_TO_END.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{group}-{instance}",
            "transaction.timeout.ms": 10_000,
        }
    )
    producer.init_transactions(60)
    consumer.subscribe([source])
    while not ASKED_TO_END:
        records = [record for record in consumer.consume(BATCH, timeout=0.2) if record.error() is None]
        if not records:
            continue
        try:
            producer.begin_transaction()
            for record in records:
                producer.produce(target, key=record.key(), value=record.value())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
        except KafkaException as error:
            print(f"transaction: {error}", flush=True)
            if not error.args[0].txn_requires_abort():
                return 1  # started again, it fences this producer and goes on from the last commit
            producer.abort_transaction(30)
            rewind(consumer)
    consumer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A producer that writes a record to each of some partitions in a transaction, says so, and commits when it is told to.

A program of its own, so that it can be killed: a library that waits for an answer goes on asking after its owner gave
it up. Arguments: bootstrap servers, a transactional id, and the partitions. It prints "sent", and "committed" once its
commit was answered.
"""

import sys

from confluent_kafka import Producer

from workloads import LogPartition, values

#: The process of its values.
PROCESS = 900
KEY = b"key"
LIMIT_S = 120.0


def main() -> None:
    """Write, and commit once there is a line on standard input; each step within the limit."""
    bootstrap, transactional_id, *partitions = sys.argv[1:]
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for number, name in enumerate(partitions):
        topic, partition = LogPartition.named(name)
        payload = values.encode(name, KEY, values.join(PROCESS, number))
        producer.produce(topic, payload, KEY, partition=partition)
    if producer.flush(LIMIT_S):
        sys.exit("not all records were acknowledged")
    sys.stdout.write("sent\n")
    sys.stdout.flush()
    sys.stdin.readline()
    producer.commit_transaction(LIMIT_S)
    sys.stdout.write("committed\n")


if __name__ == "__main__":
    main()

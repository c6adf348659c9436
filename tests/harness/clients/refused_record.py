"""A transaction with a record that its producer refuses, because it is too large: KAFKA-9279.

A record is written and acknowledged, one that is too large is refused by the producer itself, and the transaction is
committed. Kafka's own client promises that a commit succeeds only if every send did. As a program it says for each
client how the commit ended, and how many records readers of committed records get; the exit code is 1 where one
committed without the record:

    python -m tests.harness.clients.refused_record java:3.1.2 java:3.2.0 confluent-kafka
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.plan import Kafka
from harness.plan.worlds import ClientName
from harness.worlds.kafka import client_library, kafka_world
from tests.harness.clients.script import Script
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec
from workloads.client import SendOutcome
from workloads.operations import EventType

#: More than max.request.size, which is 1 MiB by default.
TOO_LARGE: Final = bytes(2_000_000)
CLOSE_S: Final = 10
SETTINGS: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 10_000,
    "delivery.timeout.ms": 30_000,
    "transaction.timeout.ms": 60_000,
}


class Seen(NamedTuple):
    """The refusal of the record, the end of the commit, and the number of records that were read."""

    refused: str | None
    commit: EventType
    read: int


class RefusedRecord(Script):
    """The script, on one cluster, with one library."""

    def play(self, partition: str) -> Seen:
        """Commit a transaction of two records, one of which was refused."""
        before = len(self.read([partition]))
        producer, calls = self.transactional(f"refused-{self.cluster.next_process()}")
        self.done(calls.begin)
        self.send(producer, [(partition, b"key")])
        refused: SendOutcome = self.ask(partial(producer.send, partition, b"key", TOO_LARGE))
        assert refused.type is EventType.FAIL
        ended: SendOutcome = self.ask(calls.commit)
        if ended.type is not EventType.OK:
            self.ask(calls.abort)
        seen = Seen(refused.error, ended.type, len(self.read([partition])) - before)
        producer.close()
        return seen


def played(clients: Sequence[str], directory: Path) -> dict[str, Seen]:
    """Play it with one client after the other on one new cluster; ``clients`` are names, or name:release."""
    with ExitStack() as ending:
        world = kafka_world(spec(SETTINGS, world=Kafka()), directory)
        ending.callback(world.close)
        world.open()
        cluster, seen = Cluster(world, directory), {}
        for number, client in enumerate(clients):
            name, _, release = client.partition(":")
            chosen = Kafka(client=msgspec.convert(name, ClientName), client_version=release)
            made = cluster.clients(client_library(chosen, directory, ending))
            seen[client] = RefusedRecord(cluster, made).play(PARTITIONS[number % len(PARTITIONS)])
            made.close(CLOSE_S)
        return seen


def main() -> None:
    """Play it, and say how commits ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="+", help="such as java:3.1.2; the release must be installed")
    with tempfile.TemporaryDirectory() as directory:
        results = played(parser.parse_args().clients, Path(directory))
    for client, seen in results.items():
        sys.stdout.write(f"{client}: the commit ended {seen.commit}, {seen.read} read; refused: {seen.refused}\n")
    sys.exit(any(seen.commit is EventType.OK for seen in results.values()))


if __name__ == "__main__":
    main()

"""A transaction that ends while one of its log partitions has no leader: the script of finding 008.

Beside it: a commit after a write had expired without being sent, because its log partition had no leader.

The partition has one replica, on a broker that is killed after the writes were acknowledged; the coordinator of the
transaction is on another one. The transaction is committed, or aborted; then the broker is started again, and the same
producer does another transaction on the partition, which ends the other way. As a program it says what readers of
committed records see:

    python -m tests.harness.clients.leaderless_end --version 4.3.1
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final, Literal, NamedTuple

from harness.clients import CLIENTS
from harness.plan import Kafka, RunSpec
from harness.worlds.kafka import kafka_world
from nemesis.cluster import require
from nemesis.plan import FaultPlan
from tests.harness.clients.script import Script, rules_of, script_options
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import values
from workloads.client import SendOutcome
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import Settings

#: The partition that loses its leader, and one that keeps it.
LEADERLESS, LED = PARTITIONS[:2]
#: One copy: whoever has it leads, or nobody does.
ONE_COPY: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 9_000,
}
#: Markers are written within milliseconds.
MARKERS_US: Final = 5_000_000
CLOSE_S: Final = 10

End = Literal["commit", "abort"]


class Seen(NamedTuple):
    """The result of one end: how it was answered, and what readers of committed records get of which partition.

    ``held`` says that the last stable offset stands below the high watermark after the leader's return; ``first`` and
    ``second`` are the partitions in which the values of the two transactions are read in the end.
    """

    answered: EventType
    held: bool
    first: set[str]
    second: set[str]


class Played(NamedTuple):
    """Both ends, and how each library answered a commit after a send had expired without ever having been sent."""

    commit: Seen
    abort: Seen
    after_expiry: dict[str, EventType]


class LeaderlessEnd(Script):
    """One cluster, and the transactions of this finding with a library."""

    def play(self, end: End) -> Seen:
        """End a transaction without a leader, then another one the other way."""
        producer, calls = self.transactional(f"{end}-{self.cluster.next_process()}")
        self.ask(calls.begin)
        first = self.send(producer, [(partition, b"key") for partition in (LEADERLESS, LED)])
        broker = self.cluster.leads(LEADERLESS)
        processes = require(self.cluster.target.processes)
        processes.kill(broker)
        self.until(lambda: self.cluster.leader(LEADERLESS) is None)
        answered = self.ask(calls.commit if end == "commit" else calls.abort).type
        processes.restart(broker)
        self.cluster.leads(LEADERLESS)
        self.let_pass(MARKERS_US)
        held = self.end(LEADERLESS, "read_committed") < self.end(LEADERLESS, "read_uncommitted")
        self.ask(calls.begin)
        second = self.send(producer, [(LEADERLESS, b"key")])
        self.ask(calls.abort if end == "commit" else calls.commit)
        self.let_pass(MARKERS_US)
        read = self.read((LEADERLESS, LED))
        producer.close()
        return Seen(
            answered, held, *({record.partition for record in read if record.value in sent} for sent in (first, second))
        )

    def expire(self) -> EventType:
        """Commit a transaction with a write that is sent nowhere, because its partition has no leader."""
        process = self.cluster.next_process()
        producer, calls = self.transactional(f"expiry-{process}")
        broker = self.cluster.leads(LEADERLESS)
        processes = require(self.cluster.target.processes)
        processes.kill(broker)
        self.until(lambda: self.cluster.leader(LEADERLESS) is None)
        self.ask(calls.begin)
        outcomes: list[SendOutcome] = []
        payload = values.encode(LEADERLESS, b"key", values.join(process, 0))
        producer.send(LEADERLESS, b"key", payload, outcomes.append)
        answered = self.ask(calls.commit).type
        self.until(lambda: bool(outcomes))
        assert outcomes[0].type is not EventType.OK
        processes.restart(broker)
        producer.close()
        return answered


def played(version: str, directory: Path) -> Played:
    """Play all of it on a new cluster of this release."""
    settings = Settings.from_mapping(ONE_COPY | rules_of(version))
    world = kafka_world(
        RunSpec(
            world=Kafka(version=version),
            cell="cell/kill",
            family="kill",
            settings=settings.to_mapping(),
            workload=WorkloadPlan(),
            faults=FaultPlan(),
            seed=1,
        ),
        directory,
    )
    try:
        world.open()
        cluster = Cluster(world, directory)
        after_expiry: dict[str, EventType] = {}
        for library in ("confluent-kafka", "kafka-python"):
            clients = cluster.clients(CLIENTS[library])
            script = LeaderlessEnd(cluster, clients)
            if not after_expiry:
                commit, abort = script.play("commit"), script.play("abort")
            after_expiry[library] = script.expire()
            clients.close(CLOSE_S)
        return Played(commit, abort, after_expiry)
    finally:
        world.close()


def main() -> None:
    """Play both ends, and say what is read; the exit code is 1 where an end did not reach the partition."""
    parser = script_options(__doc__)
    with tempfile.TemporaryDirectory() as directory:
        seen = played(parser.parse_args().version, Path(directory))
    for end, result in (("commit", seen.commit), ("abort", seen.abort)):
        of_first, of_second = (", ".join(sorted(keys)) or "no partition" for keys in (result.first, result.second))
        sys.stdout.write(
            f"{end}: answered {result.answered}; held back after the leader's return: {result.held}\n"
            f"  its values are read in: {of_first}\n"
            f"  those of the transaction after it in: {of_second}\n"
        )
    for library, answered in seen.after_expiry.items():
        sys.stdout.write(f"{library}: a commit after a write had expired was answered {answered}\n")
    sys.exit(seen.commit.first != {LEADERLESS, LED} or bool(seen.abort.first))


if __name__ == "__main__":
    main()

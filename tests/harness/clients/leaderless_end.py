"""A transaction that ends while one of its log partitions has no leader: the script of finding 008.

Beside it: a commit after a write had expired without being sent, because its log partition had no leader.

The partition has one replica, on a broker that is killed after the writes were acknowledged; the coordinator of the
transaction is on another one. The transaction is committed, or aborted; then the broker is started again, and the same
producer does another transaction on the partition, which ends the other way. As a program it says what readers of
committed records see:

    python -m tests.harness.clients.leaderless_end --version 4.3.1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

from harness.clients import CLIENTS
from harness.plan import Kafka, RunSpec
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.releases import DEFAULT_VERSION
from nemesis.cluster import require
from nemesis.plan import FaultPlan
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster
from workloads import values
from workloads.client import Offsets, PollOutcome, Producer, SendOutcome, Transactions
from workloads.operations import EventType
from workloads.plan import WorkloadPlan
from workloads.settings import IsolationLevel, Settings

#: The partition that loses its leader, and one that keeps it.
LEADERLESS, LED = PARTITIONS[:2]
#: One copy: whoever has it leads, or nobody does. Old releases differ from the reference broker's rule 7.
ONE_COPY: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 9_000,
}
OLD: Final = {"strict.min.isr": False}
STRICT_SINCE: Final = (3, 7)
LIMIT_US: Final = 120_000_000
#: Markers are written within milliseconds.
MARKERS_US: Final = 5_000_000
POLLS: Final = 8

End = Literal["commit", "abort"]
Answer = TypeVar("Answer")


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


class Script:
    """One cluster, and what is asked of it with a library."""

    def __init__(self, cluster: Cluster, settings: Settings, library: str = "confluent-kafka") -> None:
        self._cluster = cluster
        bootstrap = tuple(cluster.world.clients.bootstrap)
        self._clients = CLIENTS[library].clients(cluster.world.clock, settings, bootstrap)

    def play(self, end: End) -> Seen:
        """End a transaction without a leader, then another one the other way."""
        process = self._cluster.next_process()
        producer = self._clients.producer(process, f"{end}-{process}")
        calls = _transactions(producer)
        assert self._ask(calls.init).type is EventType.OK
        self._ask(calls.begin)
        first = self._send(producer, (LEADERLESS, LED))
        broker = self._cluster.leads(LEADERLESS)
        processes = require(self._cluster.target.processes)
        processes.kill(broker)
        assert self._cluster.until(lambda: self._cluster.leader(LEADERLESS) is None)
        answered = self._ask(calls.commit if end == "commit" else calls.abort).type
        processes.restart(broker)
        self._cluster.leads(LEADERLESS)
        self._pass()
        held = self._end("read_committed") < self._end("read_uncommitted")
        self._ask(calls.begin)
        second = self._send(producer, (LEADERLESS,))
        self._ask(calls.abort if end == "commit" else calls.commit)
        self._pass()
        read = self._read()
        producer.close()
        return Seen(answered, held, *({key for key, value in read if value in sent} for sent in (first, second)))

    def expire(self) -> EventType:
        """Commit a transaction with a write that is sent nowhere, because its partition has no leader."""
        process = self._cluster.next_process()
        producer = self._clients.producer(process, f"expiry-{process}")
        calls = _transactions(producer)
        assert self._ask(calls.init).type is EventType.OK
        broker = self._cluster.leads(LEADERLESS)
        processes = require(self._cluster.target.processes)
        processes.kill(broker)
        assert self._cluster.until(lambda: self._cluster.leader(LEADERLESS) is None)
        self._ask(calls.begin)
        outcomes: list[SendOutcome] = []
        payload = values.encode(LEADERLESS, b"key", values.join(process, 0))
        producer.send(LEADERLESS, b"key", payload, outcomes.append)
        answered = self._ask(calls.commit).type
        assert self._cluster.until(lambda: bool(outcomes), LIMIT_US)
        assert outcomes[0].type is not EventType.OK
        processes.restart(broker)
        producer.close()
        return answered

    def close(self) -> None:
        """Close every client."""
        self._clients.close(10)

    def _ask(self, call: Callable[[Callable[[Answer], None]], None]) -> Answer:
        answers: list[Answer] = []
        call(answers.append)
        assert self._cluster.until(lambda: bool(answers), LIMIT_US)
        return answers[0]

    def _send(self, producer: Producer, partitions: tuple[str, ...]) -> set[int]:
        process, outcomes = self._cluster.next_process(), list[SendOutcome]()
        numbers = [values.join(process, number) for number in range(len(partitions))]
        for partition, number in zip(partitions, numbers, strict=True):
            producer.send(partition, b"key", values.encode(partition, b"key", number), outcomes.append)
        assert self._cluster.until(lambda: len(outcomes) == len(numbers), LIMIT_US)
        assert all(outcome.type is EventType.OK for outcome in outcomes)
        return set(numbers)

    def _end(self, isolation: IsolationLevel) -> int:
        consumer = self._clients.consumer(self._cluster.next_process(), isolation=isolation)
        answer: Offsets = self._ask(lambda done: consumer.end_offsets([LEADERLESS], done))
        consumer.close()
        return answer.offsets[LEADERLESS]

    def _read(self) -> set[tuple[str, int]]:
        """The partition and the value of each record that a reader of committed records gets."""
        consumer = self._clients.consumer(self._cluster.next_process(), isolation="read_committed")
        consumer.assign([LEADERLESS, LED], from_start=True)
        read: set[tuple[str, int]] = set()
        for _ in range(POLLS):
            outcome: PollOutcome = self._ask(lambda done: consumer.poll(500, done))
            read |= {(one.partition, values.decode(one.payload, one.partition, one.key)[0]) for one in outcome.records}
        consumer.close()
        return read

    def _pass(self) -> None:
        self._cluster.until(lambda: False, MARKERS_US)


def _transactions(producer: Producer) -> Transactions:
    assert producer.transactions is not None
    return producer.transactions


def played(version: str, directory: Path) -> Played:
    """Play all of it on a new cluster of this release."""
    old = tuple(int(part) for part in version.split(".")[:2]) < STRICT_SINCE
    settings = Settings.from_mapping(ONE_COPY | (OLD if old else {}))
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
        script = Script(cluster, settings)
        commit, abort = script.play("commit"), script.play("abort")
        script.close()
        after_expiry: dict[str, EventType] = {}
        for library in ("confluent-kafka", "kafka-python"):
            script = Script(cluster, settings, library)
            after_expiry[library] = script.expire()
            script.close()
        return Played(commit, abort, after_expiry)
    finally:
        world.close()


def main() -> None:
    """Play both ends, and say what is read; the exit code is 1 where an end did not reach the partition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default=DEFAULT_VERSION, help="an installed release of Apache Kafka")
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

"""A request to end a transaction that arrives late, in the next transaction: the script of finding 009.

A producer ends a transaction while one connection is held: its own to the transaction's coordinator (``end``), or that
of the coordinator to the leader of the log partition (``marker``). Whoever asked gives up, closes the connection, and
asks again on a new one, with success. Then the producer begins its next transaction, and writes half of it; the first
request is delivered; the producer writes the other half, and ends it the other way. What happened is recorded and
judged as that of every run. As a program it says for each client which anomalies the checkers found:

    python -m tests.harness.clients.late_requests --version 4.3.1
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from harness.clients import RealClients
from harness.plan import Kafka, Namespaces, RunSpec
from harness.plan.worlds import ClientName
from harness.records.fault_events import record_fault
from harness.worlds.kafka import client_library, kafka_world
from harness.worlds.real.topic import create_topic
from nemesis.cluster import CLIENTS, Link
from nemesis.faults import Aim, HoldConnections
from nemesis.open_faults import Cause, OpenFaults
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape
from tests.checkers.in_memory import judge_events
from tests.harness.clients.script import rules_of, script_options
from tests.harness.worlds.processes.conftest import Cluster
from workloads import Event, EventType, LogPartition, Offsets, Settings, WorkloadPlan
from workloads.consumers import Readers
from workloads.driver import Drain, RecoveryWrites
from workloads.generators import DueWrite
from workloads.instance import SendCounts, Writers
from workloads.stable_offsets import StableOffsets
from workloads.transactional_producer import Asked, OpenTransaction, TransactionalProducer

#: Both log partitions are led by one broker, and transactions are coordinated by the other one.
LEADER, COORDINATOR = 0, 1
PARTITIONS: Final = 2
#: One copy: whoever has it leads.
SETTINGS: Final = {
    "enable.idempotence": True,
    "replication.factor": 1,
    "request.timeout.ms": 4_000,
    "delivery.timeout.ms": 90_000,
    "transaction.timeout.ms": 120_000,
    "isolation.level": "read_committed",
}
#: Enough transactional ids for some to be coordinated by each broker.
IDS: Final = 12
LIMIT_US: Final = 150_000_000
#: TCP sends again at the latest after as long again as it could not; a busy machine needs more.
LATE_FACTOR, LATE_MORE_US = 1, 10_000_000

Late = Literal["end", "marker", "nothing"]
Run = tuple[ClientName, Asked, Late]
CLIENT_NAMES: Final[tuple[ClientName, ...]] = ("confluent-kafka", "kafka-python", "java")


class Seen(NamedTuple):
    """The result: how the two transactions ended, packets that were held, and findings by anomaly.

    ``struck`` says that the first request ended the second transaction on its first log partition.
    """

    first: str
    second: str
    dropped: int
    struck: bool
    counts: dict[str, int]


class Events(list[Event]):
    """A recorder that keeps its events."""

    record = list.append


class Script:
    """One producer with a transactional id, in a topic and with a history of its own."""

    def __init__(self, cluster: Cluster, clients: RealClients, settings: Settings, transactional_id: str) -> None:
        self._cluster = cluster
        topic = f"of-{transactional_id}"
        create_topic(cluster.world.clients.bootstrap, topic, PARTITIONS, settings, ((LEADER,),) * PARTITIONS)
        self._partitions = tuple(str(LogPartition(topic, number)) for number in range(PARTITIONS))
        self._clock = cluster.world.clock
        self._settings = settings
        self._transactional_id = transactional_id
        self._events = Events()
        self._processes = itertools.count()
        self._writers = Writers(clients, self._clock, self._events, self._processes.__next__, SendCounts())
        self._readers = Readers(clients, self._clock, self._events, self._processes.__next__, 250, "read_committed")
        self._faults = OpenFaults(cluster.target, self._clock.now_us, partial(record_fault, self._events, self._clock))
        self._ended: list[OpenTransaction] = []
        self._made = 0

    def play(self, first: Asked, late: Late) -> Seen:
        """Do two transactions, the first of which ends as ``first`` says, with what is ``late`` held."""
        producer = self._producer()
        # The end of a first transaction opens every connection that will be held.
        self._halted(producer, [0], "commit")
        self._end(producer)
        self._halted(producer, [0], first)
        begun_us = self._clock.now_us()
        self._hold(late)
        first_end = self._end(producer)
        if not producer.ready:
            producer.close()
            producer = self._producer()
        self._halted(producer, [0, 1], "commit" if first == "abort" else "abort")
        half = self._stable_end()
        dropped = self._deliver()
        limit_us = LATE_FACTOR * (self._clock.now_us() - begun_us) + LATE_MORE_US
        struck = late != "nothing" and self._until_beyond(half, limit_us)
        second_end = self._end(producer)
        producer.close()
        self._read()
        verdict = judge_events(self._events)
        return Seen(_said(first_end), _said(second_end), dropped, struck, dict(verdict.counts))

    def _producer(self) -> TransactionalProducer:
        producer = TransactionalProducer(
            self._writers,
            self._partitions,
            self._transactional_id,
            self._made,
            lambda _, ended: self._ended.append(ended),
        )
        self._made += 1
        producer.init(lambda _: None)
        self._until(lambda: producer.ready)
        return producer

    def _halted(self, producer: TransactionalProducer, partitions: Sequence[int], asked: Asked) -> None:
        """Begin a transaction with a write to each log partition, the first of which is acknowledged."""
        halted: list[bool] = []
        writes = [DueWrite(0, 0, partition, b"key", 0) for partition in partitions]
        producer.begin(writes, asked, lambda: halted.append(True))
        self._until(lambda: bool(halted))

    def _end(self, producer: TransactionalProducer) -> OpenTransaction:
        """Let the producer write the rest, and end the transaction."""
        before = len(self._ended)
        producer.resume()
        self._until(lambda: len(self._ended) > before)
        return self._ended[-1]

    def _hold(self, late: Late) -> None:
        if late == "nothing":
            return
        links = {"end": Link(CLIENTS, COORDINATOR), "marker": Link(COORDINATOR, LEADER)}
        fault = HoldConnections(Role(RoleKind.NAMED, pick=COORDINATOR), Shape.ISOLATE)
        receipt = self._faults.begin(fault, Aim(links=(links[late],)), Cause("connection", late, str(fault.role)))
        assert receipt.took_effect, receipt.reason

    def _deliver(self) -> int:
        """The packets that were dropped until now."""
        self._faults.end_all()
        dropped = [receipt.end_evidence.get("dropped", {}) for receipt in self._faults.receipts]
        return sum(packets for links in dropped if isinstance(links, dict) for packets in links.values())

    def _stable_end(self) -> int:
        answers: list[Offsets] = []
        consumer = self._readers.clients.consumer(next(self._processes), isolation="read_committed")
        consumer.end_offsets([self._partitions[0]], answers.append)
        self._until(lambda: bool(answers))
        consumer.close()
        return answers[0].offsets[self._partitions[0]]

    def _until_beyond(self, offset: int, limit_us: int) -> bool:
        """True once the last stable offset is beyond ``offset``: then no transaction is open there."""
        until_us = self._clock.now_us() + limit_us
        while self._clock.now_us() < until_us:
            if self._stable_end() > offset:
                return True
            self._cluster.until(lambda: False, 500_000)
        return False

    def _read(self) -> None:
        """Ask until no transaction is open, write afresh behind the last marker, and read all of the log."""
        stable = StableOffsets(self._readers, self._settings)
        stable.start(self._partitions)
        self._until(lambda: stable.finished)
        stable.end()
        recovery = RecoveryWrites(self._writers, self._partitions, acks=self._settings.acks)
        recovery.start()
        self._until(lambda: recovery.finished)
        recovery.end()
        drain = Drain(self._readers, self._partitions, unhealthy={}, consumers=1)
        drain.start()
        self._until(lambda: drain.finished)
        drain.end()

    def _until(self, condition: Callable[[], bool]) -> None:
        assert self._cluster.until(condition, LIMIT_US)


def _said(transaction: OpenTransaction) -> str:
    """The end of it, as its producer knows."""
    end = transaction.end
    if end is None or end.type is EventType.INFO:
        return f"{transaction.asked} unknown ({'no answer' if end is None else end.error})"
    return "committed" if end.type is EventType.OK else "aborted"


def played(version: str, runs: Sequence[Run], directory: Path, client_version: str = "") -> dict[Run, Seen]:
    """Play each client, first end and late request on one new cluster of this release."""
    settings = Settings.from_mapping(SETTINGS | rules_of(version))
    workload = WorkloadPlan(producers=IDS)
    world = kafka_world(
        RunSpec(
            world=Kafka(version=version, host=Namespaces()),
            cell="cell/connection",
            family="connection",
            settings=settings.to_mapping(),
            workload=workload,
            faults=FaultPlan(families=("connection",)),
            seed=1,
            brokers=2,
        ),
        directory,
    )
    with ExitStack() as resources:
        resources.callback(world.close)
        world.open()
        cluster = Cluster(world, directory)
        ids = iter(_ids_of_coordinator(cluster, workload))
        seen: dict[Run, Seen] = {}
        for client, first, late in runs:
            asked = Kafka(version=version, client=client, client_version=client_version)
            with ExitStack() as own:
                clients = cluster.clients(client_library(asked, directory, own))
                own.callback(clients.close, 10)
                seen[client, first, late] = Script(cluster, clients, settings, next(ids)).play(first, late)
        return seen


def _ids_of_coordinator(cluster: Cluster, workload: WorkloadPlan) -> list[str]:
    """The transactional ids that COORDINATOR serves, once some producer has asked for one."""
    producer = cluster.world.clients.producer(cluster.next_process(), "any")
    assert producer.transactions is not None
    answers: list[object] = []
    producer.transactions.init(answers.append)
    assert cluster.until(lambda: bool(answers), LIMIT_US)
    producer.close()
    assert cluster.until(lambda: len(cluster.target.view().transaction_coordinators) == IDS, LIMIT_US)
    serving = cluster.target.view().transaction_coordinators
    return [name for name, node in zip(workload.transactional_ids, serving, strict=True) if node == COORDINATOR]


def main() -> None:
    """Play what is asked for, and say what was found; the exit code is 1 where a promise of transactions broke."""
    parser = script_options(__doc__)
    parser.add_argument("--client-version", default="", help="release of the Java client; else that of the brokers")
    parser.add_argument("--late", choices=("end", "marker", "nothing"), default="end")
    parser.add_argument("--client", choices=CLIENT_NAMES, action="append", help="else all three")
    parser.add_argument("--first", choices=("abort", "commit"), default="abort", help="how the first one ends")
    asked = parser.parse_args()
    runs = [(client, asked.first, asked.late) for client in asked.client or CLIENT_NAMES]
    with tempfile.TemporaryDirectory() as directory:
        plays = played(asked.version, runs, Path(directory), asked.client_version)
    for (client, _, late), seen in plays.items():
        findings = ", ".join(f"{count} {name}" for name, count in sorted(seen.counts.items())) or "nothing"
        sys.stdout.write(
            f"{client}, late: {late}; packets held: {seen.dropped}\n"
            f"  first transaction, {seen.first}; second, {seen.second}; ended by the first's request: {seen.struck}\n"
            f"  found: {findings}\n"
        )
    sys.exit(any(seen.counts for seen in plays.values()))


if __name__ == "__main__":
    main()

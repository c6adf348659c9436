"""Finding 009: a request to end a transaction arrives late, in the producer's next transaction, and ends that.

A producer ends a transaction while one connection is held: its own to the transaction's coordinator (``end``), or that
of the coordinator to the leader of the log partition (``marker``). The asker gives up, closes the connection, and
asks again on a new one, with success. Then the producer begins its next transaction, and writes half of it; the first
request is delivered; the producer writes the other half, and ends it the other way. What happened is recorded and
judged as that of every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, Literal, NamedTuple

from checkers import check_rows
from harness.lab.findings.playable import InUse, PlayableFinding, Played, Way, expects_defect, expects_nothing
from harness.lab.findings.script import Script
from harness.lab.findings.stage import FindingStage, NotObservedError, OpenCluster, rules_of
from harness.records.fault_events import record_fault
from harness.worlds.clients import RealClients
from harness.worlds.real.topic import create_topic
from nemesis.cluster import CLIENTS, Link
from nemesis.faults import Aim, HoldConnections
from nemesis.open_faults import Cause, OpenFaults
from nemesis.plan import FaultPlan
from nemesis.roles import Role, RoleKind
from nemesis.topology import Shape
from workloads import EventType, LogPartition, Settings, WorkloadPlan
from workloads.driver import (
    Asked,
    Drain,
    DueWrite,
    OpenTransaction,
    Readers,
    RecoveryWrites,
    SendCounts,
    StableOffsets,
    TransactionalProducer,
    Writers,
)
from workloads.history import HistoryInMemory

#: Both log partitions are led by one broker, and transactions are coordinated by the other one.
LEADER, COORDINATOR = 0, 1
PARTITIONS: Final = 2
#: One copy: the broker that has it leads.
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
#: TCP sends again at the latest after as long again as it could not; a busy machine needs more.
LATE_FACTOR, LATE_MORE_US = 1, 10_000_000

Late = Literal["end", "marker", "nothing"]


class LateSeen(NamedTuple):
    """The result: how the two transactions ended, packets that were held, and findings of checkers by anomaly.

    ``struck`` says that the first request ended the second transaction on its first log partition.
    """

    first: str
    second: str
    dropped: int
    struck: bool
    counts: dict[str, int]


class LateEnd(Script):
    """One producer with a transactional id, in a topic and with a history of its own."""

    def __init__(self, cluster: OpenCluster, clients: RealClients, settings: Settings, transactional_id: str) -> None:
        super().__init__(cluster, clients)
        topic = f"of-{transactional_id}"
        create_topic(cluster.world.clients.bootstrap, topic, PARTITIONS, settings, ((LEADER,),) * PARTITIONS)
        self._partitions = tuple(str(LogPartition(topic, number)) for number in range(PARTITIONS))
        self._clock = cluster.world.clock
        self._settings = settings
        self._transactional_id = transactional_id
        self._history = HistoryInMemory()
        self._writers = Writers(clients, self._clock, self._history, cluster.next_process, SendCounts())
        self._readers = Readers(clients, self._clock, self._history, cluster.next_process, 250, "read_committed")
        self._faults = OpenFaults(cluster.target, self._clock.now_us, partial(record_fault, self._history, self._clock))
        self._ended: list[OpenTransaction] = []
        self._made = 0

    def play(self, first: Asked, late: Late) -> LateSeen:
        """Do two transactions; the first ends as ``first`` says, with what is ``late`` held."""
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
        # Beyond it no transaction is open there.
        struck = late != "nothing" and self.cluster.until(lambda: self._stable_end() > half, limit_us)
        second_end = self._end(producer)
        producer.close()
        self._read()
        verdict = check_rows(self._history.rows, name=self._transactional_id)
        return LateSeen(_said(first_end), _said(second_end), dropped, struck, dict(verdict.counts))

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
        self.wait("the producer is in charge of its id", lambda: producer.ready)
        return producer

    def _halted(self, producer: TransactionalProducer, partitions: Sequence[int], asked: Asked) -> None:
        """Begin a transaction with a write to each log partition, and wait until the first one is acknowledged."""
        halted: list[bool] = []
        writes = [DueWrite(0, 0, partition, b"key", 0) for partition in partitions]
        producer.begin(writes, asked, lambda: halted.append(True))
        self.wait("the first half of a transaction is acknowledged", lambda: bool(halted))

    def _end(self, producer: TransactionalProducer) -> OpenTransaction:
        """Let the producer write the rest, and end the transaction."""
        before = len(self._ended)
        producer.resume()
        self.wait("a transaction ends", lambda: len(self._ended) > before)
        return self._ended[-1]

    def _hold(self, late: Late) -> None:
        if late == "nothing":
            return
        links = {"end": Link(CLIENTS, COORDINATOR), "marker": Link(COORDINATOR, LEADER)}
        fault = HoldConnections(Role(RoleKind.NAMED, pick=COORDINATOR), Shape.ISOLATE)
        receipt = self._faults.begin(fault, Aim(links=(links[late],)), Cause("connection", late, str(fault.role)))
        if not receipt.took_effect:
            raise NotObservedError(f"no connection could be held: {receipt.reason}")

    def _deliver(self) -> int:
        """The packets that were dropped until now."""
        self._faults.end_all()
        dropped = [receipt.end_evidence.get("dropped", {}) for receipt in self._faults.receipts]
        return sum(int(str(packets)) for links in dropped if isinstance(links, dict) for packets in links.values())

    def _stable_end(self) -> int:
        return self.end(self._partitions[0], "read_committed")

    def _read(self) -> None:
        """Ask until no transaction is open, write afresh behind the last marker, and read all of the log."""
        stable = StableOffsets(self._readers, self._settings)
        stable.start(self._partitions)
        self.wait("no transaction is open", lambda: stable.finished)
        stable.end()
        recovery = RecoveryWrites(self._writers, self._partitions, acks=self._settings.acks)
        recovery.start()
        self.wait("fresh writes are acknowledged", lambda: recovery.finished)
        recovery.end()
        drain = Drain(self._readers, self._partitions, unhealthy={}, consumers=1)
        drain.start()
        self.wait("the log is read to its end", lambda: drain.finished)
        drain.end()


def _said(transaction: OpenTransaction) -> str:
    """The end of it, as its producer knows."""
    end = transaction.end
    if end is None or end.type is EventType.INFO:
        return f"{transaction.asked} unknown ({'no answer' if end is None else end.error})"
    return "committed" if end.type is EventType.OK else "aborted"


def play(stage: FindingStage, first: Asked, late: Late) -> Played:
    """Play it with a first end and a late request on a new cluster."""
    workload = WorkloadPlan(producers=IDS)
    cluster_of = stage.kafka(
        SETTINGS, namespaces=True, workload=workload, faults=FaultPlan(families=("connection",)), brokers=2
    )
    with ExitStack() as resources:
        library = stage.library(resources)
        cluster = resources.enter_context(cluster_of)
        clients = resources.enter_context(cluster.clients_until_closed(library))
        name = _id_of_coordinator(cluster, workload)
        settings = Settings.from_mapping(SETTINGS | rules_of(stage.version))
        seen = LateEnd(cluster, clients, settings, name).play(first, late)
    if late != "nothing" and not seen.dropped:
        raise NotObservedError("no packet was held, so no request was late")
    return played(seen)


def played(seen: LateSeen) -> Played:
    """It shows where the checkers find an anomaly."""
    words = ", ".join(f"{count} {anomaly}" for anomaly, count in sorted(seen.counts.items())) or "nothing"
    return Played.of(
        [
            f"the first transaction: {seen.first}; packets of its end that were held: {seen.dropped}",
            f"the late request {'ended' if seen.struck else 'did not end'} the second transaction",
            f"the second transaction, by the word of its producer: {seen.second}",
            f"the checkers found: {words}",
        ],
        shown=bool(seen.counts),
    )


def _id_of_coordinator(cluster: OpenCluster, workload: WorkloadPlan) -> str:
    """A transactional id that COORDINATOR serves; a producer has to ask for one before the coordinators are chosen."""
    producer, _ = Script(cluster, cluster.world.clients).transactional("any")
    producer.close()
    cluster.wait("ids have coordinators", lambda: len(cluster.target.view().transaction_coordinators) == IDS)
    serving = cluster.target.view().transaction_coordinators
    names = [name for name, node in zip(workload.transactional_ids, serving, strict=True) if node == COORDINATOR]
    if not names:
        raise NotObservedError(f"broker {COORDINATOR} coordinates none of {IDS} ids")
    return names[0]


#: The first release of Java's client that raises the epoch with every transaction (KIP-890), on brokers that do so too.
_NEW_ENDS: Final = (4, 0, 0)


def _expects_late_end(finding: PlayableFinding, releases: InUse) -> bool | None:
    """It shows with clients that keep their epoch; kafka-python takes a new producer after an end that timed out."""
    if releases.client == "kafka-python" or (releases.client == "java" and releases.library >= _NEW_ENDS):
        return False
    return expects_defect("KAFKA-17754")(finding, releases)


def _expects_late_marker(finding: PlayableFinding, releases: InUse) -> bool | None:
    """A broker refuses a late marker since 4.2, of those that raise the epoch with every transaction."""
    new = releases.client == "java" and releases.library >= _NEW_ENDS
    return expects_defect("KAFKA-19446" if new else "KAFKA-17754")(finding, releases)


FINDING: Final = PlayableFinding(
    "009",
    {
        "end": Way("a producer's abort is late", partial(play, first="abort", late="end"), _expects_late_end),
        "commit": Way("a producer's commit is late", partial(play, first="commit", late="end"), _expects_late_end),
        "marker": Way(
            "a coordinator's marker is late", partial(play, first="abort", late="marker"), _expects_late_marker
        ),
        "nothing": Way("no request is late", partial(play, first="abort", late="nothing"), expects_nothing),
    },
    clients=("confluent-kafka", "java", "kafka-python"),
    minutes=2,
    programs=("ip", "nft", "ss"),
)

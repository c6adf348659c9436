"""A cluster on which the batches of a new producer go wrong: the plays of the findings 001, 003, 004, 005 and 013.

The cluster is a real one and answers everything itself; only the network between it and the producer under test is
slow. Followers are frozen until they are out of the in-sync replicas, so that the leader refuses; the network delivers
a batch late, keeps answers back, or loses one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import Final, NamedTuple

import confluent_kafka

from harness.lab.findings.script import Script
from harness.lab.findings.senders import METADATA_MS, RECORDS, NumberedSender, Reports, SenderKind
from harness.lab.findings.slow_network import BatchAnswer, SentBatch, SlowNetwork
from harness.lab.findings.stage import PARTITIONS, FindingStage, NotObservedError, OpenCluster
from nemesis.cluster import require
from workloads import LogPartition

REFUSED: Final = "NotEnoughReplicasError"
#: A leader that refuses does so at once; a client that it does not answer has twice that time.
_SOON: Final = {"message.timeout.ms": 3_000}
_REFUSED_S: Final = 6.0
#: Settings of the clusters. A machine that stands still for seconds must not move leaders.
SETTINGS: Final = {
    "acks": "all",
    "min.insync.replicas": 2,
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 1_000,
    "replica.lag.time.max.ms": 3_000,
}
#: The limit where nothing shall time out.
DELIVERY_MS: Final = 120_000
#: The limit where the first record shall time out.
_SHORT_DELIVERY_MS: Final = 10_000
#: So often a producer that has no other batch under way sends its first one, until a follower comes back.
_TRIES_OF_ONE: Final = 10
#: Batches of a producer that are known again (KIP-98), and that may be under way over one connection.
UNDER_WAY: Final = 5
#: Between the first batch and the next, whose time shall not be over soon after: a part of the time for delivery.
_APART_SHARE: Final = 1 / 7
#: The batch that is late after the first one was refused.
_SECOND: Final = 2
TOPIC, _ = LogPartition.named(PARTITIONS[0])
#: Below the logger of clients, whose words go to a file of the run.
_LOG: Final = logging.getLogger("harness.worlds.clients.others")


class BatchesSeen(NamedTuple):
    """The end of a try: reports, what went over the wire, and the ``order`` of records in the log."""

    reports: Reports
    sent: list[SentBatch]
    answers: list[BatchAnswer]
    order: list[int]

    @property
    def delivered(self) -> list[int]:
        """Records that were reported as delivered."""
        return sorted(number for number, ended in self.reports.items() if not isinstance(ended, str))

    @property
    def nowhere(self) -> list[int]:
        """Records that were reported as delivered and are not in the log."""
        return sorted(set(self.delivered) - set(self.order))

    @property
    def doubled(self) -> list[int]:
        """Records that are in the log twice."""
        return sorted({number for number in self.order if self.order.count(number) > 1})

    def sentences(self) -> list[str]:
        """Say what was sent, answered, reported, and is in the log."""
        sent = _counted(f"{batch.sequence} (epoch {batch.producer_epoch})" for batch in self.sent)
        answers = _counted(f"{answer.batch.sequence}: {_word(answer.error)}" for answer in self.answers)
        reports = ", ".join(f"{number}: {_report(ended)}" for number, ended in sorted(self.reports.items()))
        return [
            f"sequences of the batches that the client sent: {sent}",
            f"answers of brokers by sequence: {answers}",
            f"reports of the client by record: {reports}",
            f"records in the log, in its order: {', '.join(map(str, self.order)) or 'none'}",
        ]


def _counted(words: Iterable[str]) -> str:
    """These words, each once where it is repeated."""
    runs = [(word, len(list(repeated))) for word, repeated in groupby(words)]
    return ", ".join(f"{word}, {count} times" if count > 1 else word for word, count in runs)


def _word(error: str) -> str:
    return "appended" if error == "NoError" else error.removesuffix("Error")


def _report(ended: int | str | None) -> str:
    if ended is None:
        return "delivered without an offset"
    return f"delivered at {ended}" if isinstance(ended, int) else ended


@contextmanager
def batch_script(
    stage: FindingStage, *, reference: bool = False, in_flight: int = UNDER_WAY, idempotent: bool = True
) -> Iterator[BatchScript]:
    """A new cluster of Kafka, or of the ``reference`` broker, and producers with these settings."""
    with ExitStack() as resources:
        kind = SenderKind(stage, resources, in_flight=in_flight, idempotent=idempotent)
        cluster = stage.reference(SETTINGS) if reference else stage.kafka(SETTINGS)
        yield BatchScript(resources.enter_context(cluster), kind)


class BatchScript(Script):
    """A cluster of three brokers whose first log partition has records of others in it, and a kind of producers."""

    def __init__(self, cluster: OpenCluster, kind: SenderKind) -> None:
        super().__init__(cluster, cluster.world.clients)
        self._kind = kind
        self._writer = self.clients.producer(cluster.next_process())
        servers = [server.split(":") for server in cluster.world.clients.bootstrap]
        self.addresses = {broker: (host, int(port)) for broker, (host, port) in enumerate(servers)}
        cluster.leads()
        self._write()

    @contextmanager
    def _sender(
        self, network: SlowNetwork, broker: int, delivery_ms: int, metadata_ms: int = METADATA_MS
    ) -> Iterator[NumberedSender]:
        """The producer under test; it is closed at the end, and then the network that it speaks over."""
        producer = self._kind.make(self.cluster, network.address(broker), delivery_ms, metadata_ms)
        try:
            yield producer
        finally:
            producer.close()
            network.close()

    @contextmanager
    def _alone(self) -> Iterator[tuple[int, int]]:
        """The followers are frozen until the leader is alone in sync; the leader, and one of those frozen."""
        self._wait_until_well()
        leader = self.cluster.leads()
        followers = sorted(set(self.addresses) - {leader})
        processes = require(self.cluster.target.processes)
        try:
            for follower in followers:
                processes.pause(follower)
            self.wait("the leader is alone in sync", lambda: self._isr() == {leader})
            # The leader learns of it a moment later.
            self.wait("the leader refuses acks=all", lambda: self._refuses(leader))
            yield leader, followers[0]
        finally:
            for follower in followers:
                processes.resume(follower)

    def refuse_all_but_the_last(self, delivery_ms: int, under_way: int) -> BatchesSeen:
        """The fourth batch is delivered when the leader takes acks=all again.

        No answer is given before ``under_way`` batches are sent: Kafka's own client sends nothing new once it has to
        send something again.
        """
        network = SlowNetwork(self.addresses, late=lambda batch: batch.sequence == RECORDS - 1)
        if under_way > 1:
            network.withhold()
        with self._alone() as (leader, follower), self._sender(network, leader, delivery_ms) as producer:
            producer.send(RECORDS)
            self._deliver_the_last(network, follower, under_way)
            self._wait_for_reports(producer, RECORDS)
        return self._seen(producer, network)

    def lose_an_answer(self) -> BatchesSeen:
        """The answer to the first batch is lost; it is refused when it is sent again, and all but the last after it."""
        self._wait_until_well()
        network = SlowNetwork(self.addresses, late=lambda batch: batch.sequence == RECORDS - 1)
        network.withhold()
        with self._sender(network, self.cluster.leads(), DELIVERY_MS) as producer:
            producer.send(1)
            self.wait("the first record is appended", lambda: bool(network.answers))
            with self._alone() as (leader, follower):
                network.cut(leader)
                producer.send(RECORDS - 1)
                self._deliver_the_last(network, follower, RECORDS)
                self._wait_for_reports(producer, RECORDS)
        return self._seen(producer, network)

    def _deliver_the_last(self, network: SlowNetwork, follower: int, under_way: int) -> None:
        """The batches before the last are refused, a follower comes back, and then the last one arrives."""
        self.wait(
            f"{under_way} batches are under way",
            lambda: len({batch.sequence for batch in network.sent}) == under_way,
        )
        network.answer()
        self.wait(
            "the leader refuses all but the last",
            lambda: _refused(network) == set(range(RECORDS - 1)) or len(network.sent) > _TRIES_OF_ONE,
        )
        self._come_back(follower)
        network.deliver()

    def _come_back(self, follower: int) -> None:
        """A follower comes back into the in-sync replicas, and the leader takes acks=all again."""
        require(self.cluster.target.processes).resume(follower)
        self.wait("a follower is in sync again", lambda: len(self._isr()) > 1)
        self._write()

    def refuse_the_first(self, ready_us: int) -> BatchesSeen:
        """The first batch is refused; what is sent next is late until the leader takes acks=all again.

        The producer has ``ready_us`` to make its next request ready before it has the answer.
        """
        network = SlowNetwork(self.addresses, late=lambda _: len(network.sent) == _SECOND)
        network.withhold()
        with self._alone() as (leader, follower), self._sender(network, leader, DELIVERY_MS) as producer:
            producer.send(RECORDS)
            self.wait("the first record is refused", lambda: bool(network.answers))
            self.let_pass(ready_us)
            network.answer()
            self.wait("the next request is under way", lambda: len(network.sent) == _SECOND)
            self._come_back(follower)
            network.deliver()
            self._wait_for_reports(producer, RECORDS)
        return self._seen(producer, network)

    def withhold_answers(self) -> BatchesSeen:
        """All batches are appended, and no answer arrives before the delivery time of the first record is over."""
        self._wait_until_well()
        leader = self.cluster.leads()
        end = self._end()
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold()
        with self._sender(network, leader, _SHORT_DELIVERY_MS) as producer:
            producer.send(1)
            self.wait("the first record is appended", lambda: bool(network.answers))
            # The time of the others is over much later.
            self.let_pass(_SHORT_DELIVERY_MS * 500)
            producer.send(RECORDS - 1)
            self.wait("all records are appended", lambda: self._end() >= end + RECORDS)
            if 0 in producer.reports:
                raise NotObservedError("the first record timed out before the others were appended")
            self.wait("the first record times out", lambda: 0 in producer.reports)
            network.answer()
            self._wait_for_reports(producer, RECORDS)
        return self._seen(producer, network)

    def overtake(self, delivery_ms: int, metadata_ms: int) -> BatchesSeen:
        """Five batches are appended and not answered, two of the next leader are; then the first answers are lost.

        The producer has to learn of the next leader while the five are under way: half of ``delivery_ms``.
        """
        self._wait_until_well()
        old = self.cluster.leads()
        end = self._end()
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold(old)
        with self._sender(network, old, delivery_ms, metadata_ms) as producer:
            for number in range(UNDER_WAY):
                producer.send(1)
                self._wait_for_append(end + number, producer)
                if number == 0:
                    self.let_pass(int(delivery_ms * 1_000 * _APART_SHARE))
            new = min(self._isr() - {old})
            self._move(new)
            for number in (UNDER_WAY, UNDER_WAY + 1):
                producer.send(1)
                self._wait_for_report(number, producer, delivery_ms * 500)
            network.cut(old)
            network.answer()
            self._wait_for_reports(producer, UNDER_WAY + 2)
        return self._seen(producer, network)

    def forget(self, *, killed: bool) -> BatchesSeen:
        """Batches are appended and not answered; the next leader has them, and was killed or shut down and started."""
        self._wait_until_well()
        old = self.cluster.leads()
        end = self._end()
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold(old)
        with self._sender(network, old, DELIVERY_MS) as producer:
            producer.send(RECORDS)
            self.wait("all records are appended", lambda: self._end() == end + RECORDS)
            new = min(self._isr() - {old})
            processes = require(self.cluster.target.processes)
            (processes.kill if killed else processes.stop)(new)
            self.wait(f"broker {new} is out of sync", lambda: new not in self._isr())
            processes.restart(new)
            self._wait_until_well()
            self._move(new)
            network.cut(old)
            network.answer()
            self._wait_for_reports(producer, RECORDS)
        return self._seen(producer, network)

    def _seen(self, producer: NumberedSender, network: SlowNetwork) -> BatchesSeen:
        order = [record.value for record in self.read([PARTITIONS[0]])]
        return BatchesSeen(producer.reports, network.sent, network.answers, producer.numbers_of(order))

    def _wait_until_well(self) -> None:
        self.wait("all brokers run and are in sync", self.cluster.is_well)

    def _wait_for_append(self, offset: int, producer: NumberedSender) -> None:
        """Wait until the log has ``offset``, or the first record timed out."""
        self.wait(f"{offset} is appended", lambda: self._end() > offset or 0 in producer.reports)

    def _wait_for_report(self, number: int, producer: NumberedSender, limit_us: int) -> None:
        """Wait for the report of a record; it may be late."""
        self.cluster.until(lambda: number in producer.reports, limit_us)

    def _wait_for_reports(self, producer: NumberedSender, count: int) -> None:
        self.wait(f"the client has reported {count} records", lambda: len(producer.reports) == count)

    def _move(self, new: int) -> None:
        require(self.cluster.target.leadership).move_leader(PARTITIONS[0], new)
        self.wait(f"broker {new} leads", lambda: self.cluster.leader() == new)

    def _isr(self) -> set[int]:
        return set(self.cluster.target.view().partitions[PARTITIONS[0]].isr)

    def _write(self) -> None:
        """One record of another producer, with acks=all: the leader counts the follower that is back."""
        self.send(self._writer, [(PARTITIONS[0], b"key")])

    def _refuses(self, leader: int) -> bool:
        """True if the leader refuses a record of another producer, which does not try again."""
        ended: list[confluent_kafka.KafkaError | None] = []
        host, port = self.addresses[leader]
        configuration = {"bootstrap.servers": f"{host}:{port}", "acks": "all", "retries": 0, **_SOON}
        producer = confluent_kafka.Producer(configuration, logger=_LOG)
        producer.produce(TOPIC, "other", partition=0, on_delivery=lambda error, _: ended.append(error))
        producer.flush(_REFUSED_S)
        return any(error is not None and error.name() == "NOT_ENOUGH_REPLICAS" for error in ended)

    def _end(self) -> int:
        return self.end(PARTITIONS[0], "read_uncommitted")


def _refused(network: SlowNetwork) -> set[int]:
    """The sequences of batches that the leader refused."""
    return {answer.batch.sequence for answer in network.answers if answer.error == REFUSED}

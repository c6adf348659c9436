"""A cluster on which the batches of a new producer go wrong: the scripts of the findings 001 and 003.

The cluster is a real one and answers everything itself; only the network is slow. For finding 001 both followers are
frozen until they are out of the in-sync replicas; a new producer sends four batches, of which three are refused; the
network delivers the fourth one once a follower is back in sync. For finding 003 it keeps answers back, or loses one.
As a program it leaves the fourth batch to chance, and counts what becomes of many tries:

    python -m tests.harness.clients.first_batches --world kafka --tries 20 --batch-ms 20

For finding 005 the next leader is started again while answers are kept back:

    python -m tests.harness.clients.first_batches --restart kill --client java
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import confluent_kafka

from harness.plan import Kafka, Processes
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.java_client import started_bridge
from harness.worlds.kafka.releases import DEFAULT_VERSION
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from nemesis.cluster import require
from tests.harness.clients.senders import RECORDS, TOPIC, Confluent, Java, Reports, Sender
from tests.harness.clients.slow_network import Answer, Batch, SlowNetwork
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec

REFUSED: Final = "NotEnoughReplicasError"
#: A machine may be busy.
LIMIT_S: Final = 150.0
#: A leader that refuses does so at once.
REFUSED_S: Final = 3.0
#: So many times a producer that has no other batch under way has sent its first one.
TRIES_OF_ONE: Final = 10
#: A machine that stands still for seconds must not move leaders.
PATIENT: Final = {
    "broker.session.timeout.ms": 6_000,
    "broker.heartbeat.interval.ms": 1_000,
    "replica.lag.time.max.ms": 3_000,
}
#: The limit where nothing shall time out.
DELIVERY_MS: Final = 120_000
#: Longer than the script takes, and waited for: only then Java's client gives up what cannot succeed. Each further
#: try has twice the time.
JAVA_DELIVERY_MS: Final = 15_000
#: The limit where the first record shall time out.
SHORT_DELIVERY_MS: Final = 10_000
#: So many batches of a producer are known again (KIP-98), and may be under way over one connection.
UNDER_WAY: Final = 5
#: Between the first batch and the next, whose time shall not be over soon after: such a part of the time for delivery.
APART_SHARE: Final = 1 / 7
#: The batch that is late after the first one was refused, and the time in which a library can make it ready.
SECOND: Final = 2
READY_US: Final = 1_000_000
#: An application that sends every so often, and how many records at least and at most before the follower comes back.
EVERY_US: Final = 20_000
ALONE: Final = (30, 130)


class Seen(NamedTuple):
    """The end of a try: the producer's ``reports``, what went over the wire, and who is in the log, by offset."""

    reports: Reports
    sent: list[Batch]
    answers: list[Answer]
    log: dict[int, int]

    @property
    def nowhere(self) -> list[int]:
        """Records that were reported as delivered and are not in the log."""
        delivered = {number for number, ended in self.reports.items() if not isinstance(ended, str)}
        return sorted(delivered - set(self.log.values()))


@contextmanager
def _closing(producer: Sender, network: SlowNetwork) -> Iterator[Sender]:
    """The producer under test; it is closed at the end, and then the network that it speaks over."""
    try:
        yield producer
    finally:
        producer.close()
        network.close()


class Stage:
    """A cluster of three brokers whose first log partition has records of others in it."""

    def __init__(self, kind: str, directory: Path) -> None:
        settings = {"acks": "all", "min.insync.replicas": 2, **PATIENT}
        if kind == "kafka":
            self._world: RealWorld = kafka_world(spec(settings, world=Kafka()), directory)
        else:
            self._world = processes_world(spec(settings, world=Processes()), directory)
        self._world.open()
        self.cluster = Cluster(self._world, directory)
        servers = [server.split(":") for server in self._world.clients.bootstrap]
        self.addresses = {broker: (host, int(port)) for broker, (host, port) in enumerate(servers)}
        self._write(self.cluster.leads())

    def close(self) -> None:
        self._world.close()

    def until(self, condition: Callable[[], bool]) -> None:
        assert self.cluster.until(condition, int(LIMIT_S * 1e6))

    @contextmanager
    def alone(self) -> Iterator[tuple[int, int]]:
        """The followers are frozen until the leader is alone in sync; the leader, and one of those frozen."""
        self.until(self.cluster.is_well)
        leader = self.cluster.leads()
        followers = sorted(set(self.addresses) - {leader})
        processes = self.cluster.target.processes
        try:
            for follower in followers:
                processes.pause(follower)
            self.until(lambda: self._isr() == {leader})
            # The leader learns of it a moment later.
            self.until(lambda: self._other(leader, REFUSED_S, retries=0) == "NOT_ENOUGH_REPLICAS")
            yield leader, followers[0]
        finally:
            for follower in followers:
                processes.resume(follower)

    def play(self, make: Callable[[str, int], Sender], delivery_ms: int, under_way: int = RECORDS) -> Seen:
        """The fourth batch is delivered when the leader takes acks=all again; ``make`` sends so many before an answer.

        No answer is given before that: Kafka's own client sends nothing new once it has to send something again.
        """
        network = SlowNetwork(self.addresses, late=lambda batch: batch.sequence == RECORDS - 1)
        if under_way > 1:
            network.withhold()
        with self.alone() as (leader, follower):
            end = self._end(leader)
            with _closing(make(network.address(leader), delivery_ms), network) as producer:
                producer.send(RECORDS)
                self._deliver_the_last(network, leader, follower, under_way)
                self.until(lambda: len(producer.reports) == RECORDS)
        return Seen(producer.reports, network.sent, network.answers, self._log(leader, end))

    def lose_an_answer(self, make: Callable[[str, int], Sender]) -> Seen:
        """The answer to the first batch is lost; it is refused when it is sent again, and all but the last after it."""
        self.until(self.cluster.is_well)
        end = self._end(self.cluster.leads())
        network = SlowNetwork(self.addresses, late=lambda batch: batch.sequence == RECORDS - 1)
        network.withhold()
        with _closing(make(network.address(self.cluster.leads()), DELIVERY_MS), network) as producer:
            producer.send(1)
            self.until(lambda: bool(network.answers))
            with self.alone() as (leader, follower):
                network.cut(leader)
                producer.send(RECORDS - 1)
                self._deliver_the_last(network, leader, follower, RECORDS)
                self.until(lambda: len(producer.reports) == RECORDS)
        return Seen(producer.reports, network.sent, network.answers, self._log(leader, end))

    def _deliver_the_last(self, network: SlowNetwork, leader: int, follower: int, under_way: int) -> None:
        """The batches before the last are refused, a follower comes back, and then the last one arrives."""
        self.until(lambda: len({batch.sequence for batch in network.sent}) == under_way)
        network.answer()
        self.until(lambda: _refused(network) == set(range(RECORDS - 1)) or len(network.sent) > TRIES_OF_ONE)
        self.cluster.target.processes.resume(follower)
        self.until(lambda: len(self._isr()) > 1)
        self._write(leader)
        network.deliver()

    def refuse_the_first(self, make: Callable[[str, int], Sender], ready_us: int = READY_US) -> Seen:
        """The first batch is refused; what is sent next is late until the leader takes acks=all again.

        ``make`` has ``ready_us`` to make its next request ready before it has the answer.
        """
        network = SlowNetwork(self.addresses, late=lambda _: len(network.sent) == SECOND)
        network.withhold()
        with self.alone() as (leader, follower):
            end = self._end(leader)
            with _closing(make(network.address(leader), DELIVERY_MS), network) as producer:
                producer.send(RECORDS)
                self.until(lambda: bool(network.answers))
                self.cluster.until(lambda: False, ready_us)
                network.answer()
                self.until(lambda: len(network.sent) == SECOND)
                self.cluster.target.processes.resume(follower)
                self.until(lambda: len(self._isr()) > 1)
                self._write(leader)
                network.deliver()
                self.until(lambda: len(producer.reports) == RECORDS)
        return Seen(producer.reports, network.sent, network.answers, self._log(leader, end))

    def withhold_answers(self, make: Callable[[str, int], Sender]) -> Seen:
        """All batches are appended, and no answer arrives before the delivery time of the first record is over."""
        self.until(self.cluster.is_well)
        leader = self.cluster.leads()
        end = self._end(leader)
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold()
        with _closing(make(network.address(leader), SHORT_DELIVERY_MS), network) as producer:
            producer.send(1)
            self.until(lambda: bool(network.answers))
            # The time of the others is over much later.
            self.cluster.until(lambda: False, SHORT_DELIVERY_MS * 500)
            producer.send(RECORDS - 1)
            while self._end(leader) < end + RECORDS:
                assert 0 not in producer.reports
            self.until(lambda: 0 in producer.reports)
            network.answer()
            self.until(lambda: len(producer.reports) == RECORDS)
        return Seen(producer.reports, network.sent, network.answers, self._log(leader, end))

    def overtake(self, make: Callable[[str, int], Sender], delivery_ms: int) -> Seen:
        """Five batches are appended and not answered, two of the next leader are; then the first answers are lost.

        ``make`` has to learn of the next leader while the five are under way: half of ``delivery_ms``.
        """
        self.until(self.cluster.is_well)
        old = self.cluster.leads()
        end = self._end(old)
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold(old)
        with _closing(make(network.address(old), delivery_ms), network) as producer:
            for number in range(UNDER_WAY):
                producer.send(1)
                self.until(lambda number=number: self._end(old) > end + number or 0 in producer.reports)
                if number == 0:
                    self.cluster.until(lambda: False, int(delivery_ms * 1_000 * APART_SHARE))
            new = min(self._isr() - {old})
            self._move(new)
            for number in (UNDER_WAY, UNDER_WAY + 1):
                producer.send(1)
                self.cluster.until(lambda number=number: number in producer.reports, delivery_ms * 500)
            network.cut(old)
            network.answer()
            self.until(lambda: len(producer.reports) == UNDER_WAY + 2)
        return Seen(producer.reports, network.sent, network.answers, self._log(new, end))

    def forget(self, make: Callable[[str, int], Sender], *, killed: bool) -> Seen:
        """Batches are appended and not answered; the next leader has them, and was killed or shut down and started."""
        self.until(self.cluster.is_well)
        old = self.cluster.leads()
        end = self._end(old)
        network = SlowNetwork(self.addresses, late=lambda _: False)
        network.withhold(old)
        with _closing(make(network.address(old), DELIVERY_MS), network) as producer:
            producer.send(RECORDS)
            self.until(lambda: self._end(old) == end + RECORDS)
            new = min(self._isr() - {old})
            processes = self.cluster.target.processes
            (processes.kill if killed else processes.stop)(new)
            self.until(lambda: new not in self._isr())
            processes.restart(new)
            self.until(self.cluster.is_well)
            self._move(new)
            network.cut(old)
            network.answer()
            self.until(lambda: len(producer.reports) == RECORDS)
        return Seen(producer.reports, network.sent, network.answers, self._log(new, end))

    def chance(self, make: Callable[[str, int], Sender], batch_s: float) -> Seen:
        """As many records as an application sends while a follower comes back, over a link that is slow or not."""
        network = SlowNetwork(self.addresses, late=lambda _: False, batch_s=batch_s)
        with self.alone() as (leader, follower):
            end = self._end(leader)
            sent, before = 0, random.randint(*ALONE)
            with _closing(make(network.address(leader), DELIVERY_MS), network) as producer:
                while len(self._isr()) < 2:
                    producer.send(1)
                    sent += 1
                    self.cluster.until(lambda: False, EVERY_US)
                    if sent == before:
                        self.cluster.target.processes.resume(follower)
                self.until(lambda: len(producer.reports) == sent)
        return Seen(producer.reports, network.sent, network.answers, self._log(leader, end))

    def _move(self, new: int) -> None:
        require(self.cluster.target.leadership).move_leader(PARTITIONS[0], new)
        self.until(lambda: self.cluster.leader() == new)

    def _isr(self) -> set[int]:
        return set(self.cluster.target.view().partitions[PARTITIONS[0]].isr)

    def _write(self, leader: int) -> None:
        """One record of somebody else, with acks=all: the leader counts the follower that is back."""
        assert self._other(leader, LIMIT_S) is None

    def _other(self, leader: int, limit_s: float, **asked: object) -> str | None:
        """The end of a record of another producer within ``limit_s``: the name of its error, or None."""
        ended: list[confluent_kafka.KafkaError | None] = []
        configuration = {"acks": "all", "message.timeout.ms": int(limit_s * 1e3), **asked}
        producer = confluent_kafka.Producer({"bootstrap.servers": self._server(leader), **configuration})
        producer.produce(TOPIC, "other", partition=0, on_delivery=lambda error, _: ended.append(error))
        producer.flush(2 * limit_s)
        return ended[0].name() if ended[0] else None

    def _end(self, leader: int) -> int:
        with self._consumer(leader) as consumer:
            _, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(TOPIC, 0), timeout=LIMIT_S)
        return int(end)

    def _log(self, leader: int, begin: int) -> dict[int, int]:
        """The records of the producer under test, which are numbers as text, from ``begin`` on."""
        end, records = self._end(leader), dict[int, bytes]()
        deadline = time.monotonic() + LIMIT_S
        with self._consumer(leader) as consumer:
            consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, begin)])
            while end - 1 not in records and begin < end:
                assert time.monotonic() < deadline
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    records[message.offset()] = message.value()
        return {offset: int(value) for offset, value in records.items() if value.strip().isdigit()}

    @contextmanager
    def _consumer(self, leader: int) -> Iterator[confluent_kafka.Consumer]:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._server(leader), "group.id": "nobody"})
        try:
            yield consumer
        finally:
            consumer.close()

    def _server(self, broker: int) -> str:
        host, port = self.addresses[broker]
        return f"{host}:{port}"


def _refused(network: SlowNetwork) -> set[int]:
    """The sequences of batches that the leader refused."""
    return {answer.batch.sequence for answer in network.answers if answer.error == REFUSED}


def _restart(world: str, client: str, *, killed: bool) -> None:
    """Print what is in the log, and what was reported, when the next leader was started again."""
    with tempfile.TemporaryDirectory() as directory:
        make: Callable[[str, int], Sender] = Confluent
        if client == "java":
            make = partial(Java, bridge=started_bridge(find(DEFAULT_VERSION), Path(directory)))
        stage = Stage(world, Path(directory))
        try:
            seen = stage.forget(make, killed=killed)
        finally:
            stage.close()
    for answer in seen.answers:
        sys.stdout.write(f"{answer}\n")
    sys.stdout.write(f"log: {seen.log}\nreported: {seen.reports}\n")


def main() -> None:
    """Count tries that end with records which were reported as delivered and are not in the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", choices=("processes", "kafka"), default="kafka")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--batch-ms", type=float, default=0.0)
    parser.add_argument("--restart", choices=("kill", "shutdown"))
    parser.add_argument("--client", choices=("java", "librdkafka"), default="java")
    asked = parser.parse_args()
    if asked.restart:
        _restart(asked.world, asked.client, killed=asked.restart == "kill")
        return
    counted: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        stage = Stage(asked.world, Path(directory))
        try:
            for number in range(asked.tries):
                seen = stage.chance(Confluent, asked.batch_ms / 1e3)
                errors = sum(isinstance(ended, str) for ended in seen.reports.values())
                refused = sum(answer.error == REFUSED for answer in seen.answers)
                counted["lost" if seen.nowhere else "none"] += 1
                sys.stdout.write(
                    f"{number}: {len(seen.reports)} records, {refused} refusals, {errors} errors, "
                    f"reported and nowhere: {seen.nowhere}\n"
                )
                sys.stdout.flush()
        finally:
            stage.close()
    sys.stdout.write(f"{dict(counted)}\n")


if __name__ == "__main__":
    main()

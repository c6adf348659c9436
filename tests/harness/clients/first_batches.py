"""Four batches of a new producer, of which the leader refuses three for want of in-sync replicas: finding 001.

The cluster is a real one and answers everything itself. Both followers are frozen until they are out of the in-sync
replicas; a new producer sends its batches; the network delivers the fourth one once a follower is back in sync.
As a program it leaves the fourth to chance, and counts what becomes of many tries:

    python -m tests.harness.clients.first_batches --world kafka --tries 20 --batch-ms 20
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import confluent_kafka
import kafka

from harness.java import java_program
from harness.plan import Kafka, Processes
from harness.worlds.kafka import kafka_world
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.releases import DEFAULT_VERSION
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld
from tests.harness.clients.slow_network import Answer, Batch, SlowNetwork
from tests.harness.worlds.processes.conftest import PARTITIONS, Cluster, spec

TOPIC: Final = "ackproof"
RECORDS: Final = 4
REFUSED: Final = "NotEnoughReplicasError"
#: Java is compiled first, on a machine that may be busy.
LIMIT_S: Final = 90.0
REQUEST_MS: Final = 30_000
#: What a producer reported of each record, by its number: an offset, None where success had none, or an error.
Reports = dict[int, int | str | None]


class Sender(Protocol):
    """A new producer of a library, which sends records, a batch each, and keeps what it reports of them."""

    reports: Reports

    def send(self, count: int) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, bootstrap: str, delivery_ms: int) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "batch.num.messages": 1,
                "linger.ms": 0,
                "request.timeout.ms": min(REQUEST_MS, delivery_ms),
                "message.timeout.ms": delivery_ms,
            },
            logger=logging.getLogger(__name__),
        )
        self._polling = threading.Event()
        threading.Thread(target=self._poll, daemon=True).start()

    def send(self, count: int) -> None:
        for number in range(self._sent, self._sent + count):
            self._producer.produce(TOPIC, str(number), partition=0, on_delivery=self._ended)
        self._sent += count

    def close(self) -> None:
        self._polling.set()
        self._producer.purge()

    def _poll(self) -> None:
        while not self._polling.is_set():
            self._producer.poll(0.02)

    def _ended(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        self.reports[int(message.value())] = error.name() if error else message.offset()


class KafkaPython:
    """kafka-python."""

    def __init__(self, bootstrap: str, delivery_ms: int) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            enable_idempotence=True,
            max_in_flight_requests_per_connection=5,
            batch_size=1,
            linger_ms=0,
            request_timeout_ms=min(REQUEST_MS, delivery_ms),
            delivery_timeout_ms=delivery_ms,
        )

    def send(self, count: int) -> None:
        for number in range(self._sent, self._sent + count):
            future = self._producer.send(TOPIC, str(number).encode(), partition=0)
            future.add_callback(lambda metadata, number=number: self.reports.update({number: metadata.offset}))
            future.add_errback(lambda error, number=number: self.reports.update({number: type(error).__name__}))
        self._sent += count

    def close(self) -> None:
        self._producer.close(0)


class Java:
    """Kafka's own client, in a process; it sends when it has started."""

    def __init__(self, bootstrap: str, delivery_ms: int) -> None:
        self.reports: Reports = {}
        source = Path(__file__).with_name("FourRecords.java")
        jars = str(find(DEFAULT_VERSION).home / "libs" / "*")
        command = [java_program(), "-cp", jars, str(source), bootstrap, TOPIC, str(delivery_ms)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def send(self, count: int) -> None:
        assert count == RECORDS
        threading.Thread(target=self._read, daemon=True).start()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, ended = line.split()
            self.reports[int(number)] = int(ended) if ended.isdigit() else ended


class Seen(NamedTuple):
    """How a try ended: the producer's ``reports``, what went over the wire, and who is in the log, by offset."""

    reports: Reports
    sent: list[Batch]
    answers: list[Answer]
    log: dict[int, int]

    @property
    def nowhere(self) -> list[int]:
        """Records that were reported as delivered and are not in the log."""
        delivered = {number for number, ended in self.reports.items() if not isinstance(ended, str)}
        return sorted(delivered - set(self.log.values()))


class Stage:
    """A cluster of three brokers whose first log partition has records of others in it."""

    def __init__(self, kind: str, directory: Path) -> None:
        settings = {"acks": "all", "min.insync.replicas": 2}
        if kind == "kafka":
            self._world: RealWorld = kafka_world(spec(settings, world=Kafka()), directory)
        else:
            self._world = processes_world(spec(settings, world=Processes()), directory)
        self._world.open()
        self.cluster = Cluster(self._world, directory)
        servers = [server.split(":") for server in self._world.clients._bootstrap]
        self.addresses = {broker: (host, int(port)) for broker, (host, port) in enumerate(servers)}
        self.cluster.write(1, self.cluster.next_process())

    def close(self) -> None:
        self._world.close()

    def until(self, condition: Callable[[], bool]) -> None:
        assert self.cluster.until(condition, int(LIMIT_S * 1e6))

    def shrink(self) -> tuple[int, list[int]]:
        """Freeze the followers until the leader is alone in sync; the leader, and those frozen."""
        self.until(self.cluster.is_well)
        leader = self.cluster.leads()
        followers = sorted(set(self.addresses) - {leader})
        for follower in followers:
            self.cluster.target.processes.pause(follower)
        self.until(lambda: self._isr() == {leader})
        return leader, followers

    def play(self, make: Callable[[str, int], Sender], delivery_ms: int) -> Seen:
        """The fourth batch is delivered when the leader takes acks=all again."""
        leader, followers = self.shrink()
        network = SlowNetwork({leader: self.addresses[leader]}, late=lambda batch: batch.sequence == RECORDS - 1)
        end = self.cluster.end_offset()
        producer = make(network.address(leader), delivery_ms)
        try:
            producer.send(RECORDS)
            self.until(lambda: _refused(network) >= {0} and _waits(network))
            self.cluster.target.processes.resume(followers[0])
            self.until(lambda: len(self._isr()) > 1)
            self.cluster.write(1, self.cluster.next_process())
            network.deliver()
            self.until(lambda: len(producer.reports) == RECORDS)
        finally:
            producer.close()
            self.cluster.target.processes.resume(followers[1])
            network.close()
        return Seen(producer.reports, network.sent, network.answers, self._log(end))

    def chance(self, make: Callable[[str, int], Sender], batch_s: float) -> Seen:
        """As many records as an application sends while a follower comes back, over a link that is slow or not."""
        leader, followers = self.shrink()
        network = SlowNetwork({leader: self.addresses[leader]}, late=lambda batch: False, batch_s=batch_s)
        end = self.cluster.end_offset()
        producer = make(network.address(leader), REQUEST_MS)
        sent = 0
        try:
            self.cluster.target.processes.resume(followers[0])
            while len(self._isr()) < 2 or sent < 20:
                producer.send(1)
                sent += 1
                self.cluster.until(lambda: False, 20_000)
            self.until(lambda: len(producer.reports) == sent)
        finally:
            producer.close()
            self.cluster.target.processes.resume(followers[1])
            network.close()
        return Seen(producer.reports, network.sent, network.answers, self._log(end))

    def _isr(self) -> set[int]:
        return set(self.cluster.target.view().partitions[PARTITIONS[0]].isr)

    def _log(self, begin: int) -> dict[int, int]:
        """The records of the producer under test, which are numbers as text, from ``begin`` on."""
        end = self.cluster.end_offset()
        servers = ",".join(f"{host}:{port}" for host, port in self.addresses.values())
        consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "nobody"})
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, begin)])
        found: dict[int, bytes] = {}
        deadline = time.monotonic() + LIMIT_S
        while end - 1 not in found and begin < end:
            assert time.monotonic() < deadline
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.offset()] = message.value()
        consumer.close()
        return {offset: int(value) for offset, value in found.items() if value.strip().isdigit()}


def _refused(network: SlowNetwork) -> set[int]:
    return {answer.batch.sequence for answer in network.answers if answer.error == REFUSED}


def _waits(network: SlowNetwork) -> bool:
    """Either the fourth batch is under way, or the producer sends one at a time."""
    return network.sent[-1].sequence == RECORDS - 1 or len(network.sent) > RECORDS * 3


def main() -> None:
    """Count tries that end with records which were reported as delivered and are not in the log."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", choices=("processes", "kafka"), default="kafka")
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--batch-ms", type=float, default=0.0)
    asked = parser.parse_args()
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

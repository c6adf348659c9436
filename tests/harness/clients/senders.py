"""New producers of three libraries that send numbered records, a batch each, and keep what is reported of them."""

from __future__ import annotations

import logging
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import confluent_kafka
import kafka

from harness.machine.java import java_program
from harness.worlds.kafka.installation import find
from harness.worlds.kafka.releases import DEFAULT_VERSION

TOPIC: Final = "ackproof"
#: How many records a script sends.
RECORDS: Final = 4

#: metadata.max.age.ms, the libraries' default: longer than any script.
METADATA_MS: Final = 300_000

#: What a producer reported of each record, by its number: an offset, None where success had none, or an error.
Reports = dict[int, int | str | None]


def request_ms(delivery_ms: int) -> int:
    """Kafka's own client refuses a request timeout above the delivery timeout."""
    return delivery_ms // 2


#: It starts in half the time; nothing here lasts long enough for a better compiler.
QUICK_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class Sender(Protocol):
    """A new producer of a library, which sends records, a batch each, and keeps what it reports of them."""

    reports: Reports

    def send(self, count: int) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """librdkafka."""

    def __init__(self, bootstrap: str, delivery_ms: int, in_flight: int = 5, metadata_ms: int = METADATA_MS) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": in_flight,
                "batch.num.messages": 1,
                "linger.ms": 0,
                "topic.metadata.refresh.interval.ms": metadata_ms,
                "request.timeout.ms": request_ms(delivery_ms),
                "message.timeout.ms": delivery_ms,
                # Scripts wait for batches that are refused many times.
                "retry.backoff.max.ms": 200,
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
            with suppress(confluent_kafka.KafkaException):  # a fatal error; reports follow it
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
            request_timeout_ms=request_ms(delivery_ms),
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
    """Kafka's own client, in a process of its own; it sends when it has started. ``compile_java`` made ``classes``."""

    def __init__(self, bootstrap: str, delivery_ms: int, classes: Path, metadata_ms: int = METADATA_MS) -> None:
        self.reports: Reports = {}
        times_ms = (request_ms(delivery_ms), delivery_ms, metadata_ms)
        configuration = [bootstrap, TOPIC, *map(str, times_ms)]
        command = [java_program(), *QUICK_JAVA, "-cp", f"{classes}:{_jars()}", "NumberedRecords", *configuration]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, count: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, ended = line.split()
            self.reports[int(number)] = int(ended) if ended.isdigit() else ended


def compile_java(classes: Path) -> None:
    """Compile the program of Kafka's own client into the directory ``classes``."""
    source = Path(__file__).with_name("NumberedRecords.java")
    subprocess.run(["javac", "-cp", _jars(), "-d", str(classes), str(source)], check=True)


def _jars() -> str:
    return str(find(DEFAULT_VERSION).home / "libs" / "*")

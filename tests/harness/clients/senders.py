"""New producers of three libraries that send numbered records, a batch each, and keep what is reported of them."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

import confluent_kafka
import kafka

from harness.clients.java import frames
from harness.clients.java.bridge import Bridge, error_in
from harness.clients.java.client import RemoteClient
from harness.clients.java.frames import Answer, End, Method

TOPIC: Final = "ackproof"
#: The number of records that a script sends.
RECORDS: Final = 4

#: metadata.max.age.ms, the libraries' default: longer than any script.
METADATA_MS: Final = 300_000

#: The reports of a producer on each record, by its number: an offset, None where success had none, or an error.
Reports = dict[int, int | str | None]


def request_ms(delivery_ms: int) -> int:
    """Kafka's own client refuses a request timeout above the delivery timeout."""
    return delivery_ms // 2


#: No batch has room for another record of this length.
PADDING: Final = 400


class Sender(Protocol):
    """A new producer of a library, which sends records, a batch each, and keeps what it reports of them."""

    reports: Reports

    def send(self, count: int) -> None: ...

    def close(self) -> None: ...


class Confluent:
    """The producer of librdkafka."""

    def __init__(
        self,
        bootstrap: str,
        delivery_ms: int,
        in_flight: int = 5,
        metadata_ms: int = METADATA_MS,
        *,
        idempotent: bool = True,
    ) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
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
    """The producer of kafka-python."""

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
    """Kafka's own client, in the JVM of ``bridge``. Its records are padded, so that each is a batch."""

    def __init__(
        self,
        bootstrap: str,
        delivery_ms: int,
        in_flight: int = 5,
        metadata_ms: int = METADATA_MS,
        *,
        bridge: Bridge,
        idempotent: bool = True,
    ) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._client = RemoteClient.make(
            bridge,
            Method.NEW_PRODUCER,
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": in_flight,
                "batch.size": 1,
                "linger.ms": 0,
                "request.timeout.ms": request_ms(delivery_ms),
                "delivery.timeout.ms": delivery_ms,
                "metadata.max.age.ms": metadata_ms,
            },
        )

    def send(self, count: int) -> None:
        for number in range(self._sent, self._sent + count):
            value = f"{number}{' ' * PADDING}"
            record = frames.partition(f"{TOPIC}-0") + b"".join(map(frames.text, (None, value, None)))
            self._client.bridge.post(Method.SEND, self._client.number, record, partial(self._ended, number))
        self._sent += count

    def close(self) -> None:
        self._client.close()

    def _ended(self, number: int, answer: Answer | None) -> None:
        assert answer is not None
        self.reports[number] = answer.long() if answer.end is End.DONE else error_in(answer).name

"""New producers of the three libraries that send numbered records, a batch each, and keep what is reported of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

from harness.lab.findings.stage import PARTITIONS, FindingStage, OpenCluster
from harness.plan import ClientName
from harness.worlds.clients import ClientLibrary
from workloads import EventType, SendOutcome, Settings, values

#: The number of records that a script sends.
RECORDS: Final = 4
#: The age at which the libraries ask for metadata again by default: longer than any script.
METADATA_MS: Final = 300_000
#: No batch has room for another record of this size.
_SIZE_BYTES: Final = 400

#: The reports of a producer on each record, by its number: an offset, None where success had none, or an error.
Reports = dict[int, int | str | None]

#: Properties with which each record is a batch, and a refused one is sent again soon, by library.
_SINGLE: Final[Mapping[ClientName, Mapping[str, object]]] = {
    "confluent-kafka": {"batch.num.messages": 1, "linger.ms": 0, "retry.backoff.max.ms": 200},
    "java": {"batch.size": 1, "linger.ms": 0},
    "kafka-python": {"batch_size": 1, "linger_ms": 0},
}
_METADATA: Final[Mapping[ClientName, str]] = {
    "confluent-kafka": "topic.metadata.refresh.interval.ms",
    "java": "metadata.max.age.ms",
    "kafka-python": "metadata_max_age_ms",
}


class NumberedSender:
    """A new producer of a library; ``reports`` are what it reports of its records."""

    def __init__(self, cluster: OpenCluster, library: ClientLibrary, settings: Settings, server: str) -> None:
        self.reports: Reports = {}
        self._sent = 0
        self._clients = library.clients(cluster.world.clock, settings, [server])
        self._process = cluster.next_process()
        self._producer = self._clients.producer(self._process)

    def send(self, count: int) -> None:
        """Send the next records."""
        for number in range(self._sent, self._sent + count):
            payload = values.encode(PARTITIONS[0], b"key", values.join(self._process, number), _SIZE_BYTES)
            self._producer.send(PARTITIONS[0], b"key", payload, partial(self._ended, number))
        self._sent += count

    def numbers_of(self, read: Iterable[int]) -> list[int]:
        """The numbers of its own records among the values that were read, in their order."""
        own = {values.join(self._process, number): number for number in range(self._sent)}
        return [own[value] for value in read if value in own]

    def close(self) -> None:
        """Give up: nothing that waits is sent."""
        self._producer.crash()
        self._clients.close(1.0)

    def _ended(self, number: int, outcome: SendOutcome) -> None:
        acknowledged = outcome.type is EventType.OK
        self.reports[number] = outcome.offset if acknowledged else (outcome.error or "").partition(":")[0]


class SenderKind:
    """A kind of new producers: a library, and the settings that scripts vary; ``resources`` end the library's JVM."""

    def __init__(self, stage: FindingStage, resources: ExitStack, *, in_flight: int, idempotent: bool) -> None:
        self.client = stage.client
        self._library = stage.library(resources)
        self._in_flight, self._idempotent = in_flight, idempotent

    def make(
        self, cluster: OpenCluster, server: str, delivery_ms: int, metadata_ms: int = METADATA_MS
    ) -> NumberedSender:
        """A new producer that begins at ``server``."""
        settings = Settings.from_mapping(
            {
                "acks": "all",
                "enable.idempotence": self._idempotent,
                "max.in.flight.requests.per.connection": self._in_flight,
                # Kafka's own client refuses a request timeout above the delivery timeout.
                "request.timeout.ms": delivery_ms // 2,
                "delivery.timeout.ms": delivery_ms,
            }
        )
        more = {**_SINGLE[self.client], _METADATA[self.client]: metadata_ms}

        def configuration(*of: Any) -> dict[str, object]:
            return self._library.producer_configuration(*of) | more

        return NumberedSender(cluster, replace(self._library, producer_configuration=configuration), settings, server)

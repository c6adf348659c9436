"""The client libraries that a plan can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.clients.confluent import CONFLUENT
from harness.clients.java.bridge import Bridge
from harness.clients.java.client import java_library
from harness.clients.kafka_python import KAFKA_PYTHON
from harness.clients.real_clients import ClientLibrary

#: The name of Kafka's own client in plans.
JAVA: Final = "java"
#: By their names in plans. A run takes its Java client from an installed release; the one here has no release.
CLIENTS: Final[Mapping[str, ClientLibrary]] = {
    "kafka-python": KAFKA_PYTHON,
    "confluent-kafka": CONFLUENT,
    JAVA: java_library(Bridge("", ())),
}

"""The client libraries that a plan can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.worlds.clients.confluent import CONFLUENT
from harness.worlds.clients.java.library import java_library, java_process
from harness.worlds.clients.kafka_python import KAFKA_PYTHON
from harness.worlds.clients.real_clients import ClientLibrary

#: The name of Kafka's own client in plans.
JAVA: Final = "java"
#: By their names in plans. A run takes its Java client from an installed release; the one here has no release.
CLIENTS: Final[Mapping[str, ClientLibrary]] = {
    "kafka-python": KAFKA_PYTHON,
    "confluent-kafka": CONFLUENT,
    JAVA: java_library(java_process("", ())),
}

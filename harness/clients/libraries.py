"""The client libraries that a plan can name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.clients.adapter import ClientLibrary
from harness.clients.confluent import CONFLUENT
from harness.clients.kafka_python import KAFKA_PYTHON

#: By the name of their distribution.
CLIENTS: Final[Mapping[str, ClientLibrary]] = {"kafka-python": KAFKA_PYTHON, "confluent-kafka": CONFLUENT}

"""Real clients behind the contract of ``workloads.client``, each library in a module of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.clients.adapter import ClientLibrary, RealClients
from harness.clients.configuration import client_settings
from harness.clients.confluent import CONFLUENT
from harness.clients.credentials import at_home, require_credentials
from harness.clients.direct import BatchSequence, DirectClient
from harness.clients.kafka_python import KAFKA_PYTHON, make, named, producer_configuration

#: The libraries that a plan can name, by the name of their distribution.
CLIENTS: Final[Mapping[str, ClientLibrary]] = {"kafka-python": KAFKA_PYTHON, "confluent-kafka": CONFLUENT}

__all__ = [
    "CLIENTS", "CONFLUENT", "KAFKA_PYTHON", "BatchSequence", "ClientLibrary", "DirectClient", "RealClients", "at_home",
    "client_settings", "make", "named", "producer_configuration", "require_credentials",
]  # fmt: skip

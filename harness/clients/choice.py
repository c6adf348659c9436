"""The table of clients that a plan can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.clients.confluent import ConfluentClients
from harness.clients.contract import RealClients, ThreadedClock
from harness.clients.kafka_python import KafkaPythonClients
from harness.security import Security
from workloads.settings import Settings

#: Makes a run's clients from its clock, its settings, the "host:port" of brokers, and what these demand.
MakeClients = Callable[[ThreadedClock, Settings, Sequence[str], Security], RealClients]

#: By the name of the library's distribution.
CLIENTS: Final[Mapping[str, MakeClients]] = {
    "kafka-python": KafkaPythonClients,
    "confluent-kafka": ConfluentClients,
}

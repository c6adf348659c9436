"""What differs between releases of Apache Kafka, as far as installing and starting them goes. No effects here."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from harness.errors import PlanError

#: Chosen where nobody chooses: the newest release that was seen to work.
DEFAULT_VERSION: Final = "4.3.1"
#: The oldest release that starts without ZooKeeper as production software (KIP-833).
KRAFT_SINCE: Final = (3, 3, 0)
#: The oldest release whose controllers know eligible leader replicas (KIP-966).
ELR_SINCE: Final = (4, 0, 0)

#: The only logging binding of Kafka before 4.0 is log4j 1, kept alive as reload4j; since then log4j 2 (KIP-653).
_RELOAD4J: Final = ("org.slf4j", "slf4j-reload4j", "1.7.36")
_LOG4J2: Final = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.1")


class Version(NamedTuple):
    """A release; compares as releases do. 0.8.2.2 and its like are beyond what this project starts."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Artifact(NamedTuple):
    """What Maven fetches."""

    group: str
    name: str
    version: str


def parse_version(text: str) -> Version:
    """A version as people write it.

    Raises:
        PlanError: it is none, or one that cannot be started.
    """
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})", text)
    if found is None:
        raise PlanError(f'"{text}" is no version of Apache Kafka; write three numbers, for example {DEFAULT_VERSION}')
    version = Version(*(int(part) for part in found.groups()))
    if version < KRAFT_SINCE:
        oldest = ".".join(str(part) for part in KRAFT_SINCE)
        raise PlanError(f"Apache Kafka {version} is older than what is started here; choose {oldest} or later")
    return version


def artifacts(version: Version) -> tuple[Artifact, ...]:
    """What a broker needs to run: itself, its tools, and something that writes its logs.

    Scala 2.13 has been offered since 2.4 and is the only one since 4.0.
    """
    binding = _LOG4J2 if version >= (4, 0, 0) else _RELOAD4J
    return (
        Artifact("org.apache.kafka", "kafka_2.13", str(version)),
        Artifact("org.apache.kafka", "kafka-tools", str(version)),
        Artifact(*binding),
    )

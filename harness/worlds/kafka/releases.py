"""Differences between releases of Apache Kafka that matter to installing and starting them. No effects here."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from harness.ground.errors import PlanError

#: The default: the newest release that was seen to work.
DEFAULT_VERSION: Final = "4.3.1"
#: The last lines of major releases that are complete: no release beyond them can come any more.
LAST_LINES: Final = {0: 11, 1: 1, 2: 8, 3: 9}
#: The oldest release that starts without ZooKeeper as production software (KIP-833).
KRAFT_SINCE: Final = (3, 3, 0)
#: The first release without ZooKeeper.
ZOOKEEPER_GONE_SINCE: Final = (4, 0, 0)
#: The oldest release that makes a topic on a request (KIP-4).
STARTED_SINCE: Final = (0, 10, 1)
#: The oldest release whose controllers know eligible leader replicas (KIP-966).
ELR_SINCE: Final = (4, 0, 0)
#: The first release whose clusters can have either version of transactions (KIP-890); those before have the first.
TRANSACTIONS_2_SINCE: Final = (4, 0, 0)

#: The only logging binding of Kafka before 4.0 is log4j 1, kept alive as reload4j; since then log4j 2 (KIP-653).
_RELOAD4J: Final = ("org.slf4j", "slf4j-reload4j", "1.7.36")
_LOG4J2: Final = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.1")
#: Part of Java until 10; Kafka before 1.0 writes a cluster's id with it.
_XML_BINDING: Final = ("javax.xml.bind", "jaxb-api", "2.3.1", "lacks javax.xml.bind")
#: The last before 3.4.13, whose clients find no server on Java 14 and later (ZOOKEEPER-3779).
_ZOOKEEPER: Final = (
    "org.apache.zookeeper",
    "zookeeper",
    "3.4.12",
    "writes addresses in a way that ZooKeeper 3.4.13 cannot read (ZOOKEEPER-3779)",
)
_TOOLS_SINCE: Final = (0, 9, 0)
#: The Scala of releases since the first number, newest first: the newest that the release has.
_SCALA: Final = (((2, 4, 0), "2.13"), ((1, 0, 0), "2.12"), ((0, 8, 2), "2.11"), ((0, 0, 0), "2.10"))
#: The form of a version: four numbers from 0.8.1.1 to 0.11, three before and since.
VERSION: Final = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}(?:\.\d{1,3})?")


class Version(NamedTuple):
    """A release; compares as releases do. ``fix`` is the fourth number that releases before 1.0 have."""

    major: int
    minor: int
    patch: int
    fix: int = 0

    def __str__(self) -> str:
        three = f"{self.major}.{self.minor}.{self.patch}"
        return f"{three}.{self.fix}" if (0, 8, 1, 1) <= self < (1, 0, 0) else three


class Artifact(NamedTuple):
    """An artifact for Maven to fetch. ``supplies`` says for which change of Java it makes up; empty for others."""

    group: str
    name: str
    version: str
    supplies: str = ""


def parse_version(text: str) -> Version:
    """A release of Kafka as people write it.

    Raises:
        PlanError: it is not a version, or of a line that Apache Kafka never had.
    """
    version = numbered(text)
    major, minor = version[:2]
    if minor > (last := LAST_LINES.get(major, minor)):
        raise PlanError(f"there is no Apache Kafka {text}: the last releases of {major} are those of {major}.{last}")
    return version


def numbered(text: str) -> Version:
    """A version of Kafka, or of a client library.

    Raises:
        PlanError: it is not a version.
    """
    version = Version(*(int(part) for part in text.split("."))) if VERSION.fullmatch(text) else None
    if version is None or str(version) != text:
        raise PlanError(
            f'"{text}" is not a version of Apache Kafka; write three numbers, for example {DEFAULT_VERSION}, or four '
            "before 1.0, for example 0.11.0.3"
        )
    return version


def modes(version: Version) -> tuple[str, ...]:
    """The values of ``mode`` in plans with this release: "kraft", "zookeeper", both or, where too old, none."""
    kraft = ("kraft",) if version >= KRAFT_SINCE else ()
    zookeeper = ("zookeeper",) if STARTED_SINCE <= version < ZOOKEEPER_GONE_SINCE else ()
    return kraft + zookeeper


def artifacts(version: Version) -> tuple[Artifact, ...]:
    """The artifacts that a broker needs: itself, its tools, a writer of logs, and what newer Java lacks.

    The first is the broker. Scala 2.13 has been offered since 2.4 and is the only one since 4.0.
    """
    kafka = "org.apache.kafka"
    tools = (Artifact(kafka, "kafka-tools", str(version)),) if version >= _TOOLS_SINCE else ()
    binding = _LOG4J2 if version >= (4, 0, 0) else _RELOAD4J
    scala = next(scala for since, scala in _SCALA if version >= since)
    for_java = (Artifact(*_XML_BINDING),) if version < (1, 0, 0) else ()
    zookeeper = (Artifact(*_ZOOKEEPER),) if (2, 0, 0) <= version < (2, 4, 0) else ()
    return (Artifact(kafka, f"kafka_{scala}", str(version)), *tools, Artifact(*binding), *for_java, *zookeeper)

"""The settings with which a client works: what it was given, and its library's defaults for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.assess.configuration import Client, Library
from harness.worlds.kafka.releases import Version

_INT_MAX: Final = str(2**31 - 1)
_COMMON: Final[Mapping[str, str]] = {
    "acks": "all",
    "retries": _INT_MAX,
    "request.timeout.ms": "30000",
    "delivery.timeout.ms": "120000",
    "retry.backoff.ms": "100",
    "linger.ms": "0",
    "max.in.flight.requests.per.connection": "5",
    "auto.offset.reset": "latest",
    "enable.auto.commit": "true",
    "isolation.level": "read_uncommitted",
    "group.protocol": "classic",
}
_OWN: Final[Mapping[Library, Mapping[str, str]]] = {
    "java": {"linger.ms": "5"},
    "librdkafka": {
        "delivery.timeout.ms": "300000",
        "linger.ms": "5",
        "max.in.flight.requests.per.connection": "1000000",
        "isolation.level": "read_committed",
    },
    "kafka-python": {},
}
#: Up to this release Kafka's own producer asked the leader alone (KIP-679).
_SAFE_SINCE: Final = Version(3, 0, 0)
_OLD_JAVA: Final[Mapping[str, str]] = {"acks": "1", "linger.ms": "0"}
#: librdkafka lowers its own default, not a value that was given.
_IDEMPOTENT_IN_FLIGHT: Final = "5"
#: Names of librdkafka, and old ones, for what others call otherwise.
ALIASES: Final[Mapping[str, str]] = {
    "request.required.acks": "acks",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
}
#: Only librdkafka knows these names.
TELLING: Final = frozenset({*ALIASES, "metadata.broker.list", "socket.timeout.ms", "enable.partition.eof"}) - {
    "max.in.flight"
}
_ALL: Final = {"-1": "all", "all": "all", "1": "1", "0": "0"}


def version_of(client: Client) -> Version | None:
    """The release of the client's library; None where it is not known."""
    numbers = client.version.split(".")
    if not client.version or not all(number.isdigit() for number in numbers):
        return None
    return Version(*[int(number) for number in (*numbers, "0", "0")[:3]])


def effective(client: Client) -> dict[str, str]:
    """Every setting of the client, with its library's defaults.

    A default of idempotence gives way where another setting excludes it, without a word: so do Kafka's own client and
    kafka-python. One that was asked for does not; the client refuses to begin.
    """
    version = version_of(client)
    old = _OLD_JAVA if client.library == "java" and version is not None and version < _SAFE_SINCE else {}
    values = {**_COMMON, **_OWN[client.library], **old, **client.settings}
    if client.library == "librdkafka" and values["delivery.timeout.ms"] == "0":  # to it, never
        values["delivery.timeout.ms"] = _INT_MAX
    values["acks"] = _ALL.get(values["acks"].lower(), values["acks"])
    asked = client.settings.get("enable.idempotence")
    if asked is None:
        by_default = client.library != "librdkafka" and not old
        asked = str(by_default and excluded(values) is None).lower()
    if "transactional.id" in client.settings:
        asked = "true"
    values["enable.idempotence"] = asked.lower()
    if values["enable.idempotence"] == "true" and "max.in.flight.requests.per.connection" not in client.settings:
        values["max.in.flight.requests.per.connection"] = _IDEMPOTENT_IN_FLIGHT
    return values


def excluded(values: Mapping[str, str]) -> str | None:
    """The setting that excludes idempotence, as ``name=value``; None where it is possible."""
    if values["acks"] != "all":
        return f"acks={values['acks']}"
    if int(values["max.in.flight.requests.per.connection"]) > int(_IDEMPOTENT_IN_FLIGHT):
        return f"max.in.flight.requests.per.connection={values['max.in.flight.requests.per.connection']}"
    return "retries=0" if values["retries"] == "0" else None

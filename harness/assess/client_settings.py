"""The settings with which a client works: what it was given, and its library's defaults for the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from harness.assess.configuration import Client
from harness.known_defects import Library
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
#: Defaults of Kafka's own client before a release (KIP-1030, KIP-679, KIP-91), the newest first.
_OLD_JAVA: Final = (
    (Version(4, 0, 0), {"linger.ms": "0"}),
    (_SAFE_SINCE, {"acks": "1"}),
    (Version(2, 1, 0), {"retries": "0"}),
)
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_IDEMPOTENT_IN_FLIGHT: Final = "5"
#: A library changes its own defaults where idempotence is asked for, not a value that was given.
_WITH_IDEMPOTENCE: Final[Mapping[str, str]] = {
    "acks": "all",
    _IN_FLIGHT: _IDEMPOTENT_IN_FLIGHT,
    "retries": _INT_MAX,
}
#: Names of librdkafka, and old ones, for what others call otherwise.
ALIASES: Final[Mapping[str, str]] = {
    "request.required.acks": "acks",
    "message.timeout.ms": "delivery.timeout.ms",
    "message.send.max.retries": "retries",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "queue.buffering.max.ms": "linger.ms",
    "compression.codec": "compression.type",
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
    kafka-python. One that was asked for does not, and the client refuses to begin: what it refuses is left out here,
    as its operator will have to do (see :func:`refused`).
    """
    return _with_defaults(client, without=[setting.partition("=")[0] for setting in refused(client)])


def idempotent_by_default(client: Client) -> bool:
    """True if the client's library is idempotent where no setting says anything else."""
    version = version_of(client)
    old = client.library == "java" and version is not None and version < _SAFE_SINCE
    return client.library != "librdkafka" and not old


def refused(client: Client) -> tuple[str, ...]:
    """The settings, as ``name=value``, for which the client refuses to begin: they exclude what was asked for."""
    given = client.settings
    transactional = "transactional.id" in given
    if not transactional and given.get("enable.idempotence", "").lower() != "true":
        return ()
    denied = ("enable.idempotence=false",) if given.get("enable.idempotence", "").lower() == "false" else ()
    return (*denied, *(each for each in _excluding(_with_defaults(client)) if each.partition("=")[0] in given))


def excluded(values: Mapping[str, str]) -> str | None:
    """The setting that excludes idempotence, as ``name=value``; None where it is possible."""
    return next(_excluding(values), None)


def _excluding(values: Mapping[str, str]) -> Iterator[str]:
    if values["acks"] != "all":
        yield f"acks={values['acks']}"
    if int(values[_IN_FLIGHT]) > int(_IDEMPOTENT_IN_FLIGHT):
        yield f"{_IN_FLIGHT}={values[_IN_FLIGHT]}"
    if values["retries"] == "0":
        yield "retries=0"


def _with_defaults(client: Client, without: Collection[str] = ()) -> dict[str, str]:
    given = {name: value for name, value in client.settings.items() if name not in without}
    values = {**_COMMON, **_OWN[client.library], **_old_defaults(client), **given}
    if client.library == "librdkafka" and values["delivery.timeout.ms"] == "0":  # to it, never
        values["delivery.timeout.ms"] = _INT_MAX
    values["acks"] = _ALL.get(values["acks"].lower(), values["acks"])
    asked = "true" if "transactional.id" in given else given.get("enable.idempotence", "").lower()
    if asked == "true":
        values |= {name: value for name, value in _WITH_IDEMPOTENCE.items() if name not in given}
    elif not asked:
        asked = str(idempotent_by_default(client) and excluded(values) is None).lower()
    values["enable.idempotence"] = asked
    return values


def _old_defaults(client: Client) -> dict[str, str]:
    version = version_of(client)
    if client.library != "java" or version is None:
        return {}
    return {name: value for before, own in _OLD_JAVA if version < before for name, value in own.items()}

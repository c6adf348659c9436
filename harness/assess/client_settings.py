"""The settings with which a client works: what it was given, and its library's defaults for the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from harness.assess.client_defaults import defaults_of, differing, numbers_of, unsure
from harness.assess.configuration import Client, NotUnderstood
from harness.worlds.kafka.releases import Version

_INT_MAX: Final = str(2**31 - 1)
_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_IDEMPOTENT_IN_FLIGHT: Final = "5"
#: Before it a producer with idempotence has one request in flight.
_SEVERAL_SINCE: Final = Version(1, 0, 0)
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
    return numbers_of(client.version)


def effective(client: Client) -> dict[str, str]:
    """Every setting of the client, with its library's defaults.

    A default of idempotence gives way where another setting excludes it, without a word: so do Kafka's own client and
    kafka-python. One that was asked for does not, and the client refuses to begin: what it refuses is left out here,
    as its operator will have to do (see :func:`refused`).
    """
    return _with_defaults(client, without=[setting.partition("=")[0] for setting in refused(client)])


def idempotent_by_default(client: Client) -> bool:
    """True if the client's library is idempotent where no setting says anything else."""
    return defaults_of(client.library, version_of(client))["enable.idempotence"] == "true"


def unknown_defaults(client: Client, names: Collection[str]) -> Iterator[NotUnderstood]:
    """The settings among ``names`` that the client was not given, and whose default in its release is not known."""
    version = version_of(client)
    where = f"--client {client.library}:{client.version}"
    wanted = set(names) - client.settings.keys()
    for name in sorted(unsure(client.library, version) & wanted):
        why = "its default is another in the releases around this one, and this one was not looked at; write it out"
        yield NotUnderstood(where, name, why, name)
    if version is not None and client.version.count(".") == 1:
        for name in sorted(differing(client.library, version[:2]) & wanted):
            why = "its default is not the same in all releases of this line; write the whole release, or the setting"
            yield NotUnderstood(where, name, why, name)


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
    version = version_of(client)
    given = {name: value for name, value in client.settings.items() if name not in without}
    values = {**defaults_of(client.library, version), **given}
    if client.library == "librdkafka" and values["delivery.timeout.ms"] == "0":  # to it, never
        values["delivery.timeout.ms"] = _INT_MAX
    values["acks"] = _ALL.get(values["acks"].lower(), values["acks"])
    asked = "true" if "transactional.id" in given else given.get("enable.idempotence", "").lower()
    if asked == "true":
        values |= {name: value for name, value in _WITH_IDEMPOTENCE.items() if name not in given}
        if client.library == "java" and version is not None and version < _SEVERAL_SINCE and _IN_FLIGHT not in given:
            values[_IN_FLIGHT] = "1"
    elif not asked:
        asked = str(idempotent_by_default(client) and excluded(values) is None).lower()
    values["enable.idempotence"] = asked
    return values

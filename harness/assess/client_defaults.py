"""The defaults of client libraries by release: ``client_defaults.toml`` has them as packages say them, and
``client_defaults_of_code.toml`` as they were read in sources.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from harness.ground.known_defects import Library
from harness.worlds.kafka.releases import Version


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release that was looked at, and the defaults that it changed or added."""

    release: str
    defaults: Mapping[str, str] = {}


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"kafka_python": "kafka-python"}):
    java: tuple[_Row, ...]
    librdkafka: tuple[_Row, ...]
    kafka_python: tuple[_Row, ...]
    franz_go: tuple[_Row, ...]
    kafkajs: tuple[_Row, ...]
    sarama: tuple[_Row, ...]


_FILES: Final = ("client_defaults.toml", "client_defaults_of_code.toml")
#: The behaviour of a client without a setting that its release does not have yet.
_BEFORE: Final[Mapping[str, str]] = {
    "enable.idempotence": "false",
    "isolation.level": "read_uncommitted",
    "group.protocol": "classic",
    "delivery.timeout.ms": "120000",
}


def numbers_of(text: str) -> Version | None:
    """A release as a version; None where it is not one. Of a shorter number the rest is 0."""
    numbers = text.split(".")
    if not text or not all(number.isdigit() for number in numbers) or len(numbers) > 4:
        return None
    return Version(*[int(number) for number in (*numbers, "0", "0")[: max(3, len(numbers))]])


@cache
def releases_of(library: Library) -> Mapping[Version, Mapping[str, str]]:
    """All defaults of each release that was looked at, the oldest first."""
    rows: tuple[_Row, ...] = getattr(_data(), library.replace("-", "_"))
    by_version: dict[Version, Mapping[str, str]] = {}
    defaults: Mapping[str, str] = {}
    for row in rows:
        version = numbers_of(row.release)
        assert version is not None  # noqa: S101
        defaults = {**defaults, **row.defaults}
        by_version[version] = defaults
    return by_version


def defaults_of(library: Library, version: Version | None = None) -> dict[str, str]:
    """The defaults of a release: those of the newest that was looked at and is not newer; without one, the newest's."""
    releases = releases_of(library)
    older = [looked for looked in releases if version is None or looked <= version]
    return {**_BEFORE, **releases[older[-1] if older else min(releases)]}


def has(library: Library, version: Version | None, name: str) -> bool | None:
    """True if a release has a setting; None where that is not known. What the oldest has, those before it had, too."""
    if version is None:
        return True
    releases = releases_of(library)
    since = next((looked for looked, defaults in releases.items() if name in defaults), None)
    older = [looked for looked in releases if since is not None and looked < since]
    if since is None or version >= since or not older:
        return True
    return False if version <= older[-1] else None


def unsure(library: Library, version: Version | None) -> frozenset[str]:
    """The settings whose default is not known: it changes between the releases that were looked at around this one."""
    releases = releases_of(library)
    if version is None or version in releases or version > max(releases):
        return frozenset()
    newer = releases[min(looked for looked in releases if looked > version)]
    older = [looked for looked in releases if looked < version]
    if not older:
        return frozenset(newer)
    before = {**_BEFORE, **releases[older[-1]]}
    return frozenset(name for name in newer if newer[name] != before.get(name))


def differing(library: Library, line: tuple[int, int]) -> frozenset[str]:
    """The settings whose default is not the same in all releases of a line, such as 3.1, that were looked at."""
    own = [{**_BEFORE, **defaults} for looked, defaults in releases_of(library).items() if looked[:2] == line]
    return frozenset(name for each in own for name in each if any(other.get(name) != each[name] for other in own))


@cache
def _data() -> _Data:
    files = [resources.files("harness.assess") / name for name in _FILES]
    tables = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return msgspec.convert({name: rows for table in tables for name, rows in table.items()}, _Data)

"""The names of settings that clients, brokers and topics have; another one is a slip, and is told.

Those of Kafka and librdkafka are in ``setting_names.toml``, which their own words were written into by
``scripts/setting-names.py``; kafka-python is asked here.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, Literal

import msgspec
from kafka import KafkaConsumer, KafkaProducer
from kafka import __version__ as kafka_python_version

from harness.ground.known_defects import Library, looked_at
from harness.worlds.kafka.releases import Version, parse_version

Kind = Literal["producer", "consumer", "broker", "topic"]
#: The kind of client of an option.
KIND_OF: Final[Mapping[str, Kind]] = {"--producer": "producer", "--consumer": "consumer"}
#: Kafka's own client, and libraries that are configured in code, whose settings are told here under Kafka's names.
OF_KAFKAS_NAMES: Final[frozenset[Library]] = frozenset({"java", "franz-go", "kafkajs", "sarama"})
#: A name is taken for a slip of another that is at least so alike.
_ALIKE: Final = 0.75
_PYTHON: Final[Mapping[Kind, Mapping[str, object]]] = {
    "producer": KafkaProducer.DEFAULT_CONFIG,
    "consumer": KafkaConsumer.DEFAULT_CONFIG,
}
#: Names that authorizers of Kafka read from the brokers' files.
_OF_AUTHORIZERS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
#: Names that wrappers of librdkafka add to its own.
OF_WRAPPERS: Final = frozenset(
    {
        "default.topic.config", "key.deserializer", "key.serializer", "logger", "on.commit", "on.delivery",
        "value.deserializer", "value.serializer",
    }
)  # fmt: skip
#: Beginnings of names behind which there is a name of the operator's own.
_FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "java": ("config.providers.",),
    "broker": ("config.providers.", "listener.name.", "rlmm.config.", "rsm.config."),
    "librdkafka": ("dotnet.", "go."),
}


class _OfKafka(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names, and the first and the last of the releases that were asked that have them."""

    kind: Kind
    first: str
    last: str
    names: tuple[str, ...]


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    releases: tuple[str, ...]
    librdkafka_release: str
    kafka: tuple[_OfKafka, ...]
    librdkafka: Mapping[str, tuple[str, ...]]


@cache
def _data() -> _Data:
    text = resources.files("harness.assess").joinpath("setting_names.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Data)


@cache
def newest(library: Library) -> Version:
    """The newest release of a client library that is known here."""
    known_here = {
        "java": _data().releases[-1],
        "librdkafka": _data().librdkafka_release,
        "kafka-python": kafka_python_version,
    }
    told = known_here.get(library) or looked_at()[library][1]
    return Version(*[int(part) for part in told.split(".")[:3]])


@cache
def names_of_kafka(kind: Kind, release: Version | None = None) -> frozenset[str]:
    """The settings that a release of Kafka has, or any; a release between two that were asked has those of both."""
    entries = (entry for entry in _data().kafka if entry.kind == kind and _may_have(entry, release))
    return frozenset(name for entry in entries for name in entry.names)


def _may_have(entry: _OfKafka, release: Version | None) -> bool:
    if release is None:
        return True
    asked = _data().releases
    first, last = asked.index(entry.first), asked.index(entry.last)
    lacked_before = first > 0 and release <= parse_version(asked[first - 1])
    lacked_since = last + 1 < len(asked) and release >= parse_version(asked[last + 1])
    return not (lacked_before or lacked_since)


@cache
def names_of_client(kind: Kind, library: Library) -> frozenset[str]:
    """The settings that producers or consumers of a library have, with dots."""
    if library in OF_KAFKAS_NAMES:
        return names_of_kafka(kind)
    if library == "kafka-python":
        return frozenset(with_dots(name) for name in _PYTHON[kind])
    own = _data().librdkafka
    return frozenset(with_dots(name) for name in (*own["both"], *own[kind])) | OF_WRAPPERS


@cache
def _names(kind: Kind, library: Library | None) -> frozenset[str]:
    if library is not None:
        return names_of_client(kind, library)
    return names_of_client(kind, "java") | names_of_client(kind, "librdkafka") | names_of_client(kind, "kafka-python")


def with_dots(name: str) -> str:
    """A name as Kafka writes it, where a library writes it with underscores."""
    return name if "." in name else name.replace("_", ".")


def is_known(name: str, kind: Kind, library: Library | None = None) -> bool:
    """True if a client of the library, or of any, can have the setting ``name``, which is written with dots."""
    libraries = ("java", "librdkafka") if library is None else (library,)
    families = tuple(family for each in libraries for family in _FAMILIES.get(each, ()))
    return name in _names(kind, library) or name.startswith(families)


def only_of_librdkafka(name: str, kind: Kind) -> bool:
    """True if the name, written with dots, tells that a client is one of librdkafka: no client of another has it.

    A file that producers and consumers share has names of both.
    """
    kinds: tuple[Kind, ...] = ("producer", "consumer")
    others = (names_of_client(each, library) for each in kinds for library in ("java", "kafka-python"))
    return name in names_of_client(kind, "librdkafka") and not any(name in names for names in others)


def stranger(name: str, kind: Kind, library: Library | None = None) -> str:
    """The sentence about a setting that no such client has, with the nearest that one has."""
    other: Kind = "consumer" if kind == "producer" else "producer"
    whose = f" of {library}" if library is not None and is_known(name, kind) else ""
    said = f"no {kind}{whose} has a setting {name}"
    if not whose and name in _names(other, library):
        return f"{said}; a {other} has it: write --{other}"
    near = nearest(name, kind, library)
    return f"{said}; did you mean {near}?" if near else f"{said}; correct its name, or leave it out"


def nearest(name: str, kind: Kind, library: Library | None = None) -> str:
    """The nearest setting that such a client, a broker or a topic has; empty where none is near."""
    names = names_of_kafka(kind) if kind in {"broker", "topic"} else _names(kind, library)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=_ALIKE)
    return near[0] if near else ""


def strange_to_kafka(name: str, kind: Kind) -> bool:
    """True if no release that was asked has this setting of brokers or topics."""
    added = _OF_AUTHORIZERS if kind == "broker" else frozenset()
    return name not in names_of_kafka(kind) | added and not name.startswith(_FAMILIES.get(kind, ()))

"""The files of what makes clients by itself, and how each names the settings of these: the prefixes of names.

A name that a framework's own rule gives no meaning to is not read: see :func:`harness.assess.near_names.near`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Final, NamedTuple

from harness.assess.setting_names import Kind, is_known, with_dots
from harness.worlds.kafka.releases import Version

_INT_MAX: Final = str(2**31 - 1)


class NamedSetting(NamedTuple):
    """The meaning of a name: a setting, the kind of clients that have it (None: both), and one of the file's clients.

    Of two names for one setting of a client that with the higher ``rank`` counts.
    """

    setting: str
    kind: Kind | None = None
    of: str = ""
    rank: int = 0


class Aside(Enum):
    """The meaning of a name that is known to be no setting of a client."""

    YES = "yes"


Meaning = NamedSetting | Aside | None
Values = Mapping[str, str]


class Framework(NamedTuple):
    """A form of names.

    Attributes:
        title: what it is called; empty for the plain form.
        recognises: whether a file with these names, and the values of some, is of it.
        read: the meaning of a name; None where it has none that is known.
        base: the settings that its clients of a kind have where nothing else is said, for a release of them if known.
        fixed: the settings that they have whatever is said.
        missing: the sentence about settings that decide and are in another file; empty where no other has them.
        unread: the sentence about names of it that are not read at all, by the beginning of these.
    """

    title: str
    recognises: Callable[[Values], bool]
    read: Callable[[str], Meaning]
    base: Callable[[Kind, Values, Version | None], Values] = lambda *_: {}
    fixed: Callable[[Kind, Values], Values] = lambda *_: {}
    missing: str = ""
    unread: tuple[str, str] = ("", "")


def framework_of(values: Values) -> Framework:
    """The framework whose file has these names and values; the plain form, if none is told."""
    return next(each for each in _FRAMEWORKS if each.recognises(values))


# --- Kafka Connect, MirrorMaker 2 -------------------------------------------------------------------------------------

_OF_ROLE: Final = re.compile(r"(producer|consumer)\.(.+)")
#: Names that only the file of a worker has.
_OF_WORKERS: Final = frozenset(
    {"config.storage.topic", "offset.storage.topic", "offset.storage.file.filename", "key.converter", "plugin.path"}
)
#: The first names of settings of workers, and of their clients that no connector uses.
_BEGINNINGS: Final = (
    "admin.", "bootstrap.", "client.", "config.", "connector.", "exactly.once.", "header.", "heartbeat.", "inter.",
    "internal.", "key.", "listeners", "metric", "offset.", "plugin.", "reconnect.", "response.", "rest.", "sasl.",
    "scheduled.", "security.", "session.", "ssl.", "status.", "task.", "topic.", "value.", "worker.",
)  # fmt: skip
#: The one release whose workers have producers with idempotence by default: 3.0.2, 3.1.1 and all since switch it off
#: (KAFKA-13759), and in 3.1.0, 3.0.0 and before the client's own default is off (KAFKA-13598, KIP-679).
_IDEMPOTENT_WORKER: Final = Version(3, 0, 1)


def _of_connect(name: str) -> Meaning:
    if match := _OF_ROLE.fullmatch(name):
        return NamedSetting(match[2], _kind(match[1]), rank=1)
    return Aside.YES if name.startswith(_BEGINNINGS) or _plain(name) else None


def _base_of_connect(kind: Kind, _: Values, version: Version | None) -> Values:
    """The settings that a worker gives its clients (``Worker.baseProducerConfigs``, ``baseConsumerConfigs``)."""
    if kind == "consumer":
        return {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    return {
        "acks": "all",
        "max.in.flight.requests.per.connection": "1",
        "delivery.timeout.ms": _INT_MAX,
        **({} if version == _IDEMPOTENT_WORKER else {"enable.idempotence": "false"}),
    }


def _fixed_by_connect(kind: Kind, values: Values) -> Values:
    """Producers of sources with exactly-once support have transactions (KIP-618)."""
    once = values.get("exactly.once.source.support", "").strip().lower() == "enabled"
    return {"enable.idempotence": "true", "transactional.id": "of each task"} if once and kind == "producer" else {}


def _of_connector(name: str) -> Meaning:
    bare = name.removeprefix("config.")
    if match := re.fullmatch(r"(producer|consumer)\.override\.(.+)", bare):
        return NamedSetting(match[2], _kind(match[1]), rank=2)
    return None if bare.startswith(("producer", "consumer")) else Aside.YES


def _of_mirrors(name: str) -> Meaning:
    if match := _OF_ROLE.fullmatch(name):
        return NamedSetting(match[2], _kind(match[1]), rank=1)
    if match := re.fullmatch(r"([^.>]+)\.(producer|consumer)\.(.+)", name):
        return NamedSetting(match[3], _kind(match[2]), of=match[1], rank=2)
    return None if re.search(r"\b(?:producer|consumer)s?\b", name) else Aside.YES


# --- Kafka Streams ----------------------------------------------------------------------------------------------------

_ASIDE_OF_STREAMS: Final = ("admin.", "global.consumer.", "restore.consumer.", "topic.")
_EXACTLY_ONCE: Final = ("exactly_once", "exactly_once_v2", "exactly_once_beta")


def _of_streams(name: str) -> Meaning:
    if name.startswith(_ASIDE_OF_STREAMS) or name == "processing.guarantee":
        return Aside.YES
    if match := re.fullmatch(r"(producer|(?:main\.)?consumer)\.(.+)", name):
        return NamedSetting(
            match[2], _kind(match[1].removeprefix("main.")), rank=2 if match[1].startswith("main") else 1
        )
    return NamedSetting(name) if _plain(name) else None


def _base_of_streams(kind: Kind, values: Values, _: Version | None) -> Values:
    """The settings that Streams gives its clients (``StreamsConfig``)."""
    if kind == "consumer":
        return {"auto.offset.reset": "earliest", "group.id": values["application.id"]}
    once = values.get("processing.guarantee", "").strip() in _EXACTLY_ONCE
    return {"linger.ms": "100", **({"delivery.timeout.ms": _INT_MAX} if once else {})}


def _fixed_by_streams(kind: Kind, values: Values) -> Values:
    once = values.get("processing.guarantee", "").strip() in _EXACTLY_ONCE
    if kind == "consumer":
        return {"enable.auto.commit": "false", **({"isolation.level": "read_committed"} if once else {})}
    return {"enable.idempotence": "true", "transactional.id": values["application.id"]} if once else {}


# --- Spring -----------------------------------------------------------------------------------------------------------

#: Spring's own names of settings that decide, without what its relaxed binding does not look at.
_OF_SPRING: Final[Mapping[tuple[str, str], str]] = {
    ("producer", "acks"): "acks",
    ("producer", "retries"): "retries",
    ("producer", "transactionidprefix"): "transactional.id",
    ("producer", "compressiontype"): "compression.type",
    ("template", "transactionidprefix"): "transactional.id",
    ("consumer", "groupid"): "group.id",
    ("consumer", "autooffsetreset"): "auto.offset.reset",
    ("consumer", "enableautocommit"): "enable.auto.commit",
    ("consumer", "isolationlevel"): "isolation.level",
}
#: Its other names there, likewise.
_OTHERS_OF_SPRING: Final = frozenset(
    {
        "autocommitinterval", "batchsize", "bootstrapservers", "buffermemory", "clientid", "fetchmaxwait",
        "fetchminsize", "heartbeatinterval", "keydeserializer", "keyserializer", "maxpollinterval", "maxpollrecords",
        "valuedeserializer", "valueserializer",
    }
)  # fmt: skip
_PROPERTY: Final = re.compile(r"spring\.kafka\.(?:(producer|consumer)\.)?properties(?:\.\[|\[|\.)[\"']?(.+?)[\"']?\]?")


def _of_spring(name: str) -> Meaning:
    if match := _PROPERTY.fullmatch(name):
        return NamedSetting(match[2], _kind(match[1]) if match[1] else None, rank=3 if match[1] else 1)
    lowered = name.lower()
    if not lowered.startswith("spring."):
        # An application's own names matter where they are about Kafka.
        return None if re.search(r"kafka|producer|consumer", lowered) else Aside.YES
    if match := re.fullmatch(r"spring\.kafka\.(producer|consumer|template)\.([\w-]+)", lowered):
        own = re.sub(r"[_-]", "", match[2])
        if setting := _OF_SPRING.get((match[1], own)):
            return NamedSetting(setting, _kind("producer" if match[1] == "template" else match[1]), rank=2)
        return Aside.YES if own in _OTHERS_OF_SPRING or match[1] == "template" else None
    if re.match(r"spring\.kafka\.(?:producer|consumer)\.(?:ssl|security)\.", lowered):
        return Aside.YES
    ours = ("spring.kafka.producer", "spring.kafka.consumer", "spring.kafka.streams", "spring.kafka.properties")
    return None if lowered.startswith((*ours, "spring.cloud.stream")) else Aside.YES


# --- MicroProfile (Quarkus, Helidon), Micronaut -----------------------------------------------------------------------

_CHANNEL: Final = re.compile(r"mp\.messaging\.(outgoing|incoming)\.(\"[^\"]+\"|[^.]+)\.(.+)")
_OF_CHANNELS: Final = frozenset({"connector", "topic", "topics", "enabled", "value.serializer", "key.serializer"})


def _of_channels(name: str) -> Meaning:
    if match := _CHANNEL.fullmatch(name):
        kind: Kind = "producer" if match[1] == "outgoing" else "consumer"
        own = match[3].strip('"')
        return Aside.YES if own in _OF_CHANNELS else NamedSetting(own, kind, of=match[2].strip('"'), rank=2)
    if match := re.fullmatch(r"mp\.messaging\.connector\.\"?[\w-]+\"?\.(.+)", name):
        return NamedSetting(match[1].strip('"'), rank=1)
    if name.startswith("kafka."):
        return NamedSetting(name.removeprefix("kafka."))
    return None if re.search(r"kafka|producer|consumer|messaging", name) else Aside.YES


def _base_of_channels(kind: Kind, values: Values, _: Version | None) -> Values:
    """The settings that the connector of SmallRye, which Quarkus has, gives its clients."""
    connectors = {value for name, value in values.items() if name.endswith(".connector")}
    if connectors and "smallrye-kafka" not in connectors:
        return {}
    return {"acks": "1"} if kind == "producer" else {"enable.auto.commit": "false"}


def _of_micronaut(name: str) -> Meaning:
    if match := re.fullmatch(r"kafka\.(producer|consumer)s\.([^.]+)\.(.+)", name):
        default = match[2] == "default"
        return NamedSetting(match[3], _kind(match[1]), of="" if default else match[2], rank=1 if default else 2)
    if name.startswith("kafka."):
        return NamedSetting(name.removeprefix("kafka."))
    return None if re.search(r"kafka|producer|consumer", name) else Aside.YES


# --- the plain form ---------------------------------------------------------------------------------------------------

#: Words that may stand before a setting, and say nothing but whose it is.
_WORDS: Final = frozenset(
    {
        "cfg", "client", "clients", "common", "conf", "config", "configs", "configuration", "consumer", "consumers",
        "default", "defaults", "global", "kafka", "librdkafka", "options", "producer", "producers", "properties",
        "props", "rdkafka", "settings", "topic", "topicconf",
    }
)  # fmt: skip
#: The same of more than one word.
_PHRASES: Final = ("default.topic.config", "default_topic_conf", "default.topic.conf", "topic.config")


def _of_none(name: str) -> Meaning:
    """A setting by its name, maybe behind words that say whose it is: producer.acks, kafka_consumer_group_id."""
    if _plain(name) or _plain(with_dots(name)):
        return NamedSetting(name)
    for phrase in _PHRASES:
        if name.startswith(f"{phrase}.") or f".{phrase}." in name:
            before, _, setting = name.rpartition(f"{phrase}.")
            return _behind(before.strip("."), setting, 1)
    dotted = with_dots(name)
    words = dotted.split(".")
    for number in range(1, len(words)):
        if not {word.lower() for word in words[:number]} <= _WORDS:
            return None
        setting = ".".join(words[number:])
        if _plain(with_dots(setting)):
            return _behind(".".join(words[:number]), setting, number + 1)
    return None


def _behind(before: str, setting: str, rank: int) -> Meaning:
    """The meaning of a setting behind words."""
    roles = {word.rstrip("s") for word in before.lower().split(".")} & {"producer", "consumer"}
    if len(roles) > 1 or not _plain(with_dots(setting)):
        return None
    return NamedSetting(setting, _kind(roles.pop()) if roles else None, rank=rank)


def _plain(name: str) -> bool:
    return is_known(name, "producer") or is_known(name, "consumer")


def _kind(role: str) -> Kind:
    return "producer" if role == "producer" else "consumer"


def _begins(*beginnings: str) -> Callable[[Values], bool]:
    return lambda values: any(name.lower().startswith(beginnings) for name in values)


_FRAMEWORKS: Final = (
    Framework(
        "MirrorMaker 2",
        lambda values: "clusters" in values and any("->" in name for name in values),
        _of_mirrors,
        _base_of_connect,
    ),
    Framework(
        "a connector of Kafka Connect",
        lambda values: "connector.class" in values or "config.connector.class" in values,
        _of_connector,
        _base_of_connect,
        missing="the worker's file may set it for every connector; write it here, too, as producer.override.{name}",
    ),
    Framework(
        "Kafka Connect",
        lambda values: bool(_OF_WORKERS & values.keys()),
        _of_connect,
        _base_of_connect,
        _fixed_by_connect,
    ),
    Framework(
        "Kafka Streams",
        lambda values: "application.id" in values,
        _of_streams,
        _base_of_streams,
        _fixed_by_streams,
    ),
    Framework(
        "Spring",
        _begins("spring.kafka.", "spring.cloud.stream."),
        _of_spring,
        unread=(
            "spring.cloud.stream.",
            "clients of Spring Cloud Stream are not read; write their settings as a producer's, such as acks=all",
        ),
    ),
    Framework("MicroProfile", _begins("mp.messaging."), _of_channels, _base_of_channels),
    Framework("Micronaut", _begins("kafka.producers.", "kafka.consumers."), _of_micronaut),
    Framework("", lambda _: True, _of_none),
)


def names_of_frameworks() -> Collection[str]:
    """The titles of the frameworks whose files are read."""
    return [each.title for each in _FRAMEWORKS if each.title]

"""Reads the values of settings of brokers and topics as Kafka does: once, where a text becomes a value.

The rules are those of ``ConfigDef.parseType``: spaces around a value do not count, booleans are true or false in any
case, whole numbers have a range. What Kafka does not take, and what another program replaces, is refused: no default is
taken for it. "Not set" is written as nothing, ``null`` or ``None`` by tools and templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from harness.assess.properties_files import trimmed
from workloads import shown

Parse = Callable[[str], str]

_UNSET: Final = frozenset({"", "null", "none", "~"})
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_VERSION: Final = re.compile(r"\d+(\.\d+){1,3}(-IV\d+)?")
#: Signs of a text that another program replaces by the value: ${env:X}, {{ .Values.x }}, <%= x %>, $(X), %X%, @x@.
_FILLED_IN: Final = re.compile(r"\$\{|\$\(|\{\{|<%|^\$\w+$|^%\w+%$|^@[\w.]+@$|^<[\w -]+>$")
_QUOTES: Final = ('"', "'")


def _whole(bits: int, least: int | None = None) -> Parse:
    def parsed(text: str) -> str:
        if not _WHOLE.fullmatch(text):
            raise ValueError(f"a whole number is wanted{_hint(text)}")
        number = int(text)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError("it is beyond every number that this setting takes")
        if least is not None and number < least:
            raise ValueError(f"Kafka takes no value below {least}")
        return str(number)

    return parsed


def _boolean(text: str) -> str:
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"true or false is wanted{_hint(text)}")
    return text.lower()


def _listed(*possible: str) -> Parse:
    def parsed(text: str) -> str:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if other := [part for part in parts if part not in possible]:
            raise ValueError(f"{shown(other[0])} is not one of {', '.join(possible)}{_hint(text)}")
        return ",".join(dict.fromkeys(parts))

    return parsed


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError(f"a version such as 2.8 or 3.0-IV1 is wanted{_hint(text)}")
    return text


def _text(text: str) -> str:
    return text


def _hint(text: str) -> str:
    """The likely reason of a text that is no value."""
    if text.startswith(_QUOTES) or text.endswith(_QUOTES):
        return "; quotes are part of a value here: leave them out"
    if "#" in text:
        return "; a comment behind a value is part of it: give it a line of its own"
    return ""


_INT: Final = _whole(32)
_LONG: Final = _whole(64)
_POSITIVE: Final = _whole(32, 1)
_LONG_FROM_NOTHING: Final = _whole(64, 0)
_LONG_POSITIVE: Final = _whole(64, 1)
#: The rule by which Kafka reads each setting that decides something here; those of all other names are texts.
_PARSES: Final[Mapping[str, Parse]] = {
    "min.insync.replicas": _POSITIVE,
    "unclean.leader.election.enable": _boolean,
    "flush.messages": _LONG_POSITIVE,
    "cleanup.policy": _listed("delete", "compact"),
    "retention.ms": _whole(64, -1),
    "delete.retention.ms": _LONG_FROM_NOTHING,
    "message.format.version": _version,
    "log.flush.interval.messages": _LONG_POSITIVE,
    "log.cleanup.policy": _listed("delete", "compact"),
    "log.retention.ms": _LONG,
    "log.retention.minutes": _INT,
    "log.retention.hours": _INT,
    "log.cleaner.delete.retention.ms": _LONG_FROM_NOTHING,
    "log.message.format.version": _version,
    "replica.lag.time.max.ms": _LONG,
    "replica.fetch.wait.max.ms": _INT,
    "replica.fetch.backoff.ms": _whole(32, 0),
    "broker.session.timeout.ms": _INT,
    "broker.heartbeat.interval.ms": _INT,
    "unclean.leader.election.interval.ms": _LONG_POSITIVE,
    "auto.create.topics.enable": _boolean,
    "default.replication.factor": _INT,
    "offsets.topic.replication.factor": _whole(16, 1),
    "transaction.state.log.replication.factor": _whole(16, 1),
    "transaction.state.log.min.isr": _POSITIVE,
    "transaction.partition.verification.enable": _boolean,
    "offsets.retention.minutes": _POSITIVE,
    "inter.broker.protocol.version": _version,
    "retention.bytes": _LONG,
    "log.retention.bytes": _LONG,
    "flush.ms": _LONG_FROM_NOTHING,
    "log.flush.interval.ms": _LONG,
    "share.coordinator.state.topic.replication.factor": _whole(16, 1),
    "share.coordinator.state.topic.min.isr": _whole(16, 1),
    "offsets.commit.required.acks": _whole(16),
    "controlled.shutdown.enable": _boolean,
    "producer.id.expiration.ms": _POSITIVE,
    "remote.log.storage.system.enable": _boolean,
    "process.roles": _listed("broker", "controller"),
    "node.id": _INT,
    "broker.id": _INT,
}


#: Settings that are texts to Kafka.
_TEXTS: Final = frozenset(
    {
        "broker.rack", "controller.quorum.voters", "log.dir", "log.dirs", "metadata.log.dir", "replica.selector.class",
        "zookeeper.connect",
    }
)  # fmt: skip
#: Every setting with a rule here.
READ: Final = _TEXTS | _PARSES.keys()


def understood(name: str, text: str) -> str | None:
    """The value of the setting ``name`` in its one form ("true", "2", "compact,delete"); None where it is not set.

    Raises:
        ValueError: it is no value that Kafka takes, or is filled in elsewhere; the words say why.
    """
    value = trimmed(text)
    if value.lower() in _UNSET:
        return None
    if _FILLED_IN.search(value):
        raise ValueError("its value is filled in elsewhere; write the value itself")
    return _PARSES.get(name, _text)(value)

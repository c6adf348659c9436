"""Reads the values of settings as the clients of a library do, and says why one is no value to them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from harness.assess.properties_files import trimmed
from harness.ground.known_defects import Library
from workloads import shown

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1


class Range(NamedTuple):
    """The least and the most that a number may be."""

    least: int
    most: int = _INT_MAX


#: Numbers, with what Kafka's own client takes (its ``ProducerConfig``).
_NUMBERS: Final[Mapping[str, Range]] = {
    "retries": Range(0),
    "max.in.flight.requests.per.connection": Range(1),
    "request.timeout.ms": Range(0),
    "delivery.timeout.ms": Range(0),
    "linger.ms": Range(0, _LONG_MAX),
    "retry.backoff.ms": Range(0, _LONG_MAX),
    "transaction.timeout.ms": Range(0),
}
#: The ranges that librdkafka takes, as far as they differ (its CONFIGURATION.md).
_OF_LIBRDKAFKA: Final[Mapping[str, Range]] = {
    "max.in.flight.requests.per.connection": Range(1, 1_000_000),
    "request.timeout.ms": Range(1, 900_000),
    "linger.ms": Range(0, 900_000),
    "retry.backoff.ms": Range(1, 300_000),
    "transaction.timeout.ms": Range(1_000),
}
_CHOICES: Final[Mapping[str, frozenset[str]]] = {
    "acks": frozenset({"all", "-1", "0", "1"}),
    "isolation.level": frozenset({"read_committed", "read_uncommitted"}),
    "group.protocol": frozenset({"classic", "consumer"}),
}
#: The choices that Kafka's own client takes in large letters, too.
_ANY_CASE: Final = frozenset({"group.protocol"})
_RESETS: Final[Mapping[Library, frozenset[str]]] = {
    "java": frozenset({"earliest", "latest", "none"}),
    "librdkafka": frozenset({"smallest", "earliest", "beginning", "largest", "latest", "end", "error"}),
    "kafka-python": frozenset({"earliest", "latest", "smallest", "largest", "none"}),
}
_BOOLEANS: Final = frozenset({"enable.idempotence", "enable.auto.commit", "enable.partition.eof"})
_TRUE: Final = frozenset({"true"})
_FALSE: Final = frozenset({"false"})
_SHORT: Final[Mapping[str, str]] = {"t": "true", "1": "true", "f": "false", "0": "false"}
#: Settings whose value is any text: nothing, or a word for it, is not set.
_TEXTS: Final = frozenset({"transactional.id", "group.id", "compression.type"})
_UNSET: Final = frozenset({"", "null", "None", "nil", "NULL", "~", "<none>", "undefined"})
_WHOLE: Final = re.compile(r"[-+]?[0-9]+")
_OF_C: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)")
_FRACTION: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
#: Signs of a value that comes from elsewhere: ${env:ACKS}, $(ACKS), {{ acks }}, %(acks)s, <%= acks %>, @acks@.
_ELSEWHERE: Final = re.compile(
    r"\$\{.*?\}|\$\(.*?\)|\{\{.*?\}\}|%\(\w+\)s|<%.*?%>|#\{.*?\}|^@[\w.-]+@$|^\$\w+$|^%\w+%$", re.DOTALL
)
_QUOTES: Final = "\"'"
_BEHIND: Final = re.compile(r"\S+\s+(?:#|//|;|!).*", re.DOTALL)


class NotAValueError(ValueError):
    """A text that no client of the library takes for this setting; the words say why."""


def value_of(name: str, text: str, library: Library) -> str | None:
    """The value that a client of ``library`` takes a text for, in one spelling; None where it says "not set".

    ``name`` is the setting's, under Kafka's name, and one of those that decide here.

    Raises:
        NotAValueError: it is no value; nothing may be taken in its place.
    """
    bare = trimmed(text)
    if _ELSEWHERE.search(bare) and not (name in _TEXTS and _ELSEWHERE.sub("", bare).strip()):
        raise NotAValueError("the value comes from elsewhere, and is not known here; write it out")
    if name in _TEXTS:
        return None if bare in _UNSET else bare
    if bare in _UNSET and (name != "auto.offset.reset" or not bare):
        raise NotAValueError(
            "this is no value, and clients refuse to start with it; leave the setting out, or write one"
        )
    if name in _BOOLEANS:
        return _boolean(bare, library)
    if name in _NUMBERS:
        return _number(name, bare, library)
    return _choice(name, bare, library)


def _boolean(bare: str, library: Library) -> str:
    """Kafka's own client takes TRUE, too (``ConfigDef.parseType``)."""
    lowered = bare.lower()
    if library == "librdkafka":
        lowered = _SHORT.get(lowered, lowered)
    if lowered not in _TRUE | _FALSE:
        raise NotAValueError(f"it is true or false, {_refusal(bare, library)}")
    return lowered


def _number(name: str, bare: str, library: Library) -> str:
    limits = _OF_LIBRDKAFKA.get(name, _NUMBERS[name]) if library == "librdkafka" else _NUMBERS[name]
    number: int | float
    if library == "librdkafka" and _OF_C.fullmatch(bare):
        number = int(bare, 8 if re.fullmatch(r"[-+]?0\d+", bare) else 0)
    elif _WHOLE.fullmatch(bare):
        number = int(bare)
    elif library != "java" and name == "linger.ms" and _FRACTION.fullmatch(bare):
        number = float(bare)
    else:
        raise NotAValueError(f"it takes a whole number, {_refusal(bare, library)}")
    if not limits.least <= number <= limits.most:
        raise NotAValueError(f"it takes {limits.least} to {limits.most}, {_refusal(bare, library)}")
    return f"{number:g}" if isinstance(number, float) and not number.is_integer() else str(int(number))


def _choice(name: str, bare: str, library: Library) -> str:
    if name == "auto.offset.reset":
        choices = _RESETS[library]
        if library == "java" and bare.startswith("by_duration:"):
            return bare
    else:
        choices = _CHOICES.get(name, frozenset({bare}))
    value = bare if library == "java" and name not in _ANY_CASE else bare.lower()
    if value not in choices:
        raise NotAValueError(f"choose one of {', '.join(sorted(choices))}, {_refusal(bare, library)}")
    return value


def _refusal(bare: str, library: Library) -> str:
    """The end of a sentence about a value that does not parse."""
    if bare[:1] in _QUOTES and len(bare) > 1:
        return f"and quotes are part of a value: {library} refuses to start with them; write it without"
    if _BEHIND.fullmatch(bare):
        return (
            f"and a comment behind it is part of a value: {library} refuses to start with it; give it a line of its own"
        )
    return f"not {shown(bare)}, with which {library} refuses to start"

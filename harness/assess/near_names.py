"""Finds the setting that an unknown name may mean: behind a prefix, in another spelling, or with a slip."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from harness.assess.client_settings import ALIASES
from harness.assess.setting_names import Kind, is_known, with_dots

#: The settings that decide, by the kind of client that has them.
DECISIVE_OF: Final[Mapping[Kind, tuple[str, ...]]] = {
    "producer": (
        "acks", "enable.idempotence", "retries", "max.in.flight.requests.per.connection", "request.timeout.ms",
        "delivery.timeout.ms", "linger.ms", "retry.backoff.ms", "transactional.id", "transaction.timeout.ms",
    ),
    "consumer": (
        "auto.offset.reset", "enable.auto.commit", "isolation.level", "group.id", "group.protocol",
        "enable.partition.eof",
    ),
}  # fmt: skip
#: Other words for these, of wrappers, frameworks and other libraries.
_OTHERS: Final[Mapping[str, str]] = {
    "required.acks": "acks",
    "idempotent": "enable.idempotence",
    "idempotence": "enable.idempotence",
    "max.in.flight.requests": "max.in.flight.requests.per.connection",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "transaction.id.prefix": "transactional.id",
    "transaction.id": "transactional.id",
    "processing.guarantee": "transactional.id",
}
#: The first words of names that are of something beside the client: of its serializers, its security, its metrics.
_BESIDE: Final = (
    "apicurio.", "auto.register.", "avro.", "confluent.", "json.", "logging.", "management.", "metric", "protobuf.",
    "sasl.", "schema.", "specific.", "ssl.", "security.", "value.", "key.", "use.latest.",
)  # fmt: skip
#: A name is taken for a slip of another that begins likewise and is so alike; behind a prefix more is alike by chance.
_ALIKE: Final = 0.75
_ALIKE_BEHIND: Final = 0.85
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def inside(value: str, kind: Kind) -> str:
    """The first decisive setting of such a client that is set inside a value; empty for none."""
    match = _SET[kind].search(value)
    return "" if match is None else _spellings(kind)[re.sub(r"[._-]", "", match[1]).lower()]


@cache
def near(name: str, kind: Kind) -> str:
    """The decisive setting of such a client that a name may mean; empty for none, and for every name that exists.

    A setting that some client has is itself, and no slip, in whichever library.
    """
    dotted = with_dots(name)
    if any(is_known(each, kind_of) for each in (name, dotted) for kind_of in DECISIVE_OF):
        return ""
    if dotted.lower().startswith(_BESIDE):
        return ""
    words = [word.lower() for word in _WORD.findall(name)]
    spellings = _spellings(kind)
    for ending in _endings(words):
        if decisive := spellings.get("".join(ending)):
            return decisive
    for ending in _endings(words):
        alike = _ALIKE if len(ending) == len(words) else _ALIKE_BEHIND
        like = [spelling for spelling in spellings if spelling[0] == ending[0][0]]
        if close := difflib.get_close_matches("".join(ending), like, n=1, cutoff=alike):
            return spellings[close[0]]
    return ""


def _endings(words: list[str]) -> Iterator[list[str]]:
    """The last words of a name, the most first."""
    for first in range(len(words)):
        yield words[first:]


def _names_of(kind: Kind) -> dict[str, str]:
    """The decisive settings by their names in any library."""
    own = DECISIVE_OF[kind]
    return {**{name: name for name in own}, **{alias: name for alias, name in ALIASES.items() if name in own}}


@cache
def _spellings(kind: Kind) -> Mapping[str, str]:
    """The decisive settings by their letters alone."""
    names = _names_of(kind) | {other: name for other, name in _OTHERS.items() if name in DECISIVE_OF[kind]}
    return {name.replace(".", ""): decisive for name, decisive in names.items()}


def _set_inside(kind: Kind) -> re.Pattern[str]:
    """The pattern of a decisive setting inside a text: its name, and a sign behind it.

    Its words have dots, underscores or dashes between them. Words may be before it, and one of them is Kafka's or the
    client's: -Dspring.kafka.producer.acks=1, KAFKA_ACKS=1.
    """
    names = "|".join("[._-]".join(map(re.escape, name.split("."))) for name in _names_of(kind))
    before = r"(?<![\w.])|(?:kafka|producer|consumer)[\w.-]{0,60}[._]"
    return re.compile(rf"(?:{before})({names})[\"']?\s*[=:]", re.IGNORECASE)


_SET: Final[Mapping[Kind, re.Pattern[str]]] = {kind: _set_inside(kind) for kind in DECISIVE_OF}

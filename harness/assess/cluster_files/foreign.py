"""Knows what other programs print of a cluster by its look, so that it is refused by name with what to give instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_KCAT: Final = "it is what kcat prints, which has no settings of topics"
_RPK: Final = "it is what rpk prints"
_CONFLUENT: Final = "it is a table of the Confluent CLI or of a page"
_LISTING: Final = "give the text of `kafka-topics.sh --describe`"
_GENERATED: Final = "give what `kafka-reassign-partitions.sh --generate` prints"
_TEXTS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"^Metadata for (all topics|\S+) \(from broker ", re.MULTILINE), _KCAT),
    (re.compile(r"^\s+partition \d+, leader -?\d+, replicas:", re.MULTILINE), _KCAT),
    (re.compile(r"^(SUMMARY|CONFIGS|PARTITIONS)\s*\n=+\s*$", re.MULTILINE), _RPK),
    (re.compile(r"^(KEY\s+VALUE\s+SOURCE|PARTITION\s+LEADER\s+EPOCH|NAME\s+PARTITIONS\s+REPLICAS)\b", re.MULTILINE),
     _RPK),
    (re.compile(r"^\s*[|┃│]?\s*Name\s*[|┃│]", re.MULTILINE), _CONFLUENT),
    (re.compile(r"^[+|][-+|]{8,}$", re.MULTILINE), _CONFLUENT),
    (re.compile(r"^\s*Topic\s*\|\s*Partition\s*\|", re.MULTILINE), _CONFLUENT),
    (re.compile(r"^\s*<(!DOCTYPE|html|\?xml)", re.IGNORECASE), "it is a page"),
    (re.compile(r"^ClusterId:.*$\n^LeaderId:", re.MULTILINE), "it is what kafka-metadata-quorum.sh prints"),
    (re.compile(r"^GROUP\s+TOPIC\s+PARTITION\b", re.MULTILINE), "it is what kafka-consumer-groups.sh prints"),
    (re.compile(r"\(id: \d+ rack: .*\) -> \($", re.MULTILINE), "it is what kafka-broker-api-versions.sh prints"),
    (re.compile(r"\b(Producer|Consumer|Admin)(Client)?Config values:", re.MULTILINE),
     "it is the log of a client; name it with --producer or --consumer"),
)  # fmt: skip

#: Objects by names that they have, and names that they have not.
_OBJECTS: Final[tuple[tuple[frozenset[str], frozenset[str], str], ...]] = tuple(
    (frozenset(some.split()), frozenset(without.split()), f"{why}; {what}")
    for some, without, why, what in (
        ("originating_broker", "", _KCAT, _LISTING),
        ("controllerid", "", _KCAT, _LISTING),
        ("groups source", "", "it is an answer of `ackproof assess --json`", "give what --save wrote"),
        ("topics version", "partitions source", "it names topics to move, and no replicas", _GENERATED),
        ("summary", "source", f"{_RPK}, or another program", _LISTING),
        ("topic partitions", "source", f"{_RPK}, or another program", _LISTING),
    )
)


def foreign_text(text: str) -> str:
    """The reason why the text of another program is not read; empty where its look is not known."""
    why = next((why for look, why in _TEXTS if look.search(text)), "")
    return f"{why}; {_LISTING}" if why else ""


def foreign_json(content: object) -> str:
    """The same of JSON."""
    if isinstance(content, list):
        content = next((each for each in content if isinstance(each, dict)), {})
    if not isinstance(content, Mapping):
        return f"it is JSON of no known kind; {_LISTING}"
    names = set(content)
    if str(content.get("kind", "")).startswith("Kafka") and "apiVersion" not in names:
        return f"it is an answer of Confluent's REST proxy or CLI; {_LISTING}"
    return next((why for some, without, why in _OBJECTS if some <= names and not without & names), "")

"""Recognises texts that are no configuration of a client, and says what to give instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_CLIENT: Final = "the file from which the client gets its settings, or settings such as acks=all"
_CLUSTER: Final = "it as FILE, in front of --producer and --consumer"
#: The sign of a kind of texts, its name, and what to give instead.
_KINDS: Final[Mapping[re.Pattern[str], tuple[str, str]]] = {
    re.compile(pattern, re.MULTILINE): (what, instead)
    for pattern, what, instead in (
        (r"^Metadata for .+\(from broker", "a listing of kcat -L", _CLIENT),
        (r"^(?:CLUSTER|BROKERS|TOPICS|SUMMARY|CONFIGS|PARTITIONS)\s*\n=+\s*$", "a listing of rpk", _CLIENT),
        (r"^KEY +VALUE +SOURCE\s*$", "a listing of rpk", _CLIENT),
        (r"^\s*Name +\| +(?:Value|Read-Only|Partition|Is Internal)|^ *-+\+-+", "a table of the Confluent CLI", _CLIENT),
        (r"^\s*Topic: ?\S+\s.*Partition", "what kafka-topics.sh printed", _CLUSTER),
        (
            r"^(?:(?:All |Dynamic |Default )?configs for (?:topic|broker|the)|Configs for (?:topic|broker|entity))",
            "what kafka-configs.sh printed",
            _CLUSTER,
        ),
        (r"^\s*<(?:\?xml|!DOCTYPE|[a-z]+[ >:])", "XML or HTML", _CLIENT),
        (
            r"^\s*[\w.-]+\s*\{\s*(?:#.*|//.*)?$",
            "HOCON or a program's source",
            f"{_CLIENT}; a table of JSON is read",
        ),
    )
}


def what_it_is(text: str) -> tuple[str, str] | None:
    """The kind of a text, and what to give instead; None where it may be a configuration of a client."""
    return next((words for pattern, words in _KINDS.items() if pattern.search(text)), None)

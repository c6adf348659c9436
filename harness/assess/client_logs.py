"""Reads the settings with which a client works from its log, where Kafka's own client writes all of them.

The block begins with "ProducerConfig values:" or "ConsumerConfig values:", and has a line for each setting. Lines may
have a time, a level or a container's name before them.
"""

from __future__ import annotations

import re
from typing import Final

from harness.assess.setting_names import Kind
from harness.assess.written_settings import Program, Written

_HEADER: Final = re.compile(r"\b(\w+)Config values:\s*")
_ENTRY: Final = re.compile(r"(?:^|[\s|>\]:])([a-z][a-z0-9]*(?:\.[a-z0-9]+)*) =(?: (.*))?$")
_VERSION: Final = re.compile(r"Kafka version ?: ?v?(\d[\w.-]*)")
#: A release of Apache's; a vendor's has more behind it, and may have other numbers (7.1.0-ccs is of Kafka 3.1).
_OF_APACHE: Final = re.compile(r"\d+(\.\d+){1,3}")
_OF_KIND: Final[dict[Kind, str]] = {"producer": "Producer", "consumer": "Consumer"}


def is_log(text: str) -> bool:
    """True if the text has a block of settings that a client logged."""
    return _HEADER.search(text) is not None


def groups_in(text: str, file: str, kind: Kind) -> list[Program]:
    """The clients of a kind that the log names, those with the same settings once.

    Raises:
        ValueError: it has none of this kind.
    """
    if r"\n" in text and r"\t" in text and text.count("\n") < text.count(r"\n"):  # a log in JSON: a block is one line
        text = text.replace(r"\r", "").replace(r"\n", "\n").replace(r"\t", "\t")
    versions = sorted({release.rstrip(".-") for release in _VERSION.findall(text)})
    version = versions[0] if len(versions) == 1 and _OF_APACHE.fullmatch(versions[0]) else ""
    unsure = "" if version else ", ".join(versions)
    groups: dict[tuple[tuple[str, str | None], ...], Program] = {}
    for settings in _blocks(text, file, _OF_KIND[kind]):
        values = {each.name: each.value for each in settings}
        label = values.get("client.id") or ""
        without = tuple((name, value) for name, value in values.items() if name != "client.id")
        label = "" if label == "null" else label
        groups.setdefault(without, Program(label, settings, whole=True, version=version, unsure=unsure))
    if not groups:
        raise ValueError(_why_none(text, _OF_KIND[kind], kind))
    return list(groups.values())


def _why_none(text: str, wanted: str, kind: Kind) -> str:
    if any(header[1] == wanted for header in _HEADER.finditer(text)):
        return f'no line "name = value" is below "{wanted}Config values:"; each setting has a line of its own there'
    return f'it is a log without "{wanted}Config values:", so without a {kind}'


def _blocks(text: str, file: str, wanted: str) -> list[list[Written]]:
    blocks: list[list[Written]] = []
    block: list[Written] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.search(line):
            block = None
            if header[1] == wanted:
                block = []
                blocks.append(block)
        elif block is not None:
            if entry := _ENTRY.search(line.rstrip()):
                value = (entry[2] or "").strip()
                block.append(Written(entry[1], value, f"{file}, line {number}"))
            elif line.strip(" \t") and not line.strip().startswith("#"):
                block = None
    return [own for own in blocks if own]

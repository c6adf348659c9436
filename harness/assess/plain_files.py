"""Reads the settings of files with one in each line: properties, files of environment variables, and INI sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from harness.assess.properties_files import Encoding, Entry, entries_in, trimmed
from harness.assess.written_settings import Written

_VARIABLE: Final = re.compile(r"\s*(?:export\s+|set\s+|ENV\s+)?([A-Z][A-Z0-9_]*)\s*=(.*)")
_SECTION: Final = re.compile(r"\s*\[\s*([\w.:/ -]+?)\s*\]\s*(?:[#;].*)?")
_PAIR: Final = re.compile(r"\s*([^=:\s]+)\s*[=:]\s*(.*)")
#: A section that belongs to every client.
_COMMON: Final = frozenset({"default", "common", "global", "kafka", "client"})
_DOCUMENT: Final = re.compile(r"[#!]---\s*")
_PROFILES: Final = ("spring.config.activate.on-profile", "spring.profiles")
_QUOTED: Final = re.compile(r"([\"'])(.*)\1")
_MARKED: Final = "the file begins with a byte order mark, which Java takes for the beginning of this name"


def is_environment(text: str) -> bool:
    """True if every line sets an environment variable."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(_VARIABLE.fullmatch(line) for line in lines)


def environment_in(text: str, file: str) -> list[Written]:
    """The variables, by their own names; quotes around a value are the shell's."""
    settings = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("#") and (match := _VARIABLE.fullmatch(line)):
            value = match[2].strip()
            quoted = _QUOTED.fullmatch(value)
            settings.append(Written(match[1], quoted[2] if quoted else value, f"{file}, line {number}"))
    return settings


def variables(settings: Sequence[Written]) -> list[Written]:
    """Environment variables under the names of the settings that they are written for; other settings as they are.

    The rule is that of Confluent's images (a dot is _, an underscore __, a dash ___) and of Spring's relaxed binding.
    Settings of a profile of Quarkus, such as %prod.kafka.acks, are uncertain.
    """
    named = [_unprofiled(each._replace(name=_of_variable(each.name))) for each in settings]
    if any(each.name.startswith("CONNECT_") for each in settings):
        named.append(Written("plugin.path", "", ""))  # so that it is known as a worker's
    return named


def _unprofiled(written: Written) -> Written:
    """A setting of a profile of Quarkus under its own name, and uncertain."""
    if match := re.fullmatch(r"\"?%([\w,-]+)\"?\.(.+)", written.name):
        return written._replace(name=match[2], why=f"it counts where the profile {match[1]} is active")
    return written


def _of_variable(name: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Z0-9]*(?:_+[A-Z0-9]+)+", name):
        return name.lower() if re.fullmatch(r"[A-Z][A-Z0-9]*", name) else name
    if match := re.fullmatch(r"SPRING_KAFKA_(?:(PRODUCER|CONSUMER)_)?PROPERTIES_(.+)", name):
        role = f"{match[1].lower()}." if match[1] else ""
        return f"spring.kafka.{role}properties.{match[2].lower().replace('_', '.')}"
    if match := re.fullmatch(r"SPRING_KAFKA_(PRODUCER|CONSUMER|TEMPLATE)_(.+)", name):
        return f"spring.kafka.{match[1].lower()}.{match[2].lower().replace('_', '-')}"
    lowered = name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")
    return lowered.removeprefix("connect.")


def has_sections(text: str) -> bool:
    """True if a line is the heading of a section, as in INI files."""
    return any(_SECTION.fullmatch(line) for line in text.splitlines())


def sections_in(text: str, file: str) -> list[Written]:
    """The settings of an INI file, with the name of their section before their own, unless that is of every client."""
    section = ""
    settings = []
    for number, line in enumerate(text.splitlines(), 1):
        if heading := _SECTION.fullmatch(line):
            section = "" if heading[1].lower() in _COMMON else f"{heading[1]}."
        elif not line.lstrip().startswith(("#", ";")) and (match := _PAIR.fullmatch(line)):
            settings.append(Written(f"{section}{match[1]}", match[2].strip(), f"{file}, line {number}"))
    return settings


def properties(text: str, file: str, encoding: Encoding) -> list[Written]:
    """The settings of a file of properties, as Java reads them.

    Raises:
        ValueError: Java refuses the file.
    """
    if encoding == "utf-16":
        raise ValueError(
            "it is UTF-16, which no client reads; save it as UTF-8, for example by iconv -f utf-16 -t utf-8"
        )
    entries = entries_in(text)
    settings = [Written(entry.name, trimmed(entry.value), f"{file}, line {entry.line}") for entry in entries]
    if encoding == "utf-8-sig" and entries and entries[0].line == 1:
        settings[0] = settings[0]._replace(why=_MARKED)
    return list(_of_documents(text, entries, settings))


def _of_documents(text: str, entries: Sequence[Entry], settings: Sequence[Written]) -> Iterator[Written]:
    """The settings; those of a document of Spring that belongs to a profile are uncertain."""
    starts = [number for number, line in enumerate(text.splitlines(), 1) if _DOCUMENT.fullmatch(line)]
    profiles = {_document(entry.line, starts): trimmed(entry.value) for entry in entries if entry.name in _PROFILES}
    for entry, each in zip(entries, settings, strict=True):
        profile = profiles.get(_document(entry.line, starts))
        uncertain = f"it counts where the profile {profile} is active" if profile else ""
        yield each._replace(why=each.why or uncertain)


def _document(line: int, starts: Sequence[int]) -> int:
    return sum(start < line for start in starts)

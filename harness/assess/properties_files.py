"""Reads files of text: their encodings, and properties by Java's own rules.

The rules are those of ``java.util.Properties.load(InputStream)``, with which Kafka loads every file of properties
(``Utils.loadProps``); a test holds them against it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

from harness.ground.errors import PlanError
from workloads import reason_of

Encoding = Literal["utf-8", "utf-8-sig", "utf-16", "latin-1"]

#: Everything of a cluster of thousands of topics has less.
_BYTES_MAX: Final = 200_000_000
_MARKS: Final[Mapping[bytes, Encoding]] = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: The space around names and values to Java; it knows no other.
_SPACE: Final = " \t\f"
_LINE: Final = re.compile(r"\r\n|\r|\n")
_ENTRY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(u.{0,4}|.)", re.DOTALL)
_UNICODE: Final = re.compile(r"u[0-9a-fA-F]{4}")
_SIGNS: Final[Mapping[str, str]] = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
#: Java's ``String.trim``, by which Kafka prepares every value, takes these away.
_TRIMMED: Final = "".join(map(chr, range(0x21)))


class FileText(NamedTuple):
    """The text of a file without its byte order mark, and the encoding that the bytes have."""

    text: str
    encoding: Encoding


class Entry(NamedTuple):
    """A property as Java reads it, the spaces behind its value included, and the number of its (first) line."""

    name: str
    value: str
    line: int


def decoded(path: Path, what: str) -> FileText:
    """The text of a file that is named on the command line, and its encoding.

    What is not UTF-8 is taken for Latin-1, as Java takes every file of properties. UTF-16 is told by its mark.

    Raises:
        PlanError: it cannot be read, is not text, or is far too large.
    """
    try:
        if not path.is_file():
            raise PlanError(f"{path} is not a file; name {what}")
        if path.stat().st_size > _BYTES_MAX:
            raise PlanError(f"{path} has more than 200 MB; name {what}")
        content = path.read_bytes()
        encoding = next((marked for mark, marked in _MARKS.items() if content.startswith(mark)), _unmarked(content))
        text = content.decode(encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} cannot be read ({reason_of(error)}); name {what}") from error
    if "\0" in text:
        raise PlanError(f"{path} is not text, or is UTF-16 without a byte order mark; save it as UTF-8, or name {what}")
    return FileText(text, encoding)


def read_text(path: Path, what: str) -> str:
    """The text of a file that is named on the command line, without its byte order mark.

    Raises:
        PlanError: it cannot be read, is not text, or is far too large.
    """
    return decoded(path, what).text


def entries_in(text: str) -> list[Entry]:
    """The properties in a text in their order, as Java reads them; of two with one name the last counts.

    An entry whose name is empty decides nothing, and is left out.

    Raises:
        ValueError: Java refuses the text; the words say in which line.
    """
    entries: list[Entry] = []
    for line, logical in _logical_lines(text):
        if match := _ENTRY.fullmatch(logical):
            name, value = (_unescaped(part, line) for part in match.groups())
            if name:
                entries.append(Entry(name, value, line))
    return entries


def properties_in(text: str) -> dict[str, str]:
    """The properties in a text, as Kafka takes them: as Java reads them, and without the spaces around values.

    Raises:
        ValueError: Java refuses the text; the words say in which line.
    """
    return {entry.name: trimmed(entry.value) for entry in entries_in(text)}


def trimmed(value: str) -> str:
    """A value without the spaces and signs around it that Kafka takes away."""
    return value.strip(_TRIMMED)


def _unmarked(content: bytes) -> Encoding:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its continuations, and the number of its first; comments, which have none, are left out."""
    joined, first = "", 0
    for number, natural in enumerate(_LINE.split(text), 1):
        bare = natural.lstrip(_SPACE)
        if not joined:
            if not bare or bare.startswith(("#", "!")):
                continue
            first = number
        continued = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
        joined += bare[:-1] if continued else bare
        if joined and not continued:
            yield first, joined
            joined = ""
    if joined:
        yield first, joined


def _unescaped(text: str, line: int) -> str:
    if "\\" not in text:
        return text

    def sign(match: re.Match[str]) -> str:
        escaped = match[1]
        if not escaped.startswith("u"):
            return _SIGNS.get(escaped, escaped)
        if not _UNICODE.fullmatch(escaped):
            raise ValueError(f"line {line}: {match[0]} is no sign of Unicode, and Java refuses the file")
        return chr(int(escaped[1:], 16))

    # Signs beyond the first plane are written as two.
    return _ESCAPED.sub(sign, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

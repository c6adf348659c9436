"""Histories of other tools: recognised by what they contain, turned into JSON lines, and stored.

| kind | begins with |
|---|---|
| JSON lines | an object with ``type`` and ``f``, or with ``options`` |
| Jepsen's EDN | a map with ``:type`` and ``:f``, or a vector of those |
| lines of Kafka's VerifiableProducer and VerifiableConsumer | an object with one of their names, behind any prefix |

The last two are written as JSON lines beside the stored history first, one operation at a time. So they are decoded in
splits as all others are, and memory does not grow with the file but by eight bytes for each operation, its line.
"""

from __future__ import annotations

import re
import tempfile
from array import array
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from workloads.history import files, verifiable
from workloads.history.edn import EdnError
from workloads.history.edn import operations as edn_operations
from workloads.history.importing import DecodeAll, decode_here, import_jsonl
from workloads.history.left_out import LeftOut
from workloads.history.origin import Origin

#: The begin of a file by which it is recognised.
LOOKED_AT: Final = 1 << 16
_PACKED: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
_EDN: Final = re.compile(
    r"(?:[\s,]|;[^\n]*(?:\n|$)|\#_)*(?:[\[(]\s*)?(?:\#jepsen[\w.]*|\#:?[A-Za-z][\w.]*)?\s*\{[\s,]*:"
)
#: The begin of an array of operations, whose lines may look like JSON lines.
_ARRAY: Final = re.compile(r"\s*\[\s*\{\s*\"")
#: Keys of each operation in EDN. Jepsen's other files have maps, too.
_OPERATION: Final = (":type", ":f")
#: The kinds of history, and the way out for a user of any other kind.
KINDS: Final = (
    "a history is a run of ackproof, JSON lines (one operation a line), Jepsen's history.edn, or the lines of Kafka's "
    "VerifiableProducer and VerifiableConsumer in one file; write any other history as JSON lines: "
    "docs/guides/history-format.md"
)


class HistoryKind(Enum):
    """The kinds of history that a file may be; values are words for messages."""

    PARQUET = "Parquet"
    JSON_LINES = "JSON lines"
    EDN = "EDN"
    VERIFIABLE = "lines of verifiable clients"


def recognised(path: Path) -> HistoryKind | None:
    """The kind of history that a file is, by its begin; None if it is of none of them.

    Raises:
        files.HistoryError: it is compressed.
        OSError: it cannot be read.
    """
    with path.open("rb") as opened:
        head = opened.read(LOOKED_AT)
    if head.startswith(b"PAR1"):
        return HistoryKind.PARQUET
    for magic, packing in _PACKED.items():
        if head.startswith(magic):
            raise files.HistoryError(f"{path} is compressed ({packing}); unpack it first")
    text = head.decode("utf-8-sig", errors="replace")
    if _EDN.match(text) and all(re.search(rf"{name}\b", text) for name in _OPERATION):
        return HistoryKind.EDN
    if _ARRAY.match(text):
        return None
    for line in text.splitlines():
        begin = line.find("{")
        if begin < 0:
            continue
        if any(entry["name"] in verifiable.NAMES for entry in verifiable.decoded(line)):
            return HistoryKind.VERIFIABLE
        if not line[:begin].strip() and _is_operation(line):
            return HistoryKind.JSON_LINES
    return None


def _is_operation(line: str) -> bool:
    try:
        entry = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(entry, dict) and ({"type", "f"} <= entry.keys() or "options" in entry)


def _is_array(source: Path) -> bool:
    with source.open("rb") as opened:
        return _ARRAY.match(opened.read(LOOKED_AT).decode("utf-8-sig", errors="replace")) is not None


def import_history(source: Path, directory: Path, decode_all: DecodeAll = decode_here) -> Origin:
    """Store another tool's history: ``clustered.parquet`` and ``origin.json`` in ``directory``.

    A file of no kind that is recognised is read as JSON lines, so that an error names its first wrong line.

    Raises:
        files.HistoryError: it cannot be understood; the text names file, line and reason.
        OSError: the file cannot be read or the directory not written.
    """
    kind = recognised(source)
    if kind is HistoryKind.PARQUET:
        raise files.HistoryError(f"{source} is a Parquet file; name the directory that it is stored in")
    if kind is None and _is_array(source):
        why = f"is one array of JSON; write one object a line: jq -c '.[]' {source.name}"
        raise files.HistoryError(f"{source} {why}")
    if kind in _TRANSCODED:
        return _Transcoded(source, directory, _TRANSCODED[kind]).stored(decode_all)
    return import_jsonl(source, directory, decode_all)


class _Options(msgspec.Struct, omit_defaults=True):
    """The first line of a file that was made here."""

    options: dict[str, Any]


#: Opens a history's text, and gives its options, its operations with their lines, and what they leave out.
_Opened = tuple[dict[str, Any], Iterator[tuple[int, Any]], LeftOut]
_Open = Callable[[Path], _Opened]


class _Transcoded:
    """A history that is written as JSON lines, to be stored from there; its messages name its own lines."""

    def __init__(self, source: Path, directory: Path, open_: _Open) -> None:
        self._source, self._directory, self._open = source, directory, open_
        self._lines = array("Q", [0])

    def stored(self, decode_all: DecodeAll) -> Origin:
        """Write it as JSON lines, and store those."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._directory, prefix=".lines-") as scratch:
            lines = Path(scratch) / f"{self._source.stem}.jsonl"
            try:
                left_out = self._write(lines)
            except (EdnError, verifiable.LineError) as error:
                raise files.HistoryError(f"{self._source}, line {error.line}: {error}") from error
            except UnicodeDecodeError as error:
                raise files.HistoryError(f"{self._source} is no text of UTF-8 ({error}); convert it first") from error
            return import_jsonl(lines, self._directory, decode_all, of=(self._source, self._lines, left_out))

    def _write(self, target: Path) -> LeftOut:
        options, operations, left_out = self._open(self._source)
        with target.open("wb") as sink:
            sink.write(msgspec.json.encode(_Options(options)) + b"\n")
            for line, operation in operations:
                sink.write(msgspec.json.encode(operation) + b"\n")
                self._lines.append(line)
        return left_out


def _text(source: Path) -> IO[str]:
    return source.open(encoding="utf-8-sig", newline="\n")


def _closing(source: IO[str], read: Callable[[IO[str]], Iterator[tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
    with source:
        yield from read(source)


def _open_edn(source: Path) -> _Opened:
    return {}, _closing(_text(source), edn_operations), LeftOut()


def _open_verifiable(source: Path) -> _Opened:
    with _lenient(source) as text:
        survey = verifiable.Survey(text)
    why = survey.incomplete
    options = {"ww_deps": False} | ({"complete": False, "incomplete": why} if why else {})
    return options, _closing(_lenient(source), survey.operations), survey.left_out


def _lenient(source: Path) -> IO[str]:
    """A log may have lines of anything; those that hold no object are passed over."""
    return source.open(encoding="utf-8-sig", errors="replace", newline="\n")


_TRANSCODED: Final[dict[HistoryKind | None, _Open]] = {
    HistoryKind.EDN: _open_edn,
    HistoryKind.VERIFIABLE: _open_verifiable,
}

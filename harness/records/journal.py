"""The undo journal: what must be undone, written down before it is done.

One JSON object a line, each forced to disk before the action it announces, so that whatever a dead harness left behind
is named in the file. Three kinds of line, in the order of their actions:

* ``{"entry": 3, "kind": "process", "facts": {...}}`` announces an action;
* ``{"entry": 3, "more": {...}}`` adds facts that exist only after it (a process id);
* ``{"entry": 3, "done": true}`` says that it is undone.

The kinds that exist, and the facts that undo them, are documented where they are undone
(:mod:`harness.worlds.hosts.undo`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from harness.ground.machine.durable_files import sync_directory

#: The name of the journal inside a run directory.
FILE_NAME: Final = "journal.jsonl"

Facts = Mapping[str, Any]


class PendingUndo(msgspec.Struct, frozen=True):
    """One action that is not undone: its number in the journal, its kind, and the facts that undo it."""

    entry: int
    kind: str
    facts: dict[str, Any]


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    entry: int
    kind: str | None = None
    facts: dict[str, Any] | None = None
    more: dict[str, Any] | None = None
    done: bool = False


class Journal:
    """Writes one journal. An existing file is continued; numbers go on after its last entry.

    Raises:
        OSError: if the file cannot be written; then the action must not be done.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._next = _last_entry(path) + 1
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        _end_torn_line(self._file, path)
        sync_directory(path.parent)

    def intend(self, kind: str, facts: Facts) -> int:
        """Announce an action and return its number; the line is on disk then."""
        entry = self._next
        self._next += 1
        self._write(_Line(entry=entry, kind=kind, facts=dict(facts)))
        return entry

    def amend(self, entry: int, facts: Facts) -> None:
        """Add facts that are known only after the action."""
        self._write(_Line(entry=entry, more=dict(facts)))

    def done(self, entry: int) -> None:
        """Record that the action is undone. Safe to repeat."""
        self._write(_Line(entry=entry, done=True))

    def close(self) -> None:
        """Close the file; actions that are not undone stay so. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, line: _Line) -> None:
        os.write(self._file, msgspec.json.encode(line) + b"\n")
        os.fsync(self._file)


def not_undone(path: Path) -> list[PendingUndo]:
    """The actions of the journal at ``path`` that are not undone, oldest first; none where there is no file.

    A torn last line is passed over: its action was not done, because the line is complete before the action begins.
    """
    actions: dict[int, PendingUndo] = {}
    for line in _lines(path):
        if line.kind is not None:
            actions[line.entry] = PendingUndo(line.entry, line.kind, dict(line.facts or {}))
        if line.more is not None and line.entry in actions:
            actions[line.entry].facts.update(line.more)
        if line.done:
            actions.pop(line.entry, None)
    return list(actions.values())


def unreadable(path: Path) -> int:
    """The number of lines of the journal at ``path`` that are neither readable nor torn: no harness wrote them.

    Such a line may announce an action that is not undone.

    Raises:
        OSError: the file exists and cannot be read.
    """
    return sum(isinstance(line, _Garbage) for line in _decoded(path))


class _Garbage(NamedTuple):
    raw: bytes


def _lines(path: Path) -> list[_Line]:
    """Every line that can be read."""
    return [line for line in _decoded(path) if isinstance(line, _Line)]


def _decoded(path: Path) -> Iterator[_Line | _Garbage]:
    """Every line but torn ones (a crash, or a harness that continued after one).

    Raises:
        OSError: it cannot be read, or is a pipe, for which a reader would wait for ever.
    """
    if path.is_fifo():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    for raw in filter(None, content.split(b"\n")):
        try:
            yield msgspec.json.decode(raw, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if not _is_torn(raw):
                yield _Garbage(raw)


def _is_torn(raw: bytes) -> bool:
    """Recognise the beginning of a line that a harness writes."""
    begin = msgspec.json.encode(_Line(entry=0))[:-2]
    return raw.startswith(begin) if len(raw) > len(begin) else begin.startswith(raw)


def _last_entry(path: Path) -> int:
    return max((line.entry for line in _lines(path)), default=0)


def _end_torn_line(file: int, path: Path) -> None:
    """End a torn last line, so that the next line is not lost in it."""
    if path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        os.write(file, b"\n")

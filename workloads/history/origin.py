"""The look of a history from another tool: its values, indexes and options, kept beside the stored rows.

Rows hold values as numbers. A whole number from 0 to 2^62 is its own number; anything else (strings, negative numbers,
lists) gets a code from -2 downwards into :attr:`Origin.values`. -1 is left for payloads that could not be decoded.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec

ORIGIN_FILE: Final = "origin.json"
#: The lines about replicas' own logs of an exported run, as they came: what they say, checkers read.
REPLICA_LINES: Final = "replicas.jsonl"
#: The largest value that is its own number; kernels may add two of them without leaving 64 bits.
LARGEST: Final = 2**62
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


class Origin(msgspec.Struct, kw_only=True):
    """The foreign side of a history. ``indexes`` are the file's own, by position; None where they are the positions.

    ``irregular`` says what no real history has; "" in a regular one, and in one that an older version stored.
    ``left_out`` says what the file has and is not judged.
    """

    values: list[Any] = []
    indexes: list[int] | None = None
    options: dict[str, Any] = {}
    irregular: str = ""
    left_out: list[str] = []

    def value(self, number: int) -> Any:
        """The value as the file had it."""
        if -2 - number in range(len(self.values)):
            return self.values[-2 - number]
        return number

    def index(self, position: int) -> int:
        """The index that the file gives an event, or else its position."""
        return position if self.indexes is None or position >= len(self.indexes) else self.indexes[position]

    def save(self, directory: Path) -> None:
        """Write it beside the history."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / ORIGIN_FILE).write_bytes(msgspec.json.encode(self))

    @classmethod
    def load(cls, directory: Path) -> Origin:
        """The origin of a stored history; an empty one for histories of our own."""
        path = directory / ORIGIN_FILE
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else cls()


class ValueCodes:
    """Gives numbers to the values of a foreign history."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._codes: dict[str, int] = {}

    def code(self, value: Any) -> int:
        """The number of ``value`` in rows."""
        if type(value) is int and 0 <= value <= LARGEST:
            return value
        text = msgspec.json.encode(value).decode()
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = -2 - len(self.values)
            self.values.append(value)
        return code


def key_name(key: object) -> str:
    """A log partition's name: JSON object keys are texts, so a number and its text are the same key, as any other JSON.

    Raises:
        ValueError: the name is empty.
    """
    if not (name := key if isinstance(key, str) else msgspec.json.encode(key).decode()):
        raise ValueError("a key is empty; write the name of a log partition")
    return name


def shown_key(name: str) -> str | int:
    """The key as findings show it: a number where its name is one."""
    return int(name) if _WHOLE.fullmatch(name) else name

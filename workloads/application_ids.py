"""The place of an input's id in an output of an application, and the number that an input carries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from workloads.client import Fetched

#: The word in a template of payloads that the id takes the place of.
ID_WORD: Final = "{id}"
#: The numbers of inputs are below this.
NUMBERS: Final = 1_000
#: Spreads values, whose lowest digits only count the writes of one process.
_PRIME: Final = 999_983
#: The characters of an output that are quoted where it has no id.
QUOTED_MAX: Final = 120


def number_of(value: int) -> int:
    """The number that the input ``value`` carries, below :data:`NUMBERS`."""
    return value % _PRIME % NUMBERS


#: Reads the text of an id from an output; None where the output has none there.
FindsId = Callable[[Fetched], str | None]


def finder(where: str) -> FindsId:
    """Make the function that reads ids from outputs: ``key``, ``header:NAME``, ``json:/path``, or ``regex:EXPRESSION``.

    An expression is searched for in the payload. The first group of it is the id, or all that it matches where it has
    no group.

    Raises:
        ValueError: it is not one of these; the text says why.
    """
    if where == "key":
        return lambda output: output.key.decode(errors="replace")
    if where.startswith("header:"):
        return _HeaderIds(where.removeprefix("header:"))
    if where.startswith("json:"):
        return _JsonIds(where.removeprefix("json:"))
    if where.startswith("regex:"):
        return _PatternIds(where.removeprefix("regex:"))
    raise ValueError('write "key", "header:NAME", "json:/path/to/it" or "regex:EXPRESSION"')


class _HeaderIds:
    def __init__(self, name: str) -> None:
        if not name:
            raise ValueError('a header has a name: "header:id"')
        self._name = name

    def __call__(self, output: Fetched) -> str | None:
        content = dict(output.headers).get(self._name)
        return None if content is None else content.decode(errors="replace")


class _JsonIds:
    def __init__(self, path: str) -> None:
        if not path.startswith("/"):
            raise ValueError('a path begins with a slash: "json:/id", "json:/order/id", "json:/0"')
        self._steps = path[1:].split("/")

    def __call__(self, output: Fetched) -> str | None:
        try:
            content: Any = msgspec.json.decode(output.payload)
            for step in self._steps:
                content = content[int(step)] if isinstance(content, list) else content[step]
        except (msgspec.DecodeError, LookupError, TypeError, ValueError, RecursionError):
            return None
        return content if isinstance(content, str) else None


class _PatternIds:
    def __init__(self, text: str) -> None:
        try:
            self._pattern = re.compile(text, re.DOTALL)
        except re.error as error:
            raise ValueError(f"this is no regular expression: {error}") from error

    def __call__(self, output: Fetched) -> str | None:
        match = self._pattern.search(output.payload.decode(errors="replace"))
        return None if match is None else match[1 if self._pattern.groups else 0]


def quoted(output: Fetched) -> str:
    """An output as a sentence quotes it."""
    text = output.payload.decode(errors="replace")
    return text if len(text) <= QUOTED_MAX else text[:QUOTED_MAX] + " ..."

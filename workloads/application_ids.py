"""The place of an input's id in an output of an application, and the number that an input carries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from workloads.client import Fetched

#: The word in a template of payloads that the id takes the place of.
ID_WORD: Final = "{id}"
#: The numbers of inputs are below this.
NUMBERS: Final = 1_000
#: Spreads values, whose lowest digits only count the writes of one process.
_PRIME: Final = 999_983
#: Spreads the keys of neighbouring values.
_STRIDE: Final = 7_919
#: The characters of an output that are quoted where it has no id.
QUOTED_MAX: Final = 120


#: A value, or an array of values.
Values = TypeVar("Values", int, npt.NDArray[np.int64])


def number_of(value: Values) -> Values:
    """The number that the input ``value`` carries, below :data:`NUMBERS`."""
    return value % _PRIME % NUMBERS


def key_of(value: Values, keys: Values) -> Values:
    """The number of the key of the input ``value`` among the ``keys`` of its log partition."""
    return value % _PRIME * _STRIDE // NUMBERS % keys


def keys_of_each(keys: int, partitions: int) -> int:
    """The keys of each log partition of an input, of ``keys`` in all; no key is in two, as partitioners have it."""
    return max(1, keys // partitions)


#: Reads the text of an id from an output; None where the output has none there.
FindsId = Callable[[Fetched], str | None]


def finder(where: str) -> FindsId:
    """Make the function that reads ids, or results: ``key``, ``header:NAME``, ``json:/path``, or ``regex:EXPRESSION``.

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
        return str(content) if isinstance(content, str | int) and not isinstance(content, bool) else None


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

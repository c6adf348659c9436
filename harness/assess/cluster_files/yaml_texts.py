"""Reads YAML so that scalars come through as they are written, each with its line and whether it has quotes.

``"2"`` and ``2`` are the same to Strimzi and to compose; what YAML makes of a scalar without quotes that is neither a
plain whole number nor true or false (``yes``, ``010``, ``1e3``) differs from program to program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, Self

import yaml

_MERGE: Final = "tag:yaml.org,2002:merge"
#: Scalars without quotes that YAML, or some program's YAML, changes.
_CHANGED: Final = re.compile(
    r"y|n|yes|no|on|off|[-+]?0[0-9_xob][0-9a-f_]*|[-+]?[0-9]+_[0-9_]+|[-+]?[0-9]*\.[0-9]*(e[-+]?[0-9]+)?"
    r"|[-+]?[0-9]+e[-+]?[0-9]+|[-+]?\.(inf|nan)|[0-9]+(:[0-9]+)+",
    re.IGNORECASE,
)


class Scalar(str):
    """A scalar as it is written. ``line`` counts from 1; 0: not known. ``changed``: YAML makes something else of it."""

    __slots__ = ("changed", "line")
    line: int
    changed: bool

    @classmethod
    def of(cls, text: str, line: int = 0, *, changed: bool = False) -> Self:
        """The scalar with its place."""
        scalar = cls(text)
        scalar.line, scalar.changed = line, changed
        return scalar


def documents_in(text: str) -> list[object]:
    """The documents of a text of YAML: mappings, lists, and scalars as :class:`Scalar`.

    Raises:
        ValueError: it is not YAML, or a key stands twice.
    """
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())}") from error
    return [_built(node, {}) for node in nodes]


def _built(node: yaml.ClusterNode, built: dict[int, object]) -> object:
    """The content of a node; one that aliases name is the same each time, so that nothing grows by them."""
    if id(node) not in built:
        if isinstance(node, yaml.MappingNode):
            built[id(node)] = _mapping(node, built)
        elif isinstance(node, yaml.SequenceNode):
            built[id(node)] = [_built(item, built) for item in node.value]
        else:
            changed = node.style is None and bool(_CHANGED.fullmatch(node.value))
            built[id(node)] = Scalar.of(str(node.value), node.start_mark.line + 1, changed=changed)
    return built[id(node)]


def _mapping(node: yaml.MappingNode, built: dict[int, object]) -> dict[str, object]:
    """The entries of a mapping. Its own come before those that it merges, and of these the first."""
    own: dict[str, object] = {}
    merged: dict[str, object] = {}
    for key, value in node.value:
        content = _built(value, built)
        if key.tag == _MERGE:
            for table in content if isinstance(content, list) else [content]:
                merged = {**table, **merged} if isinstance(table, dict) else merged
        elif str(key.value) in own:
            raise ValueError(f"line {key.start_mark.line + 1}: the key {key.value} stands twice")
        else:
            own[str(key.value)] = content
    return {**merged, **own}


def from_json(content: object) -> object:
    """The same of what was JSON: its scalars as they were written there."""
    if isinstance(content, dict):
        return {str(name): from_json(value) for name, value in content.items()}
    if isinstance(content, list):
        return [from_json(value) for value in content]
    return Scalar.of(content if isinstance(content, str) else json.dumps(content))


def scalars(mapping: object) -> Iterator[tuple[str, Scalar]]:
    """The entries of a mapping whose values are scalars."""
    if isinstance(mapping, dict):
        yield from ((str(name), value) for name, value in mapping.items() if isinstance(value, Scalar))

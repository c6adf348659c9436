"""Canonical forms: the content of a node or a message as nested tuples and sets, in which brokers can be renamed.

A form is generic on purpose: a field that somebody adds to the core is part of it without a line here. Only what is a
broker's number has to be known by the field's name, because brokers are renamed and other numbers are not. Unordered
are dictionaries, and tuples of broker numbers: whatever the core decides by their order is the controller's choice
among several candidates, and is explored as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, TypeAlias

import msgspec

Tree: TypeAlias = Any


class Number(int):
    """A broker's number: the only leaf that a renaming changes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"n{int(self)}"


class Unordered(tuple[Any, ...]):
    """What has no order: always in the same one."""

    __slots__ = ()


def _unordered(items: Iterable[Any]) -> Unordered:
    return Unordered(sorted(items, key=repr))


#: Fields that hold a broker's number, or several.
_NUMBERS: Final = frozenset(
    {
        "broker", "elr", "isr", "last_known_leader", "leader", "_leader", "maximal_isr", "node", "replica_id",
        "replicas",
    }
)  # fmt: skip
#: Fields that are dictionaries with brokers' numbers as keys.
_KEYED: Final = frozenset({"brokers", "_earlier", "followers", "_fetchers", "_followers", "_heard_us", "_incarnations"})
#: Fields that are the same in every state of one search, or refer to what has its place elsewhere.
_LEFT_OUT: Final = frozenset(
    {
        "config", "_config", "_election", "_forwarding", "_handlers", "_producer_ids", "_registration",
        "_rule", "_timer", "_timers", "effects", "observing",
    }
)  # fmt: skip


class _Mutable:
    frozen = False


_MUTABLE: Final = _Mutable()


def tree_of(value: Any) -> Tree:
    """The canonical form of anything that the core is made of."""
    return _tree(value, "", set())


def _tree(value: Any, field: str, seen: set[int]) -> Tree:
    if isinstance(value, int):
        return Number(value) if field in _NUMBERS else value
    if value is None or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return _unordered((_key(key, field), _tree(one, "", seen)) for key, one in value.items())
    if isinstance(value, (set, frozenset, Sequence)):
        items = (_tree(one, field, seen) for one in value)
        return _unordered(items) if field in _NUMBERS or not isinstance(value, Sequence) else tuple(items)
    return _tree_of_object(value, seen)


def _tree_of_object(value: Any, seen: set[int]) -> Tree:
    if callable(value) and not hasattr(value, "__struct_fields__"):
        return None
    if id(value) in seen:  # It has its place elsewhere, the same in every state of this shape.
        return type(value).__name__
    if not getattr(value, "__struct_config__", _MUTABLE).frozen:
        seen.add(id(value))
    return (type(value).__name__, *(_tree(getattr(value, name), name, seen) for name in _fields(value)))


def _key(key: Any, field: str) -> Tree:
    return Number(key) if field in _KEYED else tuple(key) if isinstance(key, tuple) else key


def _fields(value: Any) -> list[str]:
    """The names of an object's fields, whatever they are kept in."""
    if isinstance(value, msgspec.Struct):
        return [name for name in value.__struct_fields__ if name not in _LEFT_OUT]
    slots = chain.from_iterable(getattr(kind, "__slots__", ()) for kind in type(value).__mro__)
    return sorted({*slots, *getattr(value, "__dict__", {})} - _LEFT_OUT)


def renamed(tree: Tree, names: Sequence[int]) -> Tree:
    """``tree`` with broker n called ``names[n]``; the controller, clients and "none" keep their numbers."""
    if isinstance(tree, Number):
        return Number(names[tree]) if 0 <= tree < len(names) else tree
    if isinstance(tree, Unordered):
        return _unordered(renamed(one, names) for one in tree)
    if isinstance(tree, tuple):
        return tuple(renamed(one, names) for one in tree)
    return tree


def digest_of(tree: Tree) -> int:
    """63 bits that stand for ``tree``: the same in every process, and never 0."""
    return int.from_bytes(blake2b(repr(tree).encode(), digest_size=8).digest(), "big") >> 1 or 1


class Renaming(dict[int, int]):
    """Digests under other names of the brokers, found out when they are first asked for."""

    def __init__(self, find: Callable[[int], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, digest: int) -> int:
        self[digest] = found = self._find(digest)
        return found

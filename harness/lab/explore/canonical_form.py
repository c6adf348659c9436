"""Canonical forms: the content of a node or a message as nested tuples and sets, in which brokers can be renamed.

A form follows from the types that fields are declared with, in structs and in the bodies of the core's classes. A
:data:`~harness.broker.core.types.NodeId` is a broker's number, and is renamed; other numbers are not. So a field
that the core gains is part of the form by itself, and fails loudly where its type says too little
(:class:`UnknownFieldError`):

    followers: dict[NodeId, Follower]     a set of pairs; its keys are renamed
    isr: tuple[NodeId, ...]               a set of numbers that are renamed
    config: Outside[BrokerConfig]         not in the form
    subject: Any                          an error

Unordered are dictionaries, and collections of broker numbers: what the core decides by their order is the controller's
choice among several candidates, and is explored as such.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from harness.broker.core.types import NodeId

Tree: TypeAlias = Any
#: Makes the form of a value of one type; the set has the mutable objects that are in the form already, by identity.
Former: TypeAlias = Callable[[Any, set[int]], Tree]

#: Types whose values are their own form.
_LEAVES: Final = (int, float, str, bytes, NoneType)
_UNORDERED: Final = (set, frozenset)
_COLLECTIONS: Final = (Mapping, Sequence, deque, *_UNORDERED)


class UnknownFieldError(TypeError):
    """A field of the core's state has no declared type, or one from which no canonical form follows."""


class Number(int):
    """A broker's number: the only leaf that a renaming changes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"n{int(self)}"


class Unordered(tuple[Any, ...]):
    """A collection without order: always in the same one."""

    __slots__ = ()


def _unordered(items: Iterable[Any]) -> Unordered:
    return Unordered(sorted(items, key=repr))


def tree_of(value: Any) -> Tree:
    """The canonical form of anything that the core is made of.

    Raises:
        UnknownFieldError: no form follows from the declaration of a field.
    """
    return _object(value, set())


def _leaf(value: Any, _seen: set[int]) -> Tree:
    return value


def _number(value: Any, _seen: set[int]) -> Tree:
    return Number(value)


def _object(value: Any, seen: set[int]) -> Tree:
    """The form of an object by its own class, which may be another than the declared one."""
    kind: Any = type(value)
    shape = _shape_of(kind)
    if shape.mutable:
        if id(value) in seen:  # It has its place elsewhere, the same in every state of this shape.
            return kind.__name__
        seen.add(id(value))
        _check_declared(kind, shape.declared, getattr(value, "__dict__", ()))
    return (kind.__name__, *[form(getattr(value, name), seen) for name, form in shape.fields])


def _check_declared(kind: Any, declared: Collection[str], fields: Iterable[str]) -> None:
    undeclared = sorted(set(fields).difference(declared))
    if undeclared:
        raise UnknownFieldError(f"{kind.__name__} has fields that it does not declare: {undeclared}")


class _Shape(msgspec.Struct, frozen=True):
    """The fields of a class that are in its form, and all that it declares."""

    fields: tuple[tuple[str, Former], ...]
    declared: frozenset[str]
    mutable: bool


@cache
def _shape_of(kind: Any) -> _Shape:
    declared = get_type_hints(kind, include_extras=True)
    is_struct = issubclass(kind, msgspec.Struct)
    if is_struct:
        declared = {name: declared[name] for name in kind.__struct_fields__}
    elif not declared:  # Without their fields all of its objects would be one.
        raise UnknownFieldError(f"{kind.__name__} shows no fields: it declares none")
    fields = tuple(
        (name, _former(hint, f"{kind.__name__}.{name}"))
        for name, hint in declared.items()
        if _mark_of(hint) != "outside"
    )
    return _Shape(fields, frozenset(declared), mutable=not (is_struct and kind.__struct_config__.frozen))


def _mark_of(hint: Any) -> Any:
    return hint.__metadata__[0] if get_origin(hint) is Annotated else None


def _former(hint: Any, field: str) -> Former:
    """The way from a value of a declared type to its form; ``field`` is named where there is no way."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is NodeId:
        return _number
    if origin is None:
        return _former_of_class(hint, field)
    if origin is Annotated:
        return _former_of_marked(hint, field)
    if origin in {Union, UnionType}:
        return _former_of_union([member for member in arguments if member is not NoneType], field)
    return _leaf if origin is Literal else _former_of_collection(origin, arguments, field)


def _former_of_class(kind: Any, field: str) -> Former:
    if isinstance(kind, TypeVar):
        return _object
    if isinstance(kind, type) and issubclass(kind, _LEAVES):
        return _leaf
    if hasattr(kind, "_fields"):  # A named tuple.
        items = [_former(hint, field) for hint in get_type_hints(kind, include_extras=True).values()]
        return lambda value, seen: tuple(form(item, seen) for form, item in zip(items, value, strict=True))
    if kind in {Any, object} or not isinstance(kind, type) or issubclass(kind, _COLLECTIONS):
        raise UnknownFieldError(f"{field} is declared as {kind}, which does not say what is in it")
    return _object


def _former_of_marked(hint: Any, field: str) -> Former:
    mark = _mark_of(hint)
    if mark == "opaque":
        return _leaf
    if mark == "any order":
        item_form = _former(get_args(hint.__origin__)[0], field)
        return lambda value, seen: _unordered(item_form(item, seen) for item in value)
    raise UnknownFieldError(f"{field} is declared as {hint}, and {mark!r} means nothing here")


def _former_of_union(members: list[Any], field: str) -> Former:
    forms = {_former(member, field) for member in members}
    if len(forms) > 1:
        raise UnknownFieldError(f"{field} is a union of {members}, whose forms differ")
    (form,) = forms
    return lambda value, seen: None if value is None else form(value, seen)


def _former_of_collection(origin: Any, arguments: tuple[Any, ...], field: str) -> Former:
    if not isinstance(origin, type) or origin in {type, Callable}:
        raise UnknownFieldError(f"{field} is a function or a class, which has no form; declare it Outside")
    if not issubclass(origin, _COLLECTIONS):
        return _object
    if origin is tuple and arguments[-1] is not ...:
        items = [_former(hint, field) for hint in arguments]
        return lambda value, seen: tuple(form(item, seen) for form, item in zip(items, value, strict=True))
    form = _former(arguments[0], field)
    if issubclass(origin, Mapping):
        content = _former(arguments[1], field)
        return lambda value, seen: _unordered((form(key, seen), content(item, seen)) for key, item in value.items())
    if form is _number or issubclass(origin, _UNORDERED):
        return lambda value, seen: _unordered(form(item, seen) for item in value)
    return lambda value, seen: tuple(form(item, seen) for item in value)


def renamed(tree: Tree, names: Sequence[int]) -> Tree:
    """``tree`` with broker n called ``names[n]``; the controller, clients and "none" keep their numbers."""
    if isinstance(tree, Number):
        return Number(names[tree]) if 0 <= tree < len(names) else tree
    if isinstance(tree, Unordered):
        return _unordered(renamed(part, names) for part in tree)
    if isinstance(tree, tuple):
        return tuple(renamed(part, names) for part in tree)
    return tree


def digest_of(tree: Tree) -> int:
    """63 bits by which ``tree`` is known: the same in every process, and never 0."""
    return int.from_bytes(blake2b(repr(tree).encode(), digest_size=8).digest(), "big") >> 1 or 1


class Renaming(dict[int, int]):
    """Digests under other names of the brokers, found out when they are first asked for."""

    def __init__(self, find: Callable[[int], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, digest: int) -> int:
        self[digest] = renamed_digest = self._find(digest)
        return renamed_digest

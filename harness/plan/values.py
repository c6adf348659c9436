"""Reads the tables of a plan; each key or value that is wrong gets one sentence, which names its place.

A table is a struct. Each field is a key with its type and its default, and the docstring below says what it is for.
``Annotated`` has the rest: ``msgspec.Meta`` the bounds of a number (:mod:`harness.plan.bounds`), :class:`ReadBy` how to
read a value that its type does not describe, :class:`Only` where the key counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from re import Pattern
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from harness.ground.errors import PlanError
from harness.plan.bounds import NUMBER_MAX, bounds_of
from workloads import in_toml, shown, unknown_name

Table = Mapping[str, object]
Record = TypeVar("Record", bound=msgspec.Struct)

#: The problem of an integer that TOML does not have: Python reads it, or refuses to, and cannot write it.
ENDLESS: Final = "an integer here has more than 64 bits, and TOML's have no more; write a smaller one"
#: The problem of tables and lists in each other, and the number of levels that none of ours comes near.
TOO_DEEP: Final = "tables or lists are nested too deeply; write them as the plans in plans/ do"
LEVELS_MAX: Final = 64

#: Words for what the annotations of plans allow, where one word or two suffice.
_WORDS: Final[Mapping[type[msgspec.inspect.Type], str]] = {
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.DateTimeType: "a time, such as 2027-01-31T12:00:00Z",
    msgspec.inspect.DateType: "a day, such as 2027-01-31",
    msgspec.inspect.DictType: "a table",
    msgspec.inspect.FloatType: "a number",
}


@dataclass(frozen=True, slots=True)
class PlanKey:
    """The place of a value in a plan: the file and the path of keys."""

    file: str
    path: str = ""

    def __truediv__(self, key: str) -> PlanKey:
        return PlanKey(self.file, f"{self.path}.{key}" if self.path else key)

    def __getitem__(self, number: int) -> PlanKey:
        return PlanKey(self.file, f"{self.path}[{number}]")

    def wrong(self, problem: object) -> PlanError:
        """The error to raise for what is written here."""
        where = f"{self.file}: {self.path}" if self.path else self.file
        return PlanError(f"{where}: {problem}")


class ReadBy(NamedTuple):
    """A key whose value ``by`` reads: it is given the value and its place, and raises what is wrong."""

    by: Callable[[Any, PlanKey], Any]


class Only(NamedTuple):
    """A key that counts only where ``where`` is true of what the table is for; else ``instead`` says what to do.

    ``{key}`` in it is the key's name.
    """

    where: Callable[[Any], bool]
    instead: str


def form(pattern: Pattern[str], problem: str) -> ReadBy:
    """A string that ``pattern`` matches as a whole; what refuses another is the string, and then ``problem``."""

    def by(value: object, plan_key: PlanKey) -> str:
        text: str = of_kind(value, str, plan_key)
        if not pattern.fullmatch(text):
            raise plan_key.wrong(f"{shown(text)} {problem}")
        return text

    return ReadBy(by)


@cache
def keys_of(record: type[msgspec.Struct]) -> Mapping[str, FieldInfo]:
    """The keys of a table, by name: its fields, but those that are marked ``in_plans=False``."""
    fields = msgspec.structs.fields(record)
    return {field.name: field for field in fields if not _is_elsewhere(field)}


def _is_elsewhere(field: FieldInfo) -> bool:
    return any(isinstance(mark, msgspec.Meta) and mark.extra == {"in_plans": False} for mark in marks_of(field))


def marks_of(field: FieldInfo) -> tuple[object, ...]:
    """The marks that ``Annotated`` gives a field beside its type."""
    return get_args(field.type)[1:] if get_origin(field.type) is Annotated else ()


def is_number(field: FieldInfo) -> bool:
    """True of a key that is a number, and so has bounds."""
    return (get_args(field.type)[0] if marks_of(field) else field.type) in (int, float)


def refuse_pointless(record: type[msgspec.Struct], table: Table, use: object, plan_key: PlanKey) -> None:
    """Refuse keys of a ``table`` that count only elsewhere (:class:`Only`); ``use`` is what it is for."""
    for key, field in keys_of(record).items():
        for mark in marks_of(field):
            if key in table and isinstance(mark, Only) and not mark.where(use):
                raise (plan_key / key).wrong(mark.instead.replace("{key}", key))


def known_keys(table: Table, keys: Iterable[str], plan_key: PlanKey) -> None:
    """Refuse a key that is not among ``keys``, naming the nearest that is, or all where none is near."""
    valid = dict.fromkeys(keys)
    for key in table:
        if key not in valid:
            raise (plan_key / key).wrong(unknown_name("key", key, valid))


def key_of(table: Table, key: str, older: str, plan_key: PlanKey) -> str:
    """The name under which a table has ``key``: its own, or the ``older`` one, if an older plan has that."""
    if key in table and older in table:
        raise (plan_key / older).wrong(f"is the older name of {key}; leave it out")
    return older if older in table else key


def table_of(value: object, plan_key: PlanKey) -> Table:
    """A ``value`` that is a table."""
    if not isinstance(value, Mapping):
        raise plan_key.wrong(f"takes a table ([{plan_key.path}]), not {shown(value)}")
    return value


def table_at(table: Table, key: str, plan_key: PlanKey) -> Table:
    """The table under ``key``, empty where the key is missing; errors as :func:`table_of`."""
    return table_of(table.get(key, {}), plan_key / key)


def choices_of(value: object, plan_key: PlanKey) -> list[object]:
    """A ``value`` that is a list of something to run: it has an entry, and none twice."""
    if not isinstance(value, list | tuple):
        raise plan_key.wrong(f"takes a list, not {shown(value)}; write [{shown(value)}] for one value")
    if not value:
        raise plan_key.wrong("this list is empty, so there is nothing to run; give it at least one entry")
    if len({in_toml(entry) for entry in value}) < len(value):
        raise plan_key.wrong(f"{shown(value)} names one entry twice; leave one out")
    return list(value)


def tables_of(value: object, plan_key: PlanKey) -> list[Table]:
    """A ``value`` that is a list of tables (``[[key]]``)."""
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise plan_key.wrong(f"takes a list of tables ([[{plan_key.path}]]), not {shown(value)}")
    return value


def tables_at(table: Table, key: str, plan_key: PlanKey) -> list[tuple[PlanKey, Table]]:
    """The tables listed under ``key``, each with its place; none where the key is missing."""
    here = plan_key / key
    return [(here[number], entry) for number, entry in enumerate(tables_of(table.get(key, []), here))]


def value_of(field: FieldInfo, value: object, plan_key: PlanKey) -> Any:
    """The ``value`` of a key, as its field describes it."""
    marks = marks_of(field)
    kind = get_args(field.type)[0] if marks else field.type
    if reader := next((mark for mark in marks if isinstance(mark, ReadBy)), None):
        return reader.by(value, plan_key)
    if kind in (Table, list[Table]):
        return (table_of if kind == Table else tables_of)(value, plan_key)
    if not is_number(field):
        return of_kind(value, field.type, plan_key)
    number = of_kind(value, kind, plan_key)
    if problem := bounds_of(field).problem(number):
        raise plan_key.wrong(problem)
    return number


def of_kind(value: object, kind: object, plan_key: PlanKey, words: str = "") -> Any:
    """``value`` as the annotation ``kind`` has it; ``words`` describe it better than its type."""
    try:
        return msgspec.convert(value, type=kind, strict=True)
    except msgspec.ValidationError:
        raise plan_key.wrong(f"takes {words or spoken(kind)}, not {shown(value)}") from None


def values_in(record: type[msgspec.Struct], table: Table, plan_key: PlanKey) -> dict[str, Any]:
    """The values that ``table`` gives to keys of ``record``."""
    keys = keys_of(record)
    known_keys(table, keys, plan_key)
    return {key: value_of(keys[key], value, plan_key / key) for key, value in table.items()}


def record_of(record: type[Record], table: Table, plan_key: PlanKey, lacking: str = "") -> Record:
    """A table as a ``record``, with the defaults of what it leaves out.

    ``lacking`` is the sentence for a key that is missing, with ``{key}`` in its place.
    """
    given = values_in(record, table, plan_key)
    for key, field in keys_of(record).items():
        if field.required and key not in given:
            lacking = lacking or f"{{key}} is missing; it takes {spoken(field.type)}"
            raise plan_key.wrong(lacking.replace("{key}", key))
    return record(**given)


def shared(record: type[msgspec.Struct], source: msgspec.Struct) -> dict[str, Any]:
    """The fields of ``record`` that ``source`` has under the same names."""
    return {name: getattr(source, name) for name in record.__struct_fields__ if name in source.__struct_fields__}


def default_of(field: FieldInfo) -> Any:
    """The default of a key; ``msgspec.NODEFAULT`` where it has none."""
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def other_than_default(record: msgspec.Struct) -> dict[str, Any]:
    """The keys of a table that differ from their defaults, as a plan has to write them."""
    keys = keys_of(type(record))
    return {key: value for key, field in keys.items() if (value := getattr(record, key)) != default_of(field)}


def flattened(table: Table, prefix: str = "") -> dict[str, object]:
    """Dotted keys as one level: TOML reads an unquoted ``min.insync.replicas`` as three tables."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        # An empty table is no part of a name. It stays, so that it is refused as a value.
        deeper = isinstance(value, Mapping) and value
        flat |= flattened(deeper, f"{prefix}{key}.") if deeper else {f"{prefix}{key}": value}
    return flat


def refuse_too_deep(table: Table, plan_key: PlanKey) -> None:
    """Refuse tables and lists in each other by the hundred, as dotted keys write them: what reads them calls itself."""
    level: list[Mapping[str, object] | list[object]] = [table]
    for _ in range(LEVELS_MAX):
        entries = [entry for each in level for entry in (each if isinstance(each, list) else each.values())]
        level = [entry for entry in entries if isinstance(entry, (Mapping, list))]
    if level:
        raise plan_key.wrong(TOO_DEEP)


def refuse_endless_numbers(value: object, plan_key: PlanKey) -> None:
    """Refuse an integer of more than 64 bits, wherever it is in ``value``: Python reads it, and cannot write it."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            refuse_endless_numbers(entry, plan_key / str(key))
    elif isinstance(value, list):
        for entry in value:
            refuse_endless_numbers(entry, plan_key)
    elif isinstance(value, int) and not -NUMBER_MAX <= value <= NUMBER_MAX:
        raise plan_key.wrong(ENDLESS)


def spoken(kind: object) -> str:
    """The values that the annotation ``kind`` allows, in words."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    match allowed := msgspec.inspect.type_info(kind):
        case msgspec.inspect.UnionType():
            return spoken(get_args(bare)[0])
        case msgspec.inspect.IntType(ge=least, le=most):
            bounds = f" of at least {least}" if most is None else f" from {least} to {most}"
            return "a whole number" + (bounds if least is not None else "")
        case msgspec.inspect.StrType(min_length=least):
            return "a string that is not empty" if least else "a string"
        case msgspec.inspect.VarTupleType(min_length=least) | msgspec.inspect.ListType(min_length=least):
            listed, *_ = get_args(bare)
            return f"a list{' of at least one entry' if least else ''}; each is {spoken(listed)}"
        case msgspec.inspect.LiteralType() | msgspec.inspect.EnumType():
            enum = allowed.cls if isinstance(allowed, msgspec.inspect.EnumType) else ()
            return f"one of {', '.join(map(shown, [choice.value for choice in enum] or get_args(bare)))}"
    return _WORDS[type(allowed)]

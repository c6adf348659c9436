"""Reads the values of a plan's tables; each that is wrong gets one sentence, which names its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import msgspec

from harness.ground.errors import PlanError
from harness.plan.bounds import BOUNDS, NUMBER_MAX
from workloads import in_toml, shown, unknown_name

Table = Mapping[str, object]
Record = TypeVar("Record", bound=msgspec.Struct)

#: The problem of an integer that TOML does not have: Python reads it, or refuses to, and cannot write it.
ENDLESS: Final = "an integer here has more than 64 bits, and TOML's have no more; write a smaller one"

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

    def wrong(self, problem: object) -> PlanError:
        """The error to raise for what is written here."""
        where = f"{self.file}: {self.path}" if self.path else self.file
        return PlanError(f"{where}: {problem}")


def known_keys(table: Table, keys: Iterable[str], plan_key: PlanKey) -> None:
    """Refuse a key that is not among ``keys``, naming the nearest that is, or all where none is near.

    Raises:
        PlanError: there is one.
    """
    valid = dict.fromkeys(keys)
    for key in table:
        if key not in valid:
            raise (plan_key / key).wrong(unknown_name("key", key, valid))


def key_of(table: Table, key: str, older: str, plan_key: PlanKey) -> str:
    """The name under which a table has ``key``: its own, or the ``older`` one, if an older plan has that.

    Raises:
        PlanError: the table has both.
    """
    if key in table and older in table:
        raise (plan_key / older).wrong(f"is the older name of {key}; leave it out")
    return older if older in table else key


def table_at(table: Table, key: str, plan_key: PlanKey) -> Table:
    """The table under ``key``, empty where the key is missing.

    Raises:
        PlanError: the value is not a table.
    """
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise (plan_key / key).wrong(f"takes a table ([{(plan_key / key).path}]), not {shown(value)}")
    return value


def list_at(table: Table, key: str, default: list[object], plan_key: PlanKey) -> list[object]:
    """The list under ``key``, else ``default``.

    Raises:
        PlanError: the value is not a list, or is empty, or names an entry twice.
    """
    value = table.get(key, default)
    if not isinstance(value, list):
        raise (plan_key / key).wrong(f"takes a list, not {shown(value)}; write [{shown(value)}] for one value")
    if not value:
        raise (plan_key / key).wrong("this list is empty, so there is nothing to run; give it at least one entry")
    if len({in_toml(entry) for entry in value}) < len(value):
        raise (plan_key / key).wrong(f"{shown(value)} names one entry twice; leave one out")
    return value


def tables_at(table: Table, key: str, plan_key: PlanKey) -> list[tuple[PlanKey, Table]]:
    """The tables listed under ``key`` (``[[key]]``), each with its key; none where the key is missing.

    Raises:
        PlanError: the value is not a list of tables.
    """
    listed, here = table.get(key, []), plan_key / key
    if not isinstance(listed, list) or not all(isinstance(entry, Mapping) for entry in listed):
        raise here.wrong(f"takes a list of tables ([[{here.path}]]), not {shown(listed)}")
    return [(PlanKey(plan_key.file, f"{here.path}[{number}]"), entry) for number, entry in enumerate(listed)]


def value_at(table: Table, key: str, kind: object, default: Any, plan_key: PlanKey) -> Any:
    """The value under ``key``, else ``default``, as the annotation ``kind`` and the bounds of its number allow.

    Raises:
        PlanError: it is of another kind, or out of bounds (:data:`harness.plan.bounds.BOUNDS`).
    """
    if key not in table:
        return default
    converted = of_kind(table[key], kind, plan_key / key)
    if isinstance(converted, int | float) and not isinstance(converted, bool):
        refuse_out_of_bounds(key, converted, plan_key / key)
    return converted


def refuse_out_of_bounds(key: str, number: float, plan_key: PlanKey) -> None:
    """Refuse a ``number`` out of the bounds of ``key``.

    Raises:
        PlanError: the number is too small or too large; the sentence has the bound and its reason.
    """
    if problem := BOUNDS[key].problem(number):
        raise plan_key.wrong(problem)


def of_kind(value: object, kind: object, plan_key: PlanKey) -> Any:
    """``value`` as the annotation ``kind`` has it, without the bounds of plans.

    Raises:
        PlanError: it is of another kind.
    """
    try:
        return msgspec.convert(value, type=kind, strict=True)
    except msgspec.ValidationError:
        raise plan_key.wrong(f"takes {spoken(kind)}, not {shown(value)}") from None


def record_at(base: Record, table: Table, plan_key: PlanKey, *, without: frozenset[str] = frozenset()) -> Record:
    """``base`` with the fields that ``table`` names replaced; those of ``without`` are unknown keys.

    Raises:
        PlanError: a key is unknown, or its value does not fit the field.
    """
    kinds = {field.name: field.type for field in msgspec.structs.fields(base) if field.name not in without}
    known_keys(table, kinds, plan_key)
    return msgspec.structs.replace(base, **{key: value_at(table, key, kinds[key], None, plan_key) for key in table})


def entry_of(record: type[Record], table: Table, plan_key: PlanKey) -> Record:
    """An entry of a list of tables (``[[key]]``) as a ``record``, with the defaults of what it leaves out.

    Raises:
        PlanError: a key is unknown or missing, or its value does not fit the field.
    """
    known_keys(table, record.__struct_fields__, plan_key)
    for field in msgspec.structs.fields(record):
        if field.name in table:
            of_kind(table[field.name], field.type, plan_key / field.name)
        elif field.required:
            raise plan_key.wrong(f"{field.name} is missing; it takes {spoken(field.type)}")
    return msgspec.convert(table, record)


def flattened(table: Table, prefix: str = "") -> dict[str, object]:
    """Dotted keys as one level: TOML reads an unquoted ``min.insync.replicas`` as three tables."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        # An empty table is no part of a name. It stays, so that it is refused as a value.
        deeper = isinstance(value, Mapping) and value
        flat |= flattened(deeper, f"{prefix}{key}.") if deeper else {f"{prefix}{key}": value}
    return flat


def refuse_endless_numbers(value: object, plan_key: PlanKey) -> None:
    """Refuse an integer of more than 64 bits, wherever it is in ``value``: Python reads it, and cannot write it.

    Raises:
        PlanError: there is one.
    """
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
    match allowed := msgspec.inspect.type_info(kind):
        case msgspec.inspect.UnionType():
            return spoken(get_args(kind)[0])
        case msgspec.inspect.IntType(ge=least, le=most):
            bounds = f" of at least {least}" if most is None else f" from {least} to {most}"
            return "a whole number" + (bounds if least is not None else "")
        case msgspec.inspect.StrType(min_length=least):
            return "a string that is not empty" if least else "a string"
        case msgspec.inspect.VarTupleType(min_length=least) | msgspec.inspect.ListType(min_length=least):
            listed, *_ = get_args(get_args(kind)[0] if get_origin(kind) is Annotated else kind)
            return f"a list{' of at least one entry' if least else ''}; each is {spoken(listed)}"
        case msgspec.inspect.LiteralType() | msgspec.inspect.EnumType():
            enum = allowed.cls if isinstance(allowed, msgspec.inspect.EnumType) else ()
            return f"one of {', '.join(map(shown, [choice.value for choice in enum] or get_args(kind)))}"
    return _WORDS[type(allowed)]

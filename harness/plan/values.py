"""Values of a plan's tables: each read with one clear sentence, and its place, when it is wrong."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from harness.errors import PlanError
from nemesis.schedule import FAULTS_MAX
from workloads import unknown_name

Table = Mapping[str, Any]
Record = TypeVar("Record", bound=msgspec.Struct)

#: Numbers that may be nought; every other one is at least 1 (or above 0 where it is not whole).
MAY_BE_NOUGHT: Final = frozenset(
    {
        "node",
        "consumers",
        "count",
        "fault_ms_min",
        "healed_ms_min",
        "payload_bytes",
        "poll_wait_ms",
        "seed",
        "replace_silent_ms",
        *("begin_ms", "end_ms", "at_ms", "broker", "partition", "pick", "group", "producer"),
    }
)
#: As alike as this, from 0 to 1, a wrong key and the nearest right one must be for that one to be meant.
NEAR: Final = 0.5
#: A count or a number of milliseconds beyond this is a slip of the keyboard, not a plan.
LARGEST: Final = 10**9
#: A seed fits in 64 bits wherever it is stored.
SEED_MAX: Final = 2**63 - 1
#: Where it is another number. What one machine can start or hold: the reference broker's own limit for partitions, a
#: thread a client, four processes a cluster; the faults of one run; a record that brokers take by their defaults.
LARGEST_OF: Final[Mapping[str, int]] = {
    "count": FAULTS_MAX,
    "partitions": 10_000,
    "producers": 1_000,
    "consumers": 1_000,
    "parallel": 256,
    "payload_bytes": 1_000_000,
    "writes_per_second": 10**6,
    "seed": SEED_MAX,
}
#: Characters of a wrong value that a message quotes.
QUOTED_MAX: Final = 60


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


def shown(value: object) -> str:
    """``value`` about as TOML writes it, on one line and no longer than a message should be."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, str):
        text = msgspec.json.encode(value).decode()
    elif isinstance(value, list):
        text = f"[{', '.join(map(shown, value))}]"
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}..."


def known_keys(table: Table, keys: Iterable[str], place: PlanKey) -> None:
    """Refuse a key that is not among ``keys``, naming the nearest that is, or all where none is near.

    Raises:
        PlanError: there is one.
    """
    known = dict.fromkeys(keys)
    for key in table:
        if key not in known:
            raise (place / key).wrong(unknown_key("key", key, known))


def unknown_key(kind: str, key: str, known: Mapping[str, object]) -> str:
    """A sentence that names the nearest of ``known``; all of them where even that one would be a riddle."""
    if difflib.get_close_matches(key.lower(), known, n=1, cutoff=NEAR):
        return unknown_name(kind, key, known)
    return f'unknown {kind} "{key}"; there are {", ".join(known)}'


def table_at(table: Table, key: str, place: PlanKey) -> Table:
    """The table under ``key``, empty if there is none.

    Raises:
        PlanError: something else is there.
    """
    value = table.get(key, {})
    if not isinstance(value, Mapping):
        raise (place / key).wrong(f"this is a table ([{(place / key).path}]), not {shown(value)}")
    return value


def list_at(table: Table, key: str, default: list[Any], place: PlanKey) -> list[Any]:
    """The list under ``key``, else ``default``.

    Raises:
        PlanError: something else is there; or the list is empty, or names an entry twice.
    """
    value = table.get(key, default)
    if not isinstance(value, list):
        raise (place / key).wrong(f"takes a list, not {shown(value)}; write [{shown(value)}] for one")
    if not value:
        raise (place / key).wrong("this list is empty, so there is nothing to run; give it at least one entry")
    if any(value.index(entry) != number for number, entry in enumerate(value)):
        raise (place / key).wrong(f"{shown(value)} names one entry twice; leave one out")
    return value


def tables_at(table: Table, key: str, place: PlanKey) -> list[tuple[PlanKey, Table]]:
    """The tables listed under ``key`` (``[[key]]``), each with its place; none where there is no such list.

    Raises:
        PlanError: something else is there.
    """
    listed, here = table.get(key, []), place / key
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
        raise here.wrong(f"takes a list of tables ([[{here.path}]]), not {shown(listed)}")
    return [(PlanKey(place.file, f"{here.path}[{number}]"), one) for number, one in enumerate(listed)]


def value_at(table: Table, key: str, kind: object, default: Any, place: PlanKey) -> Any:
    """The value under ``key``, else ``default``, as the annotation ``kind`` and the bounds of its number allow.

    Raises:
        PlanError: it is of another kind, or out of bounds (``MAY_BE_NOUGHT``, ``LARGEST_OF``).
    """
    if key not in table:
        return default
    value = table[key]
    try:
        converted = msgspec.convert(value, type=kind, strict=True)
    except msgspec.ValidationError:
        raise (place / key).wrong(f"takes {_spoken(kind)}, not {shown(value)}") from None
    _sensible_number(key, converted, place)
    return converted


def record_at(base: Record, table: Table, place: PlanKey, *, without: frozenset[str] = frozenset()) -> Record:
    """``base`` with the fields that ``table`` names replaced; those of ``without`` are no keys.

    Raises:
        PlanError: a key is unknown, or its value is none for that field.
    """
    kinds = {field.name: field.type for field in msgspec.structs.fields(base) if field.name not in without}
    known_keys(table, kinds, place)
    return msgspec.structs.replace(base, **{key: value_at(table, key, kinds[key], None, place) for key in table})


def flattened(table: Table, prefix: str = "") -> dict[str, Any]:
    """Dotted keys as one level: TOML reads an unquoted ``min.insync.replicas`` as three tables."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _sensible_number(key: str, value: object, place: PlanKey) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    most = LARGEST_OF.get(key, LARGEST)
    if math.isnan(value):
        raise (place / key).wrong("nan is no number")
    if value > most:
        raise (place / key).wrong(f"{value} is too large; the most is {most}")
    if value < 0 or (value == 0 and key not in MAY_BE_NOUGHT):
        least = "0" if key in MAY_BE_NOUGHT else "1" if isinstance(value, int) else "above 0"
        raise (place / key).wrong(f"{value} is too small; the least is {least}")


def _spoken(kind: object) -> str:
    plain = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}
    if isinstance(kind, type) and kind in plain:
        return plain[kind]
    choices = getattr(kind, "__args__", ())
    return "one of " + ", ".join(str(choice) for choice in choices) if choices else str(kind)

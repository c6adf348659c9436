"""Settings as a file has them: their names with all that stands before them, texts as written, and their places."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

#: More settings than any client has; what says more is not a configuration.
SETTINGS_MAX: Final = 20_000
#: Tables stand inside each other no deeper.
DEPTH_MAX: Final = 40
#: Settings that hold a table of settings, which some write as the text of one.
_TABLES: Final = ("default.topic.config", "default_topic_conf", "topic.config")


class Written(NamedTuple):
    """A setting as it is written. ``value`` None: null, where the file's form has such a thing.

    ``why``: what makes its value uncertain whatever it is, such as a profile that may not be active.
    """

    name: str
    value: str | None
    where: str
    why: str = ""


class Program(NamedTuple):
    """The settings of one program: those of a file, or of a service of a composed one, by its ``label``.

    ``whole``: these are all settings with which a client works, so that no default is missing. ``version`` is the
    release of its library, where the text says it; ``unsure`` are the releases that it says where none of them is it.
    ``elsewhere`` is what takes more settings from another text, such as env_file; empty where nothing does.
    """

    label: str
    settings: Sequence[Written]
    whole: bool = False
    version: str = ""
    unsure: str = ""
    elsewhere: str = ""


class _Pairs(list[tuple[str, object]]):
    """The pairs of a JSON object, those with the same name included."""


def from_json(text: str, file: str) -> list[Written]:
    """The settings of a JSON object, those inside others with the names of these before their own.

    Raises:
        ValueError: it is no JSON, or not a table.
    """
    content = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    # Of two with the same name, the later one.
    lines = {match[1]: text.count("\n", 0, match.start()) + 1 for match in re.finditer(r'"([^"\\]+)"\s*:', text)}
    return _table(content, lambda name: f"{file}, line {lines[name]}" if name in lines else file)


def from_toml(text: str, file: str) -> list[Written]:
    """The settings of a TOML file, likewise. Raises ValueError where it is not one."""
    return _table(tomllib.loads(text, parse_float=str), lambda _: file)


def limited(settings: Iterable[Written]) -> list[Written]:
    """The settings, if they are not more than a configuration has. Raises ValueError otherwise."""
    kept: list[Written] = []
    for each in settings:
        if len(kept) >= SETTINGS_MAX:
            raise ValueError(f"it has more than {SETTINGS_MAX:,} settings")
        kept.append(each)
    return kept


def unfolded(settings: Iterable[Written], read: Callable[[str, str], list[Written]]) -> Iterator[Written]:
    """The settings, with those of a table that is written as a text, such as the repr of a dict, in place of it."""
    for each in settings:
        value = (each.value or "").strip()
        if not (value.startswith("{") and each.name.endswith(_TABLES)):
            yield each
            continue
        try:
            inner = read(value, each.where)
        except ValueError:
            yield each  # what may decide in it is found there
        else:
            yield from (own._replace(name=f"{each.name}.{own.name}", where=each.where) for own in inner)


def _table(content: object, where: Callable[[str], str]) -> list[Written]:
    if not isinstance(content, Mapping | _Pairs):
        raise ValueError("it is not a table of settings")
    return limited(_flat(content, "", "", where, 0))


def _flat(content: object, name: str, key: str, where: Callable[[str], str], depth: int) -> Iterator[Written]:
    if depth > DEPTH_MAX:
        raise ValueError("its tables are too deep inside each other")
    if isinstance(content, Mapping | _Pairs):
        pairs = list(content) if isinstance(content, _Pairs) else list(content.items())
        names = [own for own, _ in pairs]
        for own, value in pairs:
            twice = "it is there twice" if names.count(own) > 1 else ""
            for each in _flat(value, f"{name}.{own}" if name else own, own, where, depth + 1):
                yield each._replace(why=each.why or twice)
    elif isinstance(content, list) and any(isinstance(item, Mapping | list) for item in content):
        for number, item in enumerate(content):
            pair = dict(item) if isinstance(item, _Pairs) else item
            if isinstance(pair, Mapping) and (own := _of_pair(pair)):
                yield from _flat(own[1], f"{name}.{own[0]}", key, where, depth + 1)
            else:
                yield from _flat(item, f"{name}[{number}]", key, where, depth + 1)
    elif isinstance(content, list):
        yield Written(name, ",".join(_spelled(item) or "null" for item in content), where(key))
    else:
        yield Written(name, _spelled(content), where(key))


def _of_pair(pair: Mapping[str, object]) -> tuple[str, object] | None:
    """The name and the value of a setting that is written as a table of these two; None for another table."""
    name = pair.get("name", pair.get("key"))
    return (
        (name, pair["value"])
        if isinstance(name, str) and pair.keys() <= {"name", "key", "value"} and "value" in pair
        else None
    )


def _spelled(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)

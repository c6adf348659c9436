"""Reads producers and consumers: properties files of Java and of librdkafka, and settings on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from harness.assess.client_settings import ALIASES
from harness.assess.configuration import OF_CLIENTS, Client
from harness.assess.properties_files import properties_in, read_text
from harness.assess.setting_names import KIND_OF, is_known, only_of_librdkafka, stranger, with_dots
from harness.errors import PlanError
from harness.known_defects import Library
from workloads import shown, unknown_name

__all__ = ["assumed_client", "clients_named", "properties_in", "read_text"]

_COMMAND_LINE: Final = "of the command line"
_NUMBERS: Final = frozenset(
    {"retries", "max.in.flight.requests.per.connection", "request.timeout.ms", "delivery.timeout.ms", "linger.ms"}
)
_CHOICES: Final[Mapping[str, frozenset[str]]] = {
    "acks": frozenset({"all", "-1", "0", "1"}),
    "enable.idempotence": frozenset({"true", "false"}),
    "enable.auto.commit": frozenset({"true", "false"}),
    "isolation.level": frozenset({"read_committed", "read_uncommitted"}),
}


def clients_named(words: Sequence[str], option: str, library: str = "") -> list[Client]:
    """The clients that an ``option`` names: each file is one, and all ``NAME=VALUE`` together are one.

    ``library`` is the user's own word, such as "librdkafka:2.16.0"; else the names of settings tell it. A file may have
    settings of serializers and the like: what no client of its library is known to have, so that it has no effect, is
    named in the client's ``strange``.

    Raises:
        PlanError: a file cannot be read, a setting has a value that no client takes, or one that is written on the
            command line does not exist.
    """
    chosen, version = _library(library)
    given: dict[str, dict[str, str]] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if separator and not Path(word).exists():
            given.setdefault(_COMMAND_LINE, {})[_dotted(name.strip(), option, chosen)] = value.strip()
        else:
            given[word] = _values(Path(word), option)
    return [_client(name, values, option, (chosen, version)) for name, values in given.items()]


def _client(name: str, values: Mapping[str, str], option: str, named: tuple[Library | None, str]) -> Client:
    kind = KIND_OF[option]
    chosen, version = named
    telling = any(only_of_librdkafka(with_dots(each), kind) for each in values)
    library: Library = chosen or ("librdkafka" if telling else "java")
    # What is written on the command line was held against the names that are possible there.
    own = library if chosen or name != _COMMAND_LINE else None
    strange = {each for each in values if not is_known(with_dots(each), kind, own)}
    return Client(
        name=name,
        library=library,
        version=version,
        settings=_settings({each: value for each, value in values.items() if each not in strange}, f"{option} {name}"),
        strange=tuple(sorted(strange)),
    )


def assumed_client(library: str = "") -> Client:
    """The client that is assumed where no one is named: the defaults of its library."""
    chosen, version = _library(library)
    return Client(name="defaults", library=chosen or "java", version=version, assumed=True)


def _library(word: str) -> tuple[Library | None, str]:
    name, _, version = word.partition(":")
    if not name:
        return None, ""
    libraries: tuple[Library, ...] = get_args(Library)
    for library in libraries:
        if name == library or (library, name) == ("librdkafka", "confluent-kafka"):
            if version and not re.fullmatch(r"\d+(\.\d+){1,3}", version):
                raise PlanError(f"--client {word}: {shown(version)} is not a version; write, for example, {name}:3.9.1")
            return library, version
    raise PlanError(f"--client {word}: {unknown_name('client library', name, dict.fromkeys(libraries))}")


def _values(path: Path, option: str) -> dict[str, str]:
    what = f'a properties file of a client, or settings such as "{option} acks=all"'
    text = read_text(path, what)
    if path.suffix != ".json":
        values = properties_in(text)
    else:
        try:
            content = json.loads(text)
        except ValueError as error:
            raise PlanError(f"{path} is not JSON ({error}); name {what}") from error
        if not isinstance(content, dict):
            raise PlanError(f"{path} is not a table of settings; name {what}")
        values = {str(name): _spelled(value) for name, value in content.items()}
    if not any("." in name or name in OF_CLIENTS or "_" in name for name in values):
        raise PlanError(f"{path} has no setting of a client; name {what}")
    return values


def _spelled(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool | dict | list) else str(value)


def _dotted(given: str, option: str, library: Library | None) -> str:
    """The name of a setting that was written on the command line; it must be one."""
    name = with_dots(given)
    if not is_known(name, KIND_OF[option], library):
        raise PlanError(f"{option} {given}=...: {stranger(name, KIND_OF[option], library)}")
    return name


def _settings(values: Mapping[str, str], where: str) -> dict[str, str]:
    """The decisive settings under Kafka's names."""
    kept: dict[str, str] = {}
    for given, value in values.items():
        dotted = with_dots(given)
        name = ALIASES.get(dotted, dotted)
        if name not in OF_CLIENTS:
            continue
        lowered = value.lower()
        if name in _CHOICES and lowered not in _CHOICES[name]:
            raise PlanError(f"{where}: {name}={shown(value)} is not possible; choose one of {_listed(name)}")
        if name in _NUMBERS and not value.isdigit():
            raise PlanError(f"{where}: {name} takes a whole number, not {shown(value)}")
        kept[name] = lowered if name in _CHOICES else value
    return kept


def _listed(name: str) -> str:
    return ", ".join(sorted(_CHOICES[name]))

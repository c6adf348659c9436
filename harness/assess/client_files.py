"""Reads producers and consumers: files of every form that clients have, and settings on the command line.

The content tells the form of a file: properties, a client's log, JSON, TOML, YAML, environment variables, INI sections.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.assess import client_logs, plain_files, yaml_files
from harness.assess.client_libraries import library_of
from harness.assess.client_settings import ALIASES, unknown_defaults
from harness.assess.client_values import NotAValueError, value_of
from harness.assess.configuration import OF_CLIENTS, Client
from harness.assess.near_names import DECISIVE_OF
from harness.assess.other_texts import what_it_is
from harness.assess.properties_files import FileText, decoded, properties_in, read_text
from harness.assess.read_clients import Asked, clients_of
from harness.assess.setting_names import KIND_OF, Kind, is_known, only_of_librdkafka, stranger, with_dots
from harness.assess.written_settings import Program, Written, from_json, from_toml, unfolded
from harness.ground.errors import PlanError
from harness.ground.known_defects import Library
from workloads import shown

__all__ = ["assumed_client", "clients_named", "properties_in", "read_text"]

_COMMAND_LINE: Final = "of the command line"
_YAML: Final = re.compile(r"^(?:---|[\w.-]+:[ \t]*(?:#.*)?\r?\n(?:[ \t]*(?:#.*)?\r?\n)*[ \t]+[\w\"'\[-])", re.MULTILINE)
#: Names that only brokers have: what has them is not a client's.
_OF_BROKERS: Final = frozenset({"broker.id", "node.id", "process.roles", "zookeeper.connect", "advertised.listeners"})


def clients_named(words: Sequence[str], option: str, library: str = "") -> list[Client]:
    """The clients that an ``option`` names: those of each file, and one of all ``NAME=VALUE`` together.

    ``library`` is the user's own word, such as "librdkafka:2.16.0"; else the names of settings tell it. A file may have
    settings of serializers and the like: what no client of its library is known to have, so that it has no effect, is
    named in the client's ``strange``. What may decide and is not understood is in its ``not_understood``.

    Raises:
        PlanError: a file cannot be read or is of no kind that is known, or a setting on the command line does not
            exist, or has a value that no client takes.
    """
    chosen, version = library_of(library)
    asked = Asked(KIND_OF[option], chosen, version)
    clients: list[Client] = []
    given: dict[str, str] = {}
    for word in words:
        name, separator, value = word.partition("=")
        if separator and not Path(word).exists():
            given[_dotted(name.strip(), option, chosen)] = value.strip()
            if len(given) == 1:
                clients.append(Client(name=_COMMAND_LINE, library=chosen or "java"))
        else:
            clients += _of_file(Path(word), option, asked)
    return [_of_command_line(given, option, asked) if each.name == _COMMAND_LINE else each for each in clients]


def assumed_client(library: str = "") -> Client:
    """The client that is assumed where no one is named: the defaults of its library."""
    chosen, version = library_of(library)
    client = Client(name="defaults", library=chosen or "java", version=version, assumed=True)
    unknown = tuple(unknown_defaults(client, DECISIVE_OF["producer"]))
    return Client(name="defaults", library=client.library, version=version, assumed=True, not_understood=unknown)


def _of_command_line(given: dict[str, str], option: str, asked: Asked) -> Client:
    telling = any(only_of_librdkafka(name, asked.kind) for name in given)
    library: Library = asked.library or ("librdkafka" if telling else "java")
    settings: dict[str, str] = {}
    for dotted, text in given.items():
        name = ALIASES.get(dotted, dotted)
        if name not in OF_CLIENTS:
            continue
        try:
            value = value_of(name, text, library)
        except NotAValueError as error:
            raise PlanError(f"{option} {_COMMAND_LINE}: {name}={shown(text)} is not possible: {error}") from error
        if value is not None:
            settings[name] = value
    client = Client(name=_COMMAND_LINE, library=library, version=asked.version, settings=settings)
    unknown = tuple(unknown_defaults(client, DECISIVE_OF[asked.kind]))
    return Client(name=_COMMAND_LINE, library=library, version=asked.version, settings=settings, not_understood=unknown)


def _of_file(path: Path, option: str, asked: Asked) -> list[Client]:
    what = f'a properties file of a client, or settings such as "{option} acks=all"'
    file = decoded(path, what)
    if other := what_it_is(file.text):
        raise PlanError(f"{path} is {other[0]}, not a configuration of a client; give {other[1]}")
    try:
        groups = _groups(file, path, asked.kind)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{path} cannot be understood ({' '.join(str(error).split())}); name {what}") from error
    named = [group._replace(settings=plain_files.variables(group.settings)) for group in groups]
    clients = [
        client
        for group in named
        if not _OF_BROKERS & {each.name.removeprefix("kafka.") for each in group.settings}
        for client in clients_of(group, str(path), asked)
    ]
    if not clients:
        brokers = any(_OF_BROKERS & {each.name for each in group.settings} for group in named)
        whose = "is the configuration of a broker, which is given as FILE" if brokers else "has no setting of a client"
        raise PlanError(f"{path} {whose}; name {what}")
    return clients


def _groups(file: FileText, path: Path, kind: Kind) -> list[Program]:
    text, name = file.text, str(path)
    if client_logs.is_log(text):
        return client_logs.groups_in(text, name, kind)
    if not text.lstrip().startswith("{") and (path.suffix in {".yml", ".yaml"} or _YAML.search(text)):
        groups = yaml_files.groups_in(text, name)
    else:
        groups = [Program("", _settings(file, path))]
    return [group._replace(settings=list(unfolded(group.settings, yaml_files.table_in))) for group in groups]


def _settings(file: FileText, path: Path) -> list[Written]:
    text, name = file.text, str(path)
    if text.lstrip().startswith("{") or path.suffix == ".json":
        return _json(text, name)
    if path.suffix == ".toml":
        return from_toml(text, name)
    if plain_files.is_environment(text):
        return plain_files.environment_in(text, name)
    if plain_files.has_sections(text):
        return plain_files.sections_in(text, name)
    return plain_files.properties(text, name, file.encoding)


def _json(text: str, name: str) -> list[Written]:
    """A table of JSON, or one as Python and JavaScript write it."""
    try:
        return from_json(text, name)
    except ValueError as error:
        if not text.lstrip().startswith("{"):
            raise
        try:
            return yaml_files.table_in(text, name)
        except ValueError:
            raise ValueError(f"it is not JSON: {error}") from error


def _dotted(given: str, option: str, library: Library | None) -> str:
    """The name of a setting that was written on the command line; it must be one."""
    name = with_dots(given)
    if not is_known(name, KIND_OF[option], library):
        raise PlanError(f"{option} {given}=...: {stranger(name, KIND_OF[option], library)}")
    return name

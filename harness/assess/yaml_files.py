"""Reads settings from YAML: every value as it is written, whatever type YAML would take it for."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml

from harness.assess.properties_files import entries_in, trimmed
from harness.assess.written_settings import DEPTH_MAX, Program, Written, limited

_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_STANDARD: Final = "tag:yaml.org,2002:"
#: To the YAML of Java and Python a number that begins so has eight digits.
_OCTAL: Final = re.compile(r"[-+]?0[0-9_]+")
#: Lists of variables, as compose files and Kubernetes have them.
_VARIABLES: Final = frozenset({"environment", "env"})
#: The variables of a service of a compose file, and the words that start it, which may have settings, too.
_OF_SERVICE: Final = re.compile(r"services\.(.+?)\.(?:environment\.(.+)|(command|entrypoint)(?:\[\d+\])*)", re.DOTALL)
#: Names whose values take more settings from other texts: in compose files, and in objects of Kubernetes.
_MORE: Final = re.compile(r"services\.(.+?)\.(env_file|extends|volumes|configs)\b")
_MORE_OF_PODS: Final = re.compile(r"\.containers\[\d+\]\.(envFrom|volumeMounts)\b")
#: A volume has such where one of these is its name or its place.
_OF_SETTINGS: Final = re.compile(r"\.(?:properties|ya?ml|conf|json|toml|env)\b|\bconf(?:ig)?s?\b", re.IGNORECASE)
_NO_SETTINGS: Final = re.compile(r"log4j|logback|logging|jaas|secret|cert", re.IGNORECASE)
#: The names in a table that is one setting.
_PAIRS: Final = ({"name", "value"}, {"key", "value"})
_PROFILES: Final = ("spring.config.activate.on-profile", "spring.profiles")
#: Names in the rest of a Kubernetes object that may decide.
_DECIDING: Final = re.compile(
    r"acks|idempoten|retries|flight|linger|transaction|offset|isolation|guarantee", re.IGNORECASE
)
#: The ends of names in a Kubernetes object whose values are whole files.
_FILE: Final = re.compile(r"\.(properties|conf|env|ini|config|ya?ml)$")


class _Position(NamedTuple):
    """The position of a node: the name of its setting, and the file."""

    name: str
    file: str
    depth: int = 0

    def inside(self, key: str) -> _Position:
        return _Position(f"{self.name}.{key}" if self.name else key, self.file, self.depth + 1)

    def item(self, number: int) -> _Position:
        return _Position(f"{self.name}[{number}]", self.file, self.depth + 1)

    def line_of(self, node: yaml.Node) -> str:
        return f"{self.file}, line {node.start_mark.line + 1}"


def groups_in(text: str, file: str) -> list[Program]:
    """The settings of every document; those of a compose file or of Kubernetes by service or object.

    Documents that belong to a profile of Spring are uncertain: they count where the profile is active.

    Raises:
        ValueError: it is no YAML, or no table.
    """
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"it is no YAML: {' '.join(str(error).split())}") from error
    if not any(isinstance(node, yaml.MappingNode) for node in nodes):
        raise ValueError("it is not a table of settings")
    common: list[Written] = []
    groups: list[Program] = []
    for resource in (each for node in nodes for each in _resources(node)):
        settings = limited(_flat(resource, _Position("", file)))
        names = {each.name for each in settings}
        if any(name.startswith("services.") for name in names):
            groups += _by_service(settings)
        elif {"kind", "apiVersion"} <= names:
            groups.append(_of_kubernetes(settings, file))
        else:
            common += _of_profile(settings)
    return [*groups, Program("", common)] if common else groups


def _resources(node: yaml.Node) -> Iterator[yaml.Node]:
    """The objects of a list of Kubernetes (``kubectl get -o yaml``) one by one; another document as it is."""
    pairs = {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    kind, items = pairs.get("kind"), pairs.get("items")
    if isinstance(kind, yaml.ScalarNode) and kind.value.endswith("List") and isinstance(items, yaml.SequenceNode):
        yield from items.value
    else:
        yield node


def table_in(text: str, where: str) -> list[Written]:
    """The settings of a table in one line, which may be JSON, or the repr of Python or JavaScript.

    Raises:
        ValueError: it is not one.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError("it is no table") from error
    if not isinstance(node, yaml.MappingNode):
        raise ValueError("it is no table")
    return limited(each._replace(where=where) for each in _flat(node, _Position("", where)))


def _flat(node: yaml.Node, position: _Position) -> Iterator[Written]:
    if position.depth > DEPTH_MAX:
        raise ValueError("its tables are too deep inside each other")
    if isinstance(node, yaml.MappingNode):
        yield from _of_mapping(node, position)
    elif isinstance(node, yaml.SequenceNode):
        yield from _of_sequence(node, position)
    elif isinstance(node, yaml.ScalarNode):
        yield _scalar(node, position)


def _of_mapping(node: yaml.MappingNode, position: _Position) -> Iterator[Written]:
    keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    merged = [(key, value) for key, value in node.value if key.tag == _MERGE]
    own = [(key, value) for key, value in node.value if key.tag != _MERGE]
    for _, value in merged:
        tables = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for table in tables:
            for each in _flat(table, position._replace(depth=position.depth + 1)):
                if each.name.removeprefix(f"{position.name}.").partition(".")[0] not in keys:
                    yield each
    for key, value in own:
        if not isinstance(key, yaml.ScalarNode):
            raise ValueError(f"line {key.start_mark.line + 1}: a name is no text")
        twice = "it is there twice" if keys.count(key.value) > 1 else ""
        yield from (each._replace(why=each.why or twice) for each in _flat(value, position.inside(key.value)))


def _of_sequence(node: yaml.SequenceNode, position: _Position) -> Iterator[Written]:
    variables = position.name.rpartition(".")[2] in _VARIABLES
    plain = all(isinstance(item, yaml.ScalarNode) for item in node.value)
    if plain and not variables:
        yield Written(position.name, ",".join(item.value for item in node.value), position.line_of(node))
        return
    for number, item in enumerate(node.value):
        if variables and isinstance(item, yaml.ScalarNode):
            name, separator, value = item.value.partition("=")
            why = "" if separator else "its value comes from outside"
            yield Written(f"{position.name}.{name}", value, position.line_of(item), why)
        elif isinstance(item, yaml.MappingNode) and (variables or {key.value for key, _ in item.value} in _PAIRS):
            yield from _variable(item, position)
        else:
            yield from _flat(item, position.item(number))


def _variable(node: yaml.MappingNode, position: _Position) -> Iterator[Written]:
    """A setting that is written as a table of two: its name, and its value or whence that comes."""
    pairs = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    name, value = pairs.get("name", pairs.get("key")), pairs.get("value")
    if isinstance(name, yaml.ScalarNode):
        if isinstance(value, yaml.ScalarNode):
            yield _scalar(value, position.inside(name.value))
        else:
            yield Written(position.inside(name.value).name, "", position.line_of(node), "its value comes from outside")


def _scalar(node: yaml.ScalarNode, position: _Position) -> Written:
    written = Written(position.name, node.value, position.line_of(node))
    if node.tag == _TEXT or not node.tag.startswith(_STANDARD):
        foreign = "" if node.tag == _TEXT else f"{node.tag} is made of it, which is not known here"
        return written._replace(why=foreign)
    if node.style is None and node.value in _NULLS:
        return written._replace(value=None)
    if node.style is None and _OCTAL.fullmatch(node.value):
        return written._replace(why="YAML takes a number that begins with 0 for an octal one")
    return written


def _of_profile(settings: list[Written]) -> list[Written]:
    """The settings of a document; uncertain, where it belongs to a profile."""
    profile = next((each.value for each in settings if each.name in _PROFILES), None)
    why = f"it counts where the profile {profile} is active" if profile else ""
    return [each._replace(why=each.why or why) for each in settings]


def _by_service(settings: list[Written]) -> list[Program]:
    """The variables of each service of a compose file."""
    services: dict[str, list[Written]] = {}
    for each in settings:
        if match := _OF_SERVICE.fullmatch(each.name):
            services.setdefault(match[1], []).append(each._replace(name=match[2] or match[3]))
    more = {
        match[1]: what for each in settings if (match := _MORE.match(each.name)) and (what := _taking(match[2], each))
    }
    return [Program(f"service {service}", own, elsewhere=more.get(service, "")) for service, own in services.items()]


def _taking(what: str, each: Written) -> str:
    """The words for what takes settings from another text; empty where a volume, or nothing, is there."""
    value = each.value or ""
    if what in {"env_file", "extends", "envFrom"}:
        return what if value else ""
    mounted = any(_OF_SETTINGS.search(volume) and not _NO_SETTINGS.search(volume) for volume in value.split(","))
    return "a mounted file" if mounted else ""


def _of_kubernetes(settings: list[Written], file: str) -> Program:
    """The variables of an object's containers, the files that it holds, or its configuration of Kafka Connect."""
    names = {each.name: each.value for each in settings}
    label = f"{names['kind']} {names.get('metadata.name', '')}".strip()
    kept: list[Written] = []
    for each in settings:
        if match := re.search(r"\.(?:env\.([^.]+)|containers\[\d+\]\.(command|args)(?:\[\d+\])*)$", each.name):
            kept.append(each._replace(name=match[1] or match[2]))
        elif each.name.startswith(("data.", "stringData.")):
            secret = names["kind"] == "Secret" and each.name.startswith("data.")
            kept += _of_data(_unveiled(each) if secret else each, file)
        elif names["kind"] == "KafkaConnect" and each.name.startswith("spec.config."):
            kept.append(each._replace(name=each.name.removeprefix("spec.config.")))
        elif _DECIDING.search(each.name):
            kept.append(each)
    if names["kind"] == "KafkaConnect":
        kept.append(Written("plugin.path", "", file))
    more = [
        what for each in settings if (match := _MORE_OF_PODS.search(each.name)) and (what := _taking(match[1], each))
    ]
    return Program(label, kept, elsewhere=more[0] if more else "")


def _unveiled(each: Written) -> Written:
    """An entry of a secret as it was before base64."""
    try:
        return each._replace(value=base64.b64decode(each.value or "", validate=False).decode())
    except ValueError:
        return each._replace(why="it is not text in base64")


def _of_data(each: Written, file: str) -> list[Written]:
    name = each.name.partition(".")[2]
    match = _FILE.search(name)
    if match is None or each.value is None:
        return [each._replace(name=name)]
    if match[1] in {"yml", "yaml"}:
        return [own._replace(where=each.where) for group in groups_in(each.value, file) for own in group.settings]
    return [Written(entry.name, trimmed(entry.value), each.where) for entry in entries_in(each.value)]

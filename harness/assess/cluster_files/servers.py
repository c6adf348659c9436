"""Reads the settings of one broker or controller: its file of properties, or what it logs at its start."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import ClusterEvidence, Entered, Layer
from harness.assess.configuration import OF_BROKERS, OF_TOPICS
from harness.assess.properties_files import Encoding, Entry, entries_in
from harness.assess.setting_names import names_of_kafka, strange_to_kafka

#: Names that only brokers have, so that a file of them is theirs.
_OF_SERVERS: Final = frozenset({*OF_BROKERS, "node.id", "broker.id", "listeners", "controller.quorum.voters"}) | {
    name for inherited in OF_TOPICS.values() for name in inherited.brokers
}
_NAME: Final = re.compile(r"[A-Za-z][\w./-]*")
_SEPARATED: Final = re.compile(r"\s*[A-Za-z](?:[\w./-]|\\.)*\s*[=:]")
_OF_LOG: Final = re.compile(r"KafkaConfig values:\s*$")
#: Each line may begin with a time, a level, or the name of a container.
_VALUE_OF_LOG: Final = re.compile(r"(?:.*?[\s|>\]:])?(?P<name>[a-z][\w.-]*) =(?: (?P<value>.*))?")
_NUMBERS: Final = ("node.id", "broker.id")
#: One of the last names in the order of the alphabet that every release has.
_LAST: Final = "unclean.leader.election.enable"


class Server(NamedTuple):
    """The settings of one node, each once. ``source`` is where all of them are from.

    ``whole``: what they do not name has its default.
    """

    source: str
    entries: tuple[Entered, ...]
    whole: bool = True


def is_properties(text: str) -> bool:
    """True if the text as a whole is a file of properties: every line is an entry, a comment or blank."""
    entries = entries_in(text)
    lines = text.splitlines()
    return bool(entries) and all(_is_entry(entry, lines[entry.line - 1]) for entry in entries)


def of_properties(text: str, file: str) -> Server:
    """The settings of a file of properties. Of two with one name the last counts, as to Java.

    Raises:
        ValueError: it has no setting of a broker.
    """
    entries = {entry.name: entry for entry in entries_in(text)}
    if not _OF_SERVERS & entries.keys():
        raise ValueError("it has no setting of a broker")
    strange = [name for name in entries if strange_to_kafka(name, "broker")]
    if 2 * len(strange) > len(entries):
        raise ValueError(f"of its {len(entries)} names no broker has {len(strange)}, {strange[0]} among them")
    return Server(file, tuple(Entered(name, each.value, f"{file}, line {each.line}") for name, each in entries.items()))


def marked(server: Server, encoding: Encoding) -> Server:
    """The settings of a file of this encoding: to Java a byte order mark is the beginning of the first name.

    Raises:
        ValueError: it is UTF-16, and Java reads no setting of that.
    """
    if encoding == "utf-16":
        raise ValueError("it is UTF-16, which no broker reads; save it as UTF-8, as by iconv -f utf-16 -t utf-8")
    why = "the file begins with a byte order mark, which Java takes for the beginning of this name"
    first = server.entries[0].where.endswith(", line 1") and encoding == "utf-8-sig"
    return server._replace(entries=(server.entries[0]._replace(why=why), *server.entries[1:])) if first else server


def logs_values(text: str) -> bool:
    """True if a broker wrote its settings into the text, as it does when it starts."""
    return any(_OF_LOG.search(line) for line in text.splitlines())


def of_log(text: str, file: str) -> list[Server]:
    """The settings that brokers wrote into a log; of one broker those of its last start.

    Raises:
        ValueError: the settings are cut off.
    """
    servers: dict[str, dict[str, Entered]] = {}
    block: dict[str, Entered] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if _OF_LOG.search(line):
            block = {}
            servers[f"{file}, line {number}"] = block
        elif block is not None and (match := _VALUE_OF_LOG.fullmatch(line.rstrip())):
            value = (match["value"] or "").removeprefix("[").removesuffix("]")
            block[match["name"]] = Entered(match["name"], value, f"{file}, line {number}")
        elif line.strip():
            block = None
    last = {number_of(entries.values()) or source: source for source, entries in servers.items()}
    if cut := [source for source in last.values() if not servers[source]]:
        raise ValueError(f"no settings are below {cut[0]}")
    # A broker writes all that it has, its defaults included.
    return [Server(source, tuple(servers[source].values()), whole=_LAST in servers[source]) for source in last.values()]


def number_of(entries: Iterable[Entered]) -> str:
    """The number of a node among its settings; empty where they have no number."""
    values = {each.name: each.text.strip() for each in entries}
    numbers = (values.get(name, "") for name in _NUMBERS)
    return next((number for number in numbers if number.isdigit()), "")


def read_server(server: Server, evidence: ClusterEvidence) -> None:
    """Take over the settings of a node: what they do not name has its default.

    Raises:
        PlanError: they contradict those of another file for the same node.
    """
    node = evidence.node(number_of(server.entries) or server.source)
    node.whole |= server.whole
    for written in server.entries:
        evidence.put(node.layers[Layer.FILE], written)


def _is_entry(entry: Entry, line: str) -> bool:
    """True if a line is an entry as people write it; Java takes every line for one, a sentence or a row, too."""
    separated = _SEPARATED.match(line) or entry.name in names_of_kafka("broker")
    return bool(_NAME.fullmatch(entry.name) and separated)

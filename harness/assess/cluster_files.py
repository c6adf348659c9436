"""Reads a cluster from files: what Kafka's own tools print and take, properties of brokers, and what ackproof saved.

The content tells the kind of a file:

* the text of ``kafka-topics.sh --describe``;
* the text of ``kafka-configs.sh --describe``, of topics or brokers, with or without ``--all``;
* JSON of ``kafka-reassign-partitions.sh``;
* ``server.properties``; with ``node.id`` and ``broker.rack`` in that of each broker, racks are known;
* JSON that ``ackproof assess --save`` wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from harness.assess.client_files import properties_in, read_text
from harness.assess.configuration import DECISIVE, OF_BROKERS, OF_TOPICS, Cluster, Topic
from harness.errors import PlanError
from workloads import shown

WHAT: Final = (
    "a file that kafka-topics.sh --describe or kafka-configs.sh --describe printed, the JSON of a reassignment, "
    "a server.properties, or what `ackproof assess --save` wrote"
)
_FIELD: Final = re.compile(r"(\w+):[ \t]*([^\t]*)")
_SUBJECT: Final = re.compile(
    r"(?:All|Dynamic|Default) configs for (topic|broker)s?(?: (\S+?))?(?: in the cluster)? are:\s*"
)
_ENTRY: Final = re.compile(r"\s+([\w.]+)=(.*?)(?: sensitive=(?:true|false))?(?: synonyms=\{.*\})?\s*")
_NEXT: Final = re.compile(r",(?=[a-z][a-z.]*=)")
#: Names that only brokers have, so that a file of them is theirs.
_OF_SERVERS: Final = frozenset({*OF_BROKERS, "node.id", "broker.id", "listeners", "controller.quorum.voters"}) | {
    name for inherited in OF_TOPICS.values() for name in inherited.brokers
}


class _Partitions:
    """The log partitions of one topic as they are read: their number, and the brokers of each kind of placement."""

    def __init__(self) -> None:
        self.number = 0
        self.replicas: set[tuple[int, ...]] = set()

    def add(self, brokers: Iterable[str | int]) -> None:
        self.number += 1
        self.replicas.add(tuple(sorted(map(int, brokers))))


class ClusterFiles:
    """Takes files one after the other, and makes one cluster of them."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._partitions: dict[str, _Partitions] = {}
        self._topics: dict[str, dict[str, str]] = {}
        self._brokers: dict[str, dict[str, str]] = {}
        self._of_all: dict[str, str] = {}
        self._saved: Cluster | None = None

    def add(self, path: Path) -> None:
        """Read one file.

        Raises:
            PlanError: it cannot be read, or is of no kind that is known; the text says which there are.
        """
        text = read_text(path, WHAT)
        try:
            self._take(text, path)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise PlanError(f"{path} cannot be understood ({_why(error)}); name {WHAT}") from error
        self._names.append(str(path))

    def _take(self, text: str, path: Path) -> None:
        if text.lstrip().startswith("{"):
            self._json(text)
        elif _SUBJECT.search(text):
            self._configs(text)
        elif re.search(r"^\s*Topic:.*Partition", text, re.MULTILINE):
            self._described(text)
        else:
            self._server(properties_in(text), path)

    def cluster(self) -> Cluster:
        """The cluster of all files.

        Raises:
            PlanError: no file has topics with their replicas.
        """
        if self._saved is not None:
            return msgspec.structs.replace(self._saved, source=", ".join(self._names))
        if not self._partitions:
            raise PlanError(
                f"{', '.join(self._names)}: no topic with its replicas; add the text of `kafka-topics.sh --describe`"
            )
        racks = {name: rack for name, own in self._brokers.items() if (rack := own.get("broker.rack"))}
        numbers = {broker for topic in self._partitions.values() for row in topic.replicas for broker in row}
        settings, differing = shared(self._brokers)
        return Cluster(
            source=", ".join(self._names),
            topics=tuple(
                Topic(
                    name=name,
                    partitions=own.number,
                    replicas=min(map(len, own.replicas)),
                    racks=racks_of(own.replicas, {int(broker): rack for broker, rack in racks.items()}),
                    settings=self._topics.get(name, {}),
                )
                for name, own in sorted(self._partitions.items())
            ),
            brokers=max(len(numbers), len(self._brokers)),
            settings=settings | self._of_all,
            differing=differing,
        )

    # --- kinds of files ----------------------------------------------------------------------------------------------

    def _described(self, text: str) -> None:
        for line in text.splitlines():
            fields = {name: value.strip() for name, value in _FIELD.findall(line)}
            if not (topic := fields.get("Topic")):
                continue
            if "Partition" in fields:
                self._add_partition(topic, [broker for broker in fields["Replicas"].split(",") if broker])
            else:
                configs = _NEXT.split(fields["Configs"]) if fields.get("Configs") else []
                pairs = [config.partition("=") for config in configs]
                self._topics.setdefault(topic, {}).update({name: value for name, _, value in pairs if name in DECISIVE})

    def _add_partition(self, topic: str, brokers: Sequence[str | int]) -> None:
        if not brokers:
            raise ValueError(f"a log partition of {topic} has no replica")
        self._partitions.setdefault(topic, _Partitions()).add(brokers)

    def _configs(self, text: str) -> None:
        into: dict[str, str] = {}
        for line in text.splitlines():
            if subject := _SUBJECT.fullmatch(line):
                kind, name = subject.groups()
                of_kind = self._topics if kind == "topic" else self._brokers
                into = self._of_all if name is None else of_kind.setdefault(name, {})
            elif (entry := _ENTRY.fullmatch(line)) and entry[1] in DECISIVE and entry[2] != "null":
                into[entry[1]] = entry[2]

    def _json(self, text: str) -> None:
        content = json.loads(text)
        if "partitions" in content and "brokers" not in content:
            for partition in content["partitions"]:
                self._add_partition(str(partition["topic"]), partition["replicas"])
            return
        try:
            self._saved = msgspec.convert(content, Cluster)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error

    def _server(self, properties: Mapping[str, str], path: Path) -> None:
        if not _OF_SERVERS & properties.keys():
            raise ValueError("it has no setting of a broker")
        own = {name: value for name, value in properties.items() if name in DECISIVE}
        name = properties.get("node.id") or properties.get("broker.id") or str(path)
        self._brokers[name] = own | self._brokers.get(name, {})


def shared(brokers: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """The settings of all brokers, the first's where they differ, and what differs, with its values."""
    names = sorted({name for own in brokers.values() for name in own} - {"broker.rack", "log.dirs"})
    values = {name: [own[name] for own in brokers.values() if name in own] for name in names}
    differing = {name: tuple(dict.fromkeys(each)) for name, each in values.items() if len(set(each)) > 1}
    settings = {name: each[0] for name, each in values.items()}
    directories = [own["log.dirs"] for own in brokers.values() if own.get("log.dirs")]
    return settings | ({"log.dirs": directories[0]} if directories else {}), differing


def racks_of(placements: Iterable[tuple[int, ...]], racks: Mapping[int, str]) -> int | None:
    """The least number of racks in which the replicas of one log partition are; None where a rack is not known."""
    each = [{racks.get(broker) for broker in placement} for placement in placements]
    return None if any(None in own for own in each) else min(map(len, each), default=None)


def _why(error: Exception) -> str:
    return f"{shown(str(error.args[0]))} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())

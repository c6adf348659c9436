"""Reads a cluster from files: what Kafka's own tools print and take, properties of brokers, and what ackproof saved.

The content tells the kind of a file:

* the text of ``kafka-topics.sh --describe``;
* the text of ``kafka-configs.sh --describe``, of topics or brokers, with or without ``--all``;
* the text of ``kafka-features.sh describe``;
* JSON of ``kafka-reassign-partitions.sh``;
* ``server.properties``; with ``node.id`` and ``broker.rack`` in that of each broker, racks are known;
* JSON that ``ackproof assess --save`` wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from harness.assess.client_files import properties_in, read_text
from harness.assess.configuration import DECISIVE, OF_BROKERS, OF_TOPICS, Cluster, Now, Topic
from harness.assess.feature_levels import levels_in, levels_listed
from harness.errors import PlanError
from workloads import shown

WHAT: Final = (
    "a file that kafka-topics.sh --describe, kafka-configs.sh --describe or kafka-features.sh describe printed, the "
    "JSON of a reassignment, a server.properties, or what `ackproof assess --save` wrote"
)
#: Names of fields stand behind a tab, or behind spaces where a terminal or an editor made these of tabs.
_FIELD: Final = re.compile(r"(?:^|(?<=\s))(\w+):")
_SUBJECT: Final = re.compile(
    r"(?:All|Dynamic|Default) configs for (topic|broker)s?(?: (\S+?))?(?: in the cluster)? are:\s*"
)
_ENTRY: Final = re.compile(r"\s+([\w.]+)=(.*?)(?: sensitive=(?:true|false))?(?: synonyms=\{.*\})?\s*")
_NEXT: Final = re.compile(r",(?=[a-z][a-z.]*=)")
#: Names that only brokers have, so that a file of them is theirs.
_OF_SERVERS: Final = frozenset({*OF_BROKERS, "node.id", "broker.id", "listeners", "controller.quorum.voters"}) | {
    name for inherited in OF_TOPICS.values() for name in inherited.brokers
}


class _Partition(NamedTuple):
    """One log partition as a file has it. ``isr`` is None where the file does not say; no leader is an empty text."""

    path: Path
    replicas: tuple[int, ...]
    leader: str = "?"
    isr: tuple[int, ...] | None = None


class ClusterFiles:
    """Takes files one after the other, and makes one cluster of them."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._partitions: dict[str, dict[int, _Partition]] = {}
        self._topics: dict[str, dict[str, str]] = {}
        self._said: dict[tuple[str, str, str], tuple[str, Path]] = {}
        self._brokers: dict[str, dict[str, str]] = {}
        self._of_all: dict[str, str] = {}
        self._given: dict[str, set[str]] = {"broker": set(), "topic": set()}
        self._features: dict[str, int] = {}
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
            self._json(text, path)
        elif levels := levels_in(text):
            self._features |= levels
        elif _SUBJECT.search(text):
            self._configs(text, path)
        elif re.search(r"^\s*Topic:.*Partition", text, re.MULTILINE):
            self._described(text, path)
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
        numbers = {broker for topic in self._partitions.values() for row in topic.values() for broker in row.replicas}
        settings, differing = shared(self._brokers)
        return Cluster(
            source=", ".join(self._names),
            topics=tuple(
                Topic(
                    name=name,
                    partitions=len(own),
                    replicas=min(len(partition.replicas) for partition in own.values()),
                    racks=racks_of(
                        {partition.replicas for partition in own.values()},
                        {int(broker): rack for broker, rack in racks.items()},
                    ),
                    settings=self._topics.get(name, {}),
                    now=_now(own.values()),
                )
                for name, own in sorted(self._partitions.items())
            ),
            brokers=max(len(numbers), len(self._brokers)),
            settings=settings | self._of_all,
            differing=differing,
            features=self._features,
            given={kind: tuple(sorted(names)) for kind, names in self._given.items() if names},
        )

    # --- kinds of files ----------------------------------------------------------------------------------------------

    def _described(self, text: str, path: Path) -> None:
        for line in text.splitlines():
            fields = _fields(line)
            if not (topic := fields.get("Topic")):
                continue
            if "Partition" in fields:
                self._features |= levels_listed(fields)
                isr = _brokers(fields["Isr"]) if "Isr" in fields else None
                leader = fields.get("Leader", "?").replace("none", "").replace("-1", "")
                partition = _Partition(path, _brokers(fields["Replicas"]), leader, isr)
                self._add_partition(topic, int(fields["Partition"]), partition)
            else:
                configs = _NEXT.split(fields["Configs"]) if fields.get("Configs") else []
                self._add_settings("describe", topic, path, dict(_pair(config) for config in configs))

    def _add_partition(self, topic: str, number: int, partition: _Partition) -> None:
        """Add a log partition, or the later word about one that another file has, too."""
        if not partition.replicas:
            raise ValueError(f"a log partition of {topic} has no replica")
        partitions = self._partitions.setdefault(topic, {})
        before = partitions.get(number)
        if before is not None and set(before.replicas) != set(partition.replicas):
            raise PlanError(
                f"log partition {number} of {topic} has the replicas {_listed(before.replicas)} in {before.path}, and "
                f"{_listed(partition.replicas)} in {partition.path}; leave out the one that is wrong"
            )
        if before is None or partition.isr is not None:
            partitions[number] = partition

    def _add_settings(self, tool: str, topic: str, path: Path, settings: Mapping[str, str]) -> None:
        """Add a topic's settings. What kafka-configs.sh says wins, but one tool says the same of a topic each time."""
        own = self._topics.setdefault(topic, {})
        self._given["topic"] |= settings.keys()
        for name in sorted(settings.keys() & DECISIVE):
            value, before = self._said.setdefault((tool, topic, name), (settings[name], path))
            if value != settings[name]:
                raise PlanError(
                    f"{topic} has {name}={value} in {before}, and {name}={settings[name]} in {path}; leave out the one "
                    "that is wrong"
                )
            own[name] = value

    def _configs(self, text: str, path: Path) -> None:
        into: dict[str, str] = {}
        kind = ""
        topics: dict[str, dict[str, str]] = {}
        for line in text.splitlines():
            if subject := _SUBJECT.fullmatch(line):
                kind, name = subject.groups()
                of_kind = topics if kind == "topic" else self._brokers
                into = self._of_all if name is None else of_kind.setdefault(name, {})
            elif kind and (entry := _ENTRY.fullmatch(line)):
                self._given[kind].add(entry[1])
                if entry[1] in DECISIVE and entry[2] != "null":
                    into[entry[1]] = entry[2]
        for name, settings in topics.items():
            self._add_settings("configs", name, path, settings)

    def _json(self, text: str, path: Path) -> None:
        content = json.loads(text)
        if "partitions" in content and "brokers" not in content:
            for row in content["partitions"]:
                replicas = tuple(int(broker) for broker in row["replicas"])
                self._add_partition(str(row["topic"]), int(row["partition"]), _Partition(path, replicas))
            return
        try:
            self._saved = msgspec.convert(content, Cluster)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error

    def _server(self, properties: Mapping[str, str], path: Path) -> None:
        if not _OF_SERVERS & properties.keys():
            raise ValueError("it has no setting of a broker")
        own = {name: value for name, value in properties.items() if name in DECISIVE}
        self._given["broker"] |= properties.keys()
        name = properties.get("node.id") or properties.get("broker.id") or str(path)
        self._brokers[name] = own | self._brokers.get(name, {})


def _fields(line: str) -> dict[str, str]:
    """The fields of a line of kafka-topics.sh; of two with one name (Adding Replicas) the first."""
    names = list(_FIELD.finditer(line))
    ends = [match.start() for match in names[1:]] + [len(line)]
    fields: dict[str, str] = {}
    for match, end in zip(names, ends, strict=True):
        words = line[match.end() : end].split()
        fields.setdefault(match[1], words[0] if words else "")
    return fields


def _brokers(text: str) -> tuple[int, ...]:
    return tuple(int(broker) for broker in text.split(",") if broker)


def _listed(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _pair(config: str) -> tuple[str, str]:
    name, _, value = config.partition("=")
    return name, value


def _now(partitions: Collection[_Partition]) -> Now:
    in_sync = [(partition.isr, partition.replicas) for partition in partitions if partition.isr is not None]
    return Now(
        leaderless=sum(not partition.leader for partition in partitions),
        behind=sum(len(isr) < len(replicas) for isr, replicas in in_sync),
        in_sync=min((len(isr) for isr, _ in in_sync), default=None),
    )


def shared(brokers: Mapping[str, Mapping[str, str]]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """The settings of all brokers, the first's where they differ, and what differs, with its values."""
    names = sorted({name for own in brokers.values() for name in own} - {"broker.rack"})
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

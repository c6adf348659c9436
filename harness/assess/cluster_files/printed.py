"""Reads what Kafka's own tools print of a cluster: topics, settings and features, of every release from 0.9 on.

One file may have the output of several tools one after another, with a shell's prompts and warnings in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import (
    DECIDING,
    ClusterEvidence,
    Declared,
    Entered,
    Layer,
    ReadPartition,
    Slots,
    written_in,
)
from harness.assess.configuration import NotUnderstood
from harness.assess.feature_levels import levels_in, levels_listed
from workloads import shown

#: Names of fields stand behind a tab, or behind spaces where a terminal or an editor made these of tabs.
_FIELD: Final = re.compile(r"(?:^|(?<=\s))(\w+):")
_LISTED: Final = re.compile(r"\s*Topic:.*\b(?:Partition|PartitionCount):")
#: The lines above settings: by servers since 1.1, with other words before 2.5, and by ZooKeeper in one line.
_SUBJECT: Final = re.compile(
    r"(?:(?P<how>All|Dynamic|Default) c|C)onfigs? for (?P<kind>[a-z-]+?)s?(?: (?P<name>\S+?))?(?: in the cluster)? are:"
    r"\s*"
)
_IN_ONE_LINE: Final = re.compile(r"Configs for (?P<of>.+?) are(?: (?P<settings>.*))?")
_NAMED: Final = re.compile(r"(?P<kind>topic|broker)s?(?::| )'?(?P<name>.+?)'?|(?P<every>default brokers?)")
#: The name under which ZooKeeper keeps what holds for every broker.
_EVERY: Final = "<default>"
_ENTRY: Final = re.compile(
    r"\s+(?P<name>[\w.-]+)=(?P<value>.*?)(?: sensitive=(?:true|false))?(?: synonyms=\{(?P<synonyms>.*)\})?\s*"
)
_SYNONYM: Final = re.compile(r"([A-Z_]+_CONFIG):([\w.-]+)=(.*?)(?=, [A-Z_]+_CONFIG:|$)")
_NEXT: Final = re.compile(r",(?=[a-z][\w.-]*=)")
_FEATURE: Final = re.compile(r"\s*Feature:.*\bFinalizedVersionLevel:")
#: The mark of a list that the brokers did not give.
_NOT_TOLD: Final = "N/A"
_NO_LEADER: Final = frozenset({"", "none", "-1"})


class _PrintedLine(NamedTuple):
    text: str
    where: str


def is_printed(text: str) -> bool:
    """True if Kafka's tools printed the text, or a part of it."""
    return any(_of_tool(line.rstrip()) for line in text.splitlines())


def read_printed(text: str, file: str, evidence: ClusterEvidence) -> None:
    """Take over what the tools printed.

    Raises:
        ValueError: a line is cut off.
        PlanError: it contradicts another file.
    """
    take: Callable[[_PrintedLine], None] | None = None
    counts: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = _PrintedLine(raw.rstrip(), f"{file}, line {number}")
        if subject := _SUBJECT.fullmatch(line.text):
            take = _taking(subject, evidence)
        elif _LISTED.match(line.text):
            take = None
            _listed(line, evidence, counts)
        elif levels := levels_in(line.text):
            take = None
            for name, level in levels.items():
                evidence.put_feature(name, level, line.where)
        elif (in_one_line := _IN_ONE_LINE.fullmatch(line.text)) and (of := _NAMED.fullmatch(in_one_line["of"])):
            take = None
            _by_zookeeper(of, in_one_line["settings"] or "", line.where, evidence)
        elif take is not None and line.text[:1].isspace():
            take(line)
        elif line.text:
            take = None
            evidence.not_understood |= dict.fromkeys(_loose(line))
    for topic, (partitions, where) in counts.items():
        _counted(topic, partitions, where, evidence)


def _loose(line: _PrintedLine) -> Iterator[NotUnderstood]:
    """The settings in a line that no tool printed so, such as one of a server.properties below a listing."""
    for name, value in written_in(line.text):
        why = "no tool of Kafka's prints such a line, and it is not read; give it in a file of its own"
        yield NotUnderstood(where=line.where, text=shown(f"{name}={value}"), why=why, name=name)


def _of_tool(line: str) -> bool:
    in_one_line = _IN_ONE_LINE.fullmatch(line)
    return bool(
        _LISTED.match(line)
        or _SUBJECT.fullmatch(line)
        or _FEATURE.match(line)
        or (in_one_line and re.match(r"(default )?(topic|broker|user|client|ip)", in_one_line["of"]))
    )


# --- topics ----------------------------------------------------------------------------------------------------------


def _listed(line: _PrintedLine, evidence: ClusterEvidence, counts: dict[str, tuple[int, str]]) -> None:
    fields = _fields(line.text)
    topic = _word(fields, "Topic")
    if "Partition" not in fields:
        counts[topic] = (int(_word(fields, "PartitionCount")), line.where)
        said = evidence.topic(topic)
        if said.declared is None and "ReplicationFactor" in fields:
            said.declared = Declared(counts[topic][0], int(_word(fields, "ReplicationFactor")))
        for pair in filter(None, _NEXT.split(fields.get("Configs", "").strip())):
            name, _, value = pair.partition("=")
            evidence.put(said.listed, Entered(name.strip(), value, line.where))
        return
    leader = _word(fields, "Leader") if "Leader" in fields else "?"
    isr = _brokers(_word(fields, "Isr")) if "Isr" in fields else None
    elr = _word(fields, "Elr") if "Elr" in fields else ""
    for name, level in levels_listed({"Elr": elr}).items():
        evidence.put_feature(name, level, line.where)
    partition = ReadPartition(
        line.where,
        _brokers(_word(fields, "Replicas")),
        "" if leader in _NO_LEADER else leader,
        isr,
        _brokers(elr) if elr != _NOT_TOLD else (),
    )
    evidence.put_partition(topic, int(_word(fields, "Partition")), partition)


def _fields(line: str) -> dict[str, str]:
    """The fields of a line of kafka-topics.sh; of two with one name (Adding Replicas) the first."""
    names = list(_FIELD.finditer(line))
    ends = [match.start() for match in names[1:]] + [len(line)]
    fields: dict[str, str] = {}
    for match, end in zip(names, ends, strict=True):
        fields.setdefault(match[1], line[match.end() : end])
    return fields


def _word(fields: dict[str, str], name: str) -> str:
    """The first word of a field."""
    if name not in fields:
        raise ValueError(f"a line about a topic has no {name}")
    words = fields[name].split()
    return words[0] if words else ""


def _brokers(text: str) -> tuple[int, ...]:
    return tuple(int(broker) for broker in text.split(",") if broker)


def _counted(topic: str, partitions: int, where: str, evidence: ClusterEvidence) -> None:
    """Say it where log partitions are missing that the line about their topic counts."""
    said = evidence.topic(topic)
    if said.partitions and len(said.partitions) < partitions:
        text = f"{topic} has {partitions} log partitions"
        why = (
            f"only {len(said.partitions)} of them are in the file; give the whole text of `kafka-topics.sh --describe`"
        )
        said.not_understood[NotUnderstood(where=where, text=text, why=why)] = None


# --- settings --------------------------------------------------------------------------------------------------------


def _taking(subject: re.Match[str], evidence: ClusterEvidence) -> Callable[[_PrintedLine], None] | None:
    """The reader of the lines below a heading; None where they are of users, clients, loggers and the like."""
    how, kind, name = subject["how"], subject["kind"], subject["name"]
    if kind == "topic" and name is not None:
        evidence.topic(name).owned_whole |= how != "All"
        return lambda line: _of_topic(line, name, how, evidence)
    if kind == "broker":
        return lambda line: _of_broker(line, name, how, evidence)
    return None


def _of_topic(line: _PrintedLine, topic: str, how: str | None, evidence: ClusterEvidence) -> None:
    said = evidence.topic(topic)
    entry = _entry(line, said.own)
    if entry is None:
        return
    synonyms = list(_synonyms(entry))
    own = synonyms[0][0] == "DYNAMIC_TOPIC_CONFIG" if synonyms else how != "All"
    said.owned_whole |= bool(synonyms)
    into = said.own if own else said.effective
    evidence.put(into, Entered(entry["name"], entry["value"], line.where))
    _agreed(entry, line, into)


def _of_broker(line: _PrintedLine, name: str | None, how: str | None, evidence: ClusterEvidence) -> None:
    every = evidence.of_all
    node = None if name is None else evidence.node(name)
    top = every if node is None else node.layers[Layer.DYNAMIC]
    entry = _entry(line, top)
    if entry is None:
        return
    if node is not None:
        node.whole |= how == "All"
    layers: dict[str, Slots] = {"DYNAMIC_DEFAULT_BROKER_CONFIG": every}
    if node is not None:
        layers |= {"DYNAMIC_BROKER_CONFIG": top, "STATIC_BROKER_CONFIG": node.layers[Layer.RUNNING]}
    synonyms = list(_synonyms(entry))
    for source, setting, value in synonyms:
        if source in layers:
            evidence.put(layers[source], Entered(setting, value, line.where))
    written = Entered(entry["name"], entry["value"], line.where)
    if node is not None and synonyms and not any(source in layers for source, *_ in synonyms):
        evidence.put_default(node, written)
    elif not synonyms:
        evidence.put(top, written)
    evidence.given["broker"].add(entry["name"])
    _agreed(entry, line, top)


def _entry(line: _PrintedLine, into: Slots) -> re.Match[str] | None:
    """The entry in a line below a heading. A line of another form that names a setting which decides is not passed."""
    entry = _ENTRY.fullmatch(line.text)
    if entry is None:
        for name in DECIDING[into.kind]:
            if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line.text):
                why = "it has not the form in which kafka-configs.sh prints a setting (name=value)"
                into[name] = NotUnderstood(where=line.where, text=shown(line.text.strip()), why=why, name=name)
    return entry


def _synonyms(entry: re.Match[str]) -> Iterator[tuple[str, str, str]]:
    """The places of a setting, the one that counts first: source, name there, and value."""
    for match in _SYNONYM.finditer(entry["synonyms"] or ""):
        yield match[1], match[2], match[3]


def _agreed(entry: re.Match[str], line: _PrintedLine, into: Slots) -> None:
    """Say it where a line contradicts itself: the first synonym is the value that counts."""
    first = next(_synonyms(entry), None)
    name = entry["name"]
    if first is not None and first[1] == name and first[2] != entry["value"] and name in DECIDING[into.kind]:
        why = f"its first synonym says {shown(first[2])}"
        into[name] = NotUnderstood(where=line.where, text=shown(f"{name}={entry['value']}"), why=why, name=name)


def _by_zookeeper(of: re.Match[str], settings: str, where: str, evidence: ClusterEvidence) -> None:
    if of["kind"] == "topic":
        evidence.topic(of["name"]).owned_whole = True
        into = evidence.topic(of["name"]).own
    elif of["every"] or of["name"] == _EVERY:
        into = evidence.of_all
    else:
        into = evidence.node(of["name"]).layers[Layer.DYNAMIC]
    for pair in filter(None, _NEXT.split(settings.strip())):
        name, _, value = pair.partition("=")
        evidence.put(into, Entered(name.strip(), value, where))

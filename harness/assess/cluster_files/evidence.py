"""Keeps each value that files have of a cluster, with its file and line, before it is decided which of them counts.

Values of a node are kept by where they stand (:class:`Layer`), those of a topic by whether they are its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from harness.assess.configuration import OF_BROKERS, OF_TOPICS, NotUnderstood
from harness.assess.setting_names import Kind, nearest, strange_to_kafka
from harness.assess.values import understood
from harness.ground.errors import PlanError
from workloads import shown

_BY_BROKERS: Final = frozenset(name for inherited in OF_TOPICS.values() for name in inherited.brokers)
#: The settings of brokers, and of topics, that decide something.
DECIDING: Final[Mapping[Kind, frozenset[str]]] = {
    "broker": frozenset({*OF_BROKERS, *_BY_BROKERS}),
    "topic": frozenset(OF_TOPICS),
}
#: The defaults of brokers under their own names.
_DEFAULTS: Final[Mapping[str, str]] = {
    name: inherited.default
    for inherited in OF_TOPICS.values()
    for name, factor in inherited.brokers.items()
    if factor == 1
} | dict(OF_BROKERS)
#: Names of a vendor's own broker, which end as Kafka's own do and mean something else.
_OF_VENDORS: Final = ("confluent.",)
_WRITTEN: Final = re.compile(r"(?:(?<![\w.-])|\\[nt])([a-z][a-z.]*[a-z])\s*[=:]\s*([^\s\"';]*)")
#: The place of values that hold for every node.
EVERY_NODE: Final = "every node"


def written_in(text: str) -> list[tuple[str, str]]:
    """The settings that decide, and their values, anywhere in a text that is not read as a whole."""
    names = DECIDING["broker"] | DECIDING["topic"]
    return [(match[1], match[2]) for match in _WRITTEN.finditer(text) if match[1] in names]


class ReadValue(NamedTuple):
    """A value as Kafka takes it, and where it stands."""

    value: str
    where: str


class Entered(NamedTuple):
    """A setting as it is written, and where. ``why`` says why its text cannot be its value; empty: it may be."""

    name: str
    text: str
    where: str
    why: str = ""


#: A value, or something that was not understood.
Slot = ReadValue | NotUnderstood


class Slots(dict[str, Slot]):
    """The settings of one layer; ``of`` says whose they are."""

    def __init__(self, kind: Kind, of: str) -> None:
        super().__init__()
        self.kind = kind
        self.of = of


class Layer(IntEnum):
    """The layers of a node's values; of two the greater counts. That of the whole cluster is before the running one's.

    ``RUNNING`` is what a broker that runs says of its file, which may have been changed since.
    """

    FILE = 0
    RUNNING = 1
    DYNAMIC = 2


class ClusterNode:
    """A broker, a controller, or both. ``whole``: what its file does not have has the default of its release."""

    def __init__(self, name: str = "") -> None:
        self.layers = {layer: Slots("broker", f"node {name}" if name.isdigit() else name) for layer in Layer}
        self.whole = False

    @property
    def roles(self) -> frozenset[str]:
        """The roles that it says it has; none where it says nothing."""
        slots = (self.layers[layer].get("process.roles") for layer in reversed(Layer))
        said = next(filter(None, slots), None)
        return frozenset(said.value.split(",")) if isinstance(said, ReadValue) else frozenset()


class ReadPartition(NamedTuple):
    """One log partition as a file has it. ``isr`` is None where the file does not say; no leader is an empty text.

    ``eligible`` are the replicas that left the ISR and may lead all the same (KIP-966).
    """

    where: str
    replicas: tuple[int, ...]
    leader: str = "?"
    isr: tuple[int, ...] | None = None
    eligible: tuple[int, ...] = ()


class Declared(NamedTuple):
    """The partitions and replicas of a topic without their brokers; ``where`` is empty if a running cluster says so."""

    partitions: int | None
    replicas: int | None
    where: str = ""


class TopicSaid:
    """Settings and replicas of a topic. ``own`` are its own; ``effective`` and ``listed`` may be its brokers'.

    ``owned_whole``: nothing else is its own.
    """

    def __init__(self, name: str) -> None:
        self.partitions: dict[int, ReadPartition] = {}
        self.own, self.effective, self.listed = (Slots("topic", name) for _ in range(3))
        self.owned_whole = False
        self.declared: Declared | None = None
        self.not_understood: dict[NotUnderstood, None] = {}

    def declare(self, declared: Declared) -> None:
        """Keep how many partitions and replicas a resource wants.

        Raises:
            PlanError: another resource wants others.
        """
        before = self.declared
        if before is not None and before.where:
            for name in ("partitions", "replicas"):
                pair = [ReadValue(str(getattr(each, name) or "default"), each.where) for each in (before, declared)]
                if pair[0].value != pair[1].value:
                    raise _two_values(self.own.of, name, *pair)
        self.declared = declared

    def shown(self, name: str) -> Slot | None:
        """The value that a running cluster says it has, its own or its brokers'."""
        return self.effective.get(name) or self.listed.get(name)


class ClusterEvidence:
    """Everything that was said so far."""

    def __init__(self) -> None:
        self.nodes: dict[str, ClusterNode] = {}
        self.topics: dict[str, TopicSaid] = {}
        self.of_all = Slots("broker", "the cluster")
        self.features: dict[str, ReadValue] = {}
        self.given: dict[Kind, set[str]] = {"broker": set(), "topic": set()}
        self.not_understood: dict[NotUnderstood, None] = {}
        self.brokers_declared = 0
        self.clusters: dict[str, str] = {}

    def node(self, name: str) -> ClusterNode:
        """The node of this name: its number, or where its file is."""
        return self.nodes.setdefault(name, ClusterNode(name))

    def topic(self, name: str) -> TopicSaid:
        """The topic of this name."""
        return self.topics.setdefault(name, TopicSaid(name))

    def put(self, into: Slots, written: Entered) -> None:
        """Keep a setting in one layer.

        Raises:
            PlanError: another file says something else of the same.
        """
        self.given[into.kind].add(written.name)
        deciding = written.name if written.name in DECIDING[into.kind] else meant(written.name, into.kind)
        slot = _slot(written, deciding) if deciding else None
        if slot is None:
            return
        before = into.setdefault(deciding, slot)
        if isinstance(before, NotUnderstood) or isinstance(slot, NotUnderstood):
            unclear = [each for each in (before, slot) if isinstance(each, NotUnderstood)]
            into[deciding] = min(unclear, key=lambda each: each.words)
        elif before.value != slot.value:
            raise _two_values(into.of, deciding, before, slot)

    def put_default(self, node: ClusterNode, written: Entered) -> None:
        """Keep what a broker that runs says is its default, unless it is the one that is known here."""
        if _DEFAULTS.get(written.name) == written.text:
            self.given["broker"].add(written.name)
        else:
            self.put(node.layers[Layer.RUNNING], written)

    def put_feature(self, name: str, level: int, where: str) -> None:
        """Keep the level of a feature.

        Raises:
            PlanError: another file says something else of the same.
        """
        before = self.features.setdefault(name, ReadValue(str(level), where))
        if before.value != str(level):
            raise PlanError(
                f"{name} is {before.value} in {_file(before.where)}, and {level} in {_file(where)}; leave out the one "
                "that is wrong"
            )

    def put_partition(self, topic: str, number: int, partition: ReadPartition) -> None:
        """Keep a log partition.

        Raises:
            PlanError: another file says something else of the same.
        """
        if not partition.replicas:
            raise ValueError(f"a log partition of {topic} has no replica")
        partitions = self.topic(topic).partitions
        before = partitions.get(number)
        if before is None:
            partitions[number] = partition
            return
        pair = (before, partition)
        if set(before.replicas) != set(partition.replicas):
            raise _contradiction(topic, number, "the replicas", pair, [_listed(each.replicas) for each in pair])
        if before.isr is None:
            partitions[number] = partition
        elif partition.isr is not None and (set(before.isr), before.leader) != (set(partition.isr), partition.leader):
            states = [f"{_listed(each.isr or ()) or 'none'} (leader {each.leader or 'none'})" for each in pair]
            raise _contradiction(topic, number, "in sync", pair, states)


@cache
def meant(name: str, kind: Kind) -> str:
    """The setting that decides something and that a name may mean that no broker or topic has; empty where none is.

    It ends in that setting's name behind a prefix of a program around Kafka, or is a slip of it.
    """
    if not strange_to_kafka(name, kind) or name.startswith(_OF_VENDORS):
        return ""
    behind = [each for each in DECIDING[kind] if name.lower().endswith((f".{each}", f"_{each}"))]
    if behind:
        return max(behind, key=len)
    near = nearest(name, kind)
    return near if near in DECIDING[kind] else ""


def _slot(written: Entered, deciding: str) -> Slot | None:
    """A value, what was not understood, or None where the setting is not set."""
    name, text, where, why = written
    if not why and name != deciding:
        why = f"Kafka has no such setting, and does not take it for {deciding}; correct its name, or leave it out"
    if not why:
        try:
            value = understood(name, text)
        except ValueError as error:
            why = str(error)
        else:
            return None if value is None else ReadValue(value, where)
    return NotUnderstood(where=where, text=shown(f"{name}={text}"), why=why, name=deciding)


def _two_values(of: str, name: str, first: ReadValue, second: ReadValue) -> PlanError:
    return PlanError(
        f"{of} has {name}={first.value} in {_file(first.where)}, and {name}={second.value} in {_file(second.where)}; "
        "leave out the one that is wrong"
    )


def _contradiction(
    topic: str, number: int, what: str, pair: tuple[ReadPartition, ReadPartition], states: list[str]
) -> PlanError:
    (before, partition), (old, new) = pair, states
    return PlanError(
        f"log partition {number} of {topic} has {what} {old} in {_file(before.where)}, and {new} in "
        f"{_file(partition.where)}; leave out the one that is wrong"
    )


def _file(where: str) -> str:
    return where.partition(", line ")[0]


def _listed(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))

"""Decides which value counts: of a node by its place, among nodes by their roles.

A node takes its own dynamic value before that of the cluster, this before its file's, and its release's default last
(https://kafka.apache.org/documentation/#dynamicbrokerconfigs). Brokers that differ are judged by the worst of their
values, which some leader has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import EVERY_NODE, Evidence, Layer, Node, Said, Slot
from harness.assess.cluster_files.worst import has_worst, worst_first
from harness.assess.configuration import OF_TOPICS, Inherited, NotUnderstood

#: What is said of a value that no file has and that is the release's own.
BY_DEFAULT: Final = " (default)"


class At(NamedTuple):
    """What one node has. ``slot`` is None where it has its release's default; not ``known``: its file was not given."""

    slot: Slot | None
    known: bool = True


class Chosen(NamedTuple):
    """The value that counts among nodes, None for the default; ``known`` if any of them is known.

    ``differing`` are their values where they differ, the worst first.
    """

    value: str | None
    known: bool
    differing: tuple[str, ...] = ()
    unclear: tuple[NotUnderstood, ...] = ()


class Nodes:
    """The nodes of a cluster by their roles.

    ``deciding`` are those whose values count for what the controller decides: where roles are not known, every node may
    be the controller. ``apart``: some brokers are no controllers. ``numbers`` are brokers that have replicas.
    """

    def __init__(self, evidence: Evidence, numbers: Iterable[int]) -> None:
        self._every = evidence.nodes.get(EVERY_NODE)
        self.of_all = evidence.of_all
        known = {name: node for name, node in evidence.nodes.items() if name != EVERY_NODE}
        self.controllers = {name: node for name, node in sorted(known.items()) if node.roles == {"controller"}}
        listed = {str(number): Node() for number in numbers}
        brokers = {name: node for name, node in (listed | known).items() if name not in self.controllers}
        if self._every is not None and not brokers:
            brokers = {EVERY_NODE: self._every}
        self.brokers = dict(sorted(brokers.items()))
        self.apart = bool(self.controllers) or any(node.roles == {"broker"} for node in known.values())
        self.deciding = {
            name: node
            for name, node in sorted((self.brokers | self.controllers).items())
            if "controller" in node.roles or not (self.apart or node.roles)
        }

    def at(self, node: Node, name: str) -> At:
        """What a node has of a broker's setting."""
        dynamic, running, file = (node.layers[layer] for layer in (Layer.DYNAMIC, Layer.RUNNING, Layer.FILE))
        every = {} if self._every is None else self._every.layers[Layer.FILE]
        for place in (dynamic, self.of_all, running, file, every):
            if name in place:
                return At(place[name])
        return At(None, known=node.whole or (self._every is not None and self._every.whole))

    def inherited(self, node: Node, inherited: Inherited) -> At:
        """What topics inherit from a node, in the unit of the topic's own setting."""
        each = [(self.at(node, name), factor) for name, factor in inherited.brokers.items()]
        for at, factor in each:
            if isinstance(at.slot, Said):
                value = at.slot.value if factor == 1 else str(int(at.slot.value) * factor)
                return At(at.slot._replace(value=value))
            if at.slot is not None:
                return at
        return At(None, known=all(at.known for at, _ in each))

    def topics_inherit(self, setting: str, nodes: Iterable[Node]) -> Chosen:
        """What topics inherit of a setting of theirs from ``nodes``."""
        inherited = OF_TOPICS[setting]
        return chosen(setting, inherited.default, [self.inherited(node, inherited) for node in nodes])

    def brokers_have(self, setting: str, default: str, nodes: Iterable[Node]) -> Chosen:
        """What ``nodes`` have of a setting of brokers."""
        return chosen(setting, default, [self.at(node, setting) for node in nodes])


def chosen(name: str, default: str, candidates: Sequence[At]) -> Chosen:
    """The worst of what nodes have."""
    known = [at.slot for at in candidates if at.known]
    unclear = tuple(sorted({slot for slot in known if isinstance(slot, NotUnderstood)}, key=lambda each: each.words))
    given = {slot.value for slot in known if isinstance(slot, Said)}
    values = worst_first(name, given | ({default} if None in known else set()))
    if not values:
        return Chosen(None, known=bool(known), unclear=unclear)
    differing = tuple(value if value in given else value + BY_DEFAULT for value in values) if values[1:] else ()
    if differing and not has_worst(name):
        text = f"brokers differ: {', '.join(differing)}"
        why = "no value is the worse one; write the same on every broker"
        unclear += (NotUnderstood(where=name, text=text, why=why, name=name),)
    value = None if None in known and values[0] == default else values[0]
    return Chosen(value, known=True, differing=differing, unclear=unclear)

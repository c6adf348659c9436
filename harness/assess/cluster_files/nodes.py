"""Decides which value counts: of a node by its place, among nodes by their roles.

A node takes its own dynamic value before that of the cluster, this before its file's, and its release's default last
(https://kafka.apache.org/documentation/#dynamicbrokerconfigs). Brokers that differ are judged by the worst of their
values, which some leader has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import Evidence, Layer, Node, Said, Slot
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

    A file without a number, or an operator's, stands in for every broker that has no file. ``deciding`` are those whose
    values count for what the controller decides: where roles are not known, every node may be the controller.
    ``apart``: some brokers are no controllers. ``numbers`` are brokers that have replicas.
    """

    def __init__(self, evidence: Evidence, numbers: Iterable[int]) -> None:
        self.of_all = evidence.of_all
        known = dict(sorted(evidence.nodes.items()))
        self.controllers = {name: node for name, node in known.items() if node.roles == {"controller"}}
        self.apart = bool(self.controllers) or any(node.roles == {"broker"} for node in known.values())
        brokers = {name: node for name, node in known.items() if name not in self.controllers}
        self._stand_ins = [node for name, node in brokers.items() if not name.isdigit()]
        numbered = {name: node for name, node in brokers.items() if name.isdigit()}
        numbered |= {str(number): Node() for number in numbers if str(number) not in brokers}
        self.brokers = dict(sorted((numbered or brokers).items()))
        combined = {name: node for name, node in known.items() if "controller" in node.roles}
        self.deciding = combined if self.apart else self.brokers

    def at(self, node: Node, name: str) -> list[At]:
        """What a node has of a broker's setting; several where several files stand in for its own."""
        dynamic, running, file = (node.layers[layer] for layer in (Layer.DYNAMIC, Layer.RUNNING, Layer.FILE))
        for place in (dynamic, self.of_all, running, file):
            if name in place:
                return [At(place[name])]
        if node.whole or not self._stand_ins:
            return [At(None, known=node.whole)]
        files = [other.layers[Layer.FILE] | other.layers[Layer.RUNNING] for other in self._stand_ins]
        return [At(file.get(name)) for file in files]

    def topics_inherit(self, setting: str, nodes: Iterable[Node]) -> Chosen:
        """What topics inherit of a setting of theirs from ``nodes``."""
        inherited = OF_TOPICS[setting]
        candidates = [at for node in nodes for at in self._inherited(node, inherited)]
        return chosen(setting, inherited.default, candidates)

    def brokers_have(self, setting: str, default: str, nodes: Iterable[Node]) -> Chosen:
        """What ``nodes`` have of a setting of brokers."""
        return chosen(setting, default, [at for node in nodes for at in self.at(node, setting)])

    def said(self, nodes: Mapping[str, Node], name: str) -> Iterator[tuple[str, Slot]]:
        """What is said of a setting at each of some nodes, with the node's name."""
        for number, node in nodes.items():
            yield from ((number, at.slot) for at in self.at(node, name) if at.slot is not None)

    def _inherited(self, node: Node, inherited: Inherited) -> Iterator[At]:
        """What topics inherit from a node, in the unit of the topic's own setting: by its first name that is set."""
        names = inherited.brokers
        each = [self.at(node, name) for name in names]
        files = max(map(len, each))
        for own in zip(*(ats * files if len(ats) == 1 else ats for ats in each), strict=True):
            yield next(
                (_in_unit(at, factor) for at, factor in zip(own, names.values(), strict=True) if at.slot is not None),
                At(None, known=all(at.known for at in own)),
            )


def _in_unit(at: At, factor: int) -> At:
    if not isinstance(at.slot, Said) or factor == 1:
        return at
    return At(at.slot._replace(value=str(int(at.slot.value) * factor)))


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

"""Decides which value counts: of a node by its place, among nodes by their roles.

A node takes its own dynamic value before that of the cluster, this before its file's, and its release's default last
(https://kafka.apache.org/documentation/#dynamicbrokerconfigs). Brokers that differ are judged by the worst of their
values, which some leader has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harness.assess.cluster_files.evidence import ClusterEvidence, ClusterNode, Layer, ReadValue, Slot
from harness.assess.cluster_files.worst import has_worst, worst_first
from harness.assess.configuration import OF_TOPICS, Inherited, NotUnderstood

#: The mark of a value that no file has and that is the release's own.
BY_DEFAULT: Final = " (default)"


class NodeValue(NamedTuple):
    """The value of a node. ``slot`` is None for its release's default; not ``is_known``: its file was not given."""

    slot: Slot | None
    is_known: bool = True


class Chosen(NamedTuple):
    """The value that counts among nodes, None for the default; ``is_known`` if any of them is known.

    ``differing`` are their values where they differ, the worst first.
    """

    value: str | None
    is_known: bool
    differing: tuple[str, ...] = ()
    unclear: tuple[NotUnderstood, ...] = ()


class ClusterNodes:
    """The nodes of a cluster by their roles.

    A file without a number, or an operator's, is taken for every broker that has no file. ``deciding`` are those whose
    values count for what the controller decides: where roles are not known, every node may be the controller.
    ``apart``: some brokers are no controllers. ``numbers`` are brokers that have replicas.
    """

    def __init__(self, evidence: ClusterEvidence, numbers: Iterable[int]) -> None:
        self.of_all = evidence.of_all
        by_name = dict(sorted(evidence.nodes.items()))
        self.controllers = {name: node for name, node in by_name.items() if node.roles == {"controller"}}
        self.apart = bool(self.controllers) or any(node.roles == {"broker"} for node in by_name.values())
        brokers = {name: node for name, node in by_name.items() if name not in self.controllers}
        self._stand_ins = [node for name, node in brokers.items() if not name.isdigit()]
        numbered = {name: node for name, node in brokers.items() if name.isdigit()}
        numbered |= {str(number): ClusterNode() for number in numbers if str(number) not in brokers}
        self.brokers = dict(sorted((numbered or brokers).items()))
        combined = {name: node for name, node in by_name.items() if "controller" in node.roles}
        self.deciding = combined if self.apart else self.brokers

    def values_at(self, node: ClusterNode, name: str) -> list[NodeValue]:
        """The value of a broker's setting at a node; several where several files are taken for its own."""
        dynamic, running, file = (node.layers[layer] for layer in (Layer.DYNAMIC, Layer.RUNNING, Layer.FILE))
        for layer_of_it in (dynamic, self.of_all, running, file):
            if name in layer_of_it:
                return [NodeValue(layer_of_it[name])]
        if node.whole or not self._stand_ins:
            return [NodeValue(None, is_known=node.whole)]
        files = [other.layers[Layer.FILE] | other.layers[Layer.RUNNING] for other in self._stand_ins]
        return [NodeValue(file.get(name)) for file in files]

    def topics_inherit(self, setting: str, nodes: Iterable[ClusterNode]) -> Chosen:
        """The value of a topic's setting that topics inherit from ``nodes``."""
        inherited = OF_TOPICS[setting]
        candidates = [value for node in nodes for value in self._inherited(node, inherited)]
        return chosen(setting, inherited.default, candidates)

    def brokers_have(self, setting: str, default: str, nodes: Iterable[ClusterNode]) -> Chosen:
        """The value of a setting of brokers that ``nodes`` have."""
        return chosen(setting, default, [value for node in nodes for value in self.values_at(node, setting)])

    def said(self, nodes: Mapping[str, ClusterNode], name: str) -> Iterator[tuple[str, Slot]]:
        """Values of a setting at each of some nodes, with the node's name."""
        for number, node in nodes.items():
            yield from ((number, value.slot) for value in self.values_at(node, name) if value.slot is not None)

    def _inherited(self, node: ClusterNode, inherited: Inherited) -> Iterator[NodeValue]:
        """Values that topics inherit from a node, in their own unit: of the names the first that is set."""
        names = inherited.brokers
        each = [self.values_at(node, name) for name in names]
        files = max(map(len, each))
        for own in zip(*(ats * files if len(ats) == 1 else ats for ats in each), strict=True):
            yield next(
                (
                    _in_unit(value, factor)
                    for value, factor in zip(own, names.values(), strict=True)
                    if value.slot is not None
                ),
                NodeValue(None, is_known=all(value.is_known for value in own)),
            )


def _in_unit(value: NodeValue, factor: int) -> NodeValue:
    if not isinstance(value.slot, ReadValue) or factor == 1:
        return value
    return NodeValue(value.slot._replace(value=str(int(value.slot.value) * factor)))


def chosen(name: str, default: str, candidates: Sequence[NodeValue]) -> Chosen:
    """The worst of what nodes have."""
    slots = [value.slot for value in candidates if value.is_known]
    unclear = tuple(sorted({slot for slot in slots if isinstance(slot, NotUnderstood)}, key=lambda each: each.words))
    given = {slot.value for slot in slots if isinstance(slot, ReadValue)}
    values = worst_first(name, given | ({default} if None in slots else set()))
    if not values:
        return Chosen(None, is_known=bool(slots), unclear=unclear)
    differing = tuple(value if value in given else value + BY_DEFAULT for value in values) if values[1:] else ()
    if differing and not has_worst(name):
        text = f"brokers differ: {', '.join(differing)}"
        why = "no value is the worse one; write the same on every broker"
        unclear += (NotUnderstood(where=name, text=text, why=why, name=name),)
    value = None if None in slots and values[0] == default else values[0]
    return Chosen(value, is_known=True, differing=differing, unclear=unclear)

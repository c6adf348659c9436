"""Shapes of network partitions, as digraphs of who may reach whom.

Nodes are the brokers, the controller and all clients together. An edge says that messages from its tail arrive at its
head; a missing edge is a cut link. A shape is drawn around an anchor, the brokers that the fault's role resolved to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from itertools import product
from typing import Final

import networkx as nx

from nemesis.cluster import CLIENTS, CONTROLLER, Link

Nodes = Sequence[int]


class Shape(StrEnum):
    """Every shape. "Cut" is both ways unless the text names a direction; clients are spared unless they are named."""

    ISOLATE = "isolate"
    ISOLATE_ALSO_FROM_CLIENTS = "isolate-also-from-clients"
    FROM_BROKERS = "from-brokers"
    FROM_CONTROLLER = "from-controller"
    FROM_CLIENTS = "from-clients"
    NO_FETCH = "no-fetch"
    DEAF = "deaf"
    MUTE = "mute"
    NO_HEARTBEAT = "no-heartbeat"
    MUTE_TO_CLIENTS = "mute-to-clients"
    HALVES = "halves"
    BRIDGE = "bridge"
    RING = "ring"


def everybody_reaches_everybody(brokers: Nodes) -> nx.DiGraph:
    """The healthy network."""
    return nx.complete_graph([*brokers, CONTROLLER, CLIENTS], create_using=nx.DiGraph)


def cut_links(graph: nx.DiGraph) -> frozenset[Link]:
    """The links that ``graph`` lacks."""
    return frozenset(Link(*edge) for edge in nx.complement(graph).edges)


def links_of(shape: Shape, brokers: Nodes, anchor: Nodes) -> frozenset[Link]:
    """What has to be cut so that the network of ``brokers`` takes ``shape`` around ``anchor``."""
    return cut_links(SHAPES[shape](brokers, anchor))


def every_link(brokers: Nodes) -> frozenset[Link]:
    """All links there are."""
    return frozenset(Link(*edge) for edge in everybody_reaches_everybody(brokers).edges)


def _without(brokers: Nodes, cuts: Iterable[tuple[int, int]]) -> nx.DiGraph:
    graph = everybody_reaches_everybody(brokers)
    graph.remove_edges_from(list(cuts))
    return graph


def _both_ways(left: Collection[int], right: Collection[int]) -> list[tuple[int, int]]:
    return [*product(left, right), *product(right, left)]


def _others(brokers: Nodes, anchor: Nodes) -> list[int]:
    return [broker for broker in brokers if broker not in anchor]


def _isolate(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """The anchor reaches clients only: a leader becomes a zombie that still takes writes."""
    return _without(brokers, _both_ways(anchor, [*_others(brokers, anchor), CONTROLLER]))


def _isolate_also_from_clients(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    return _without(brokers, _both_ways(anchor, [*_others(brokers, anchor), CONTROLLER, CLIENTS]))


def _from_brokers(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """Replication stops, sessions with the controller stay."""
    return _without(brokers, _both_ways(anchor, _others(brokers, anchor)))


def _from_controller(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """Replication goes on, the session expires."""
    return _without(brokers, _both_ways(anchor, [CONTROLLER]))


def _from_clients(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    return _without(brokers, _both_ways(anchor, [CLIENTS]))


def _no_fetch(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """One way: the others' requests, fetches above all, never arrive at the anchor."""
    return _without(brokers, product(_others(brokers, anchor), anchor))


def _deaf(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """One way: the anchor hears neither brokers nor controller, and is heard."""
    return _without(brokers, product([*_others(brokers, anchor), CONTROLLER], anchor))


def _mute(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """One way: the anchor hears brokers and controller, and is not heard."""
    return _without(brokers, product(anchor, [*_others(brokers, anchor), CONTROLLER]))


def _no_heartbeat(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """One link each: the controller does not hear the anchor."""
    return _without(brokers, product(anchor, [CONTROLLER]))


def _mute_to_clients(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """One way: what clients ask of the anchor arrives and is done, its answers do not."""
    return _without(brokers, product(anchor, [CLIENTS]))


def _circle(brokers: Nodes, anchor: Nodes) -> list[int]:
    """The brokers in a circle, the anchor's first one first."""
    ordered = sorted(brokers)
    start = ordered.index(anchor[0])
    return ordered[start:] + ordered[:start]


def _halves(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """Two halves, the smaller one around the anchor; the controller stays with the larger."""
    circle = _circle(brokers, anchor)
    small, large = circle[: len(circle) // 2], circle[len(circle) // 2 :]
    return _without(brokers, _both_ways(small, [*large, CONTROLLER]))


def _bridge(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """Two halves that meet in the anchor only; everybody reaches the controller."""
    _, *rest = _circle(brokers, anchor)
    return _without(brokers, _both_ways(rest[: len(rest) // 2], rest[len(rest) // 2 :]))


def _ring(brokers: Nodes, anchor: Nodes) -> nx.DiGraph:
    """Every broker hears a majority of brokers, itself included, and no two hear the same one.

    A majority is a stretch of the circle around its broker; where it is even (two of three) the cuts are one-way.
    """
    circle = _circle(brokers, anchor)
    size, majority = len(circle), len(circle) // 2 + 1
    cuts = []
    for place, listener in enumerate(circle):
        first = place - (majority - 1) // 2
        heard = {circle[(first + step) % size] for step in range(majority)}
        cuts += [(speaker, listener) for speaker in circle if speaker not in heard]
    return _without(brokers, cuts)


SHAPES: Final[dict[Shape, Callable[[Nodes, Nodes], nx.DiGraph]]] = {
    Shape.ISOLATE: _isolate,
    Shape.ISOLATE_ALSO_FROM_CLIENTS: _isolate_also_from_clients,
    Shape.FROM_BROKERS: _from_brokers,
    Shape.FROM_CONTROLLER: _from_controller,
    Shape.FROM_CLIENTS: _from_clients,
    Shape.NO_FETCH: _no_fetch,
    Shape.DEAF: _deaf,
    Shape.MUTE: _mute,
    Shape.NO_HEARTBEAT: _no_heartbeat,
    Shape.MUTE_TO_CLIENTS: _mute_to_clients,
    Shape.HALVES: _halves,
    Shape.BRIDGE: _bridge,
    Shape.RING: _ring,
}

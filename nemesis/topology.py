"""Shapes of network partitions, as the links that each of them cuts.

Nodes are the brokers, the controller and all clients together. A shape is drawn around an anchor, the brokers that the
fault's role resolved to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from itertools import permutations, product
from typing import Final

from nemesis.cluster import CLIENTS, CONTROLLER, Link

Nodes = Sequence[int]
#: Pairs of nodes, source and target, between which nothing arrives.
Cuts = Iterable[tuple[int, int]]


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


def links_of(shape: Shape, brokers: Nodes, anchor: Nodes) -> frozenset[Link]:
    """Name the links whose cut gives ``brokers`` the ``shape`` around ``anchor``; clients are one node."""
    return frozenset(Link(*cut) for cut in SHAPES[shape](brokers, anchor))


def every_link(brokers: Nodes) -> frozenset[Link]:
    """All links that there are."""
    return frozenset(Link(*pair) for pair in permutations([*brokers, CONTROLLER, CLIENTS], 2))


def _both_ways(left: Collection[int], right: Collection[int]) -> Cuts:
    return [*product(left, right), *product(right, left)]


def _others(brokers: Nodes, anchor: Nodes) -> list[int]:
    return [broker for broker in brokers if broker not in anchor]


def _peers(brokers: Nodes, anchor: Nodes) -> list[int]:
    """The other brokers, and the controller."""
    return [*_others(brokers, anchor), CONTROLLER]


def _circle(brokers: Nodes, anchor: Nodes) -> list[int]:
    """The brokers in a circle, the anchor's first one first."""
    ordered = sorted(brokers)
    start = ordered.index(anchor[0])
    return ordered[start:] + ordered[:start]


def _halves(brokers: Nodes, anchor: Nodes) -> Cuts:
    """Two halves, the smaller one around the anchor; the controller stays with the larger."""
    circle = _circle(brokers, anchor)
    small, large = circle[: len(circle) // 2], circle[len(circle) // 2 :]
    return _both_ways(small, [*large, CONTROLLER])


def _bridge(brokers: Nodes, anchor: Nodes) -> Cuts:
    """Two halves that meet in the anchor only; everybody reaches the controller."""
    _, *rest = _circle(brokers, anchor)
    return _both_ways(rest[: len(rest) // 2], rest[len(rest) // 2 :])


def _ring(brokers: Nodes, anchor: Nodes) -> Cuts:
    """Every broker hears a majority of brokers, itself included, and no two hear the same one.

    A majority is a stretch of the circle around its broker; where it is even (two of three) the cuts are one-way.
    """
    circle = _circle(brokers, anchor)
    size, majority = len(circle), len(circle) // 2 + 1
    for turn, listener in enumerate(circle):
        first = turn - (majority - 1) // 2
        heard = {circle[(first + step) % size] for step in range(majority)}
        yield from ((speaker, listener) for speaker in circle if speaker not in heard)


#: The links that each shape cuts in a network of ``brokers`` around ``anchor``.
SHAPES: Final[dict[Shape, Callable[[Nodes, Nodes], Cuts]]] = {
    # The anchor reaches clients only: a leader becomes a zombie that still takes writes.
    Shape.ISOLATE: lambda brokers, anchor: _both_ways(anchor, _peers(brokers, anchor)),
    Shape.ISOLATE_ALSO_FROM_CLIENTS: lambda brokers, anchor: _both_ways(anchor, [*_peers(brokers, anchor), CLIENTS]),
    # Replication stops, sessions with the controller stay.
    Shape.FROM_BROKERS: lambda brokers, anchor: _both_ways(anchor, _others(brokers, anchor)),
    # Replication goes on, the session expires.
    Shape.FROM_CONTROLLER: lambda _, anchor: _both_ways(anchor, [CONTROLLER]),
    Shape.FROM_CLIENTS: lambda _, anchor: _both_ways(anchor, [CLIENTS]),
    # One way: the others' requests, fetches above all, never arrive at the anchor.
    Shape.NO_FETCH: lambda brokers, anchor: product(_others(brokers, anchor), anchor),
    # One way: the anchor hears neither brokers nor controller, and is heard.
    Shape.DEAF: lambda brokers, anchor: product(_peers(brokers, anchor), anchor),
    # One way: the anchor hears brokers and controller, and is not heard.
    Shape.MUTE: lambda brokers, anchor: product(anchor, _peers(brokers, anchor)),
    # One link each: the controller does not hear the anchor.
    Shape.NO_HEARTBEAT: lambda _, anchor: product(anchor, [CONTROLLER]),
    # One way: what clients ask of the anchor arrives and is done, its answers do not arrive.
    Shape.MUTE_TO_CLIENTS: lambda _, anchor: product(anchor, [CLIENTS]),
    Shape.HALVES: _halves,
    Shape.BRIDGE: _bridge,
    Shape.RING: _ring,
}

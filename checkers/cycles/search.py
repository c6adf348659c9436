"""Shortest cycles among the few operations that are left, with networkx."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import networkx as nx

from checkers.anomalies.cycles import G0, G1C, REALTIME, Cycle, CycleStep
from checkers.columns.log_rows import EventPlace
from checkers.cycles.edges import Dependency

#: Starting points tried in one component; beyond it the cycle found may not be the shortest.
STARTS_MAX: Final = 500


class _Core:
    """The graph of one history's suspects. Nodes are event indexes."""

    def __init__(self, steps: Sequence[Dependency]) -> None:
        self.began: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.ww, self.all, self.layered = nx.DiGraph(), nx.DiGraph(), nx.DiGraph()
        self.steps: dict[tuple[int, int, str], CycleStep] = {}
        for dependency in steps:
            a, b = dependency.a.event, dependency.b.event
            for index, begin, end in (dependency.a, dependency.b):
                self.began[index], self.ended[index] = begin, end
            self.steps.setdefault((a, b, dependency.step.type), dependency.step)
            self.all.add_edge(a, b)
            if dependency.step.type == "ww":
                self.ww.add_edge(a, b)
                self.layered.add_edges_from([((a, 0), (b, 0)), ((a, 1), (b, 1))])
            else:
                self.layered.add_edges_from([((a, 0), (b, 1)), ((a, 1), (b, 1))])

    def path(self, start: int, end: int, *, reads: bool) -> list[int] | None:
        """A shortest path: with ``reads`` at least one step is a read, without it no step is."""
        graph, source, target = (self.layered, (start, 0), (end, 1)) if reads else (self.ww, start, end)
        try:
            nodes = nx.shortest_path(graph, source, target)
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            return None
        return [node[0] for node in nodes] if reads else list(nodes)


def find_cycles(steps: Iterable[Dependency]) -> dict[str, list[Cycle]]:
    """Cycles of one history, by anomaly: a shortest one for each place that has cycles.

    ``steps`` are dependencies between suspects as :func:`checkers.cycles.edges.among` spells them out.
    """
    core = _Core(list(steps))
    by_anomaly: dict[str, list[Cycle]] = {}
    for reads, name in ((False, G0), (True, G1C)):
        cycles = _data_cycles(core, reads=reads)
        realtime = _realtime_cycles(core, reads=reads)
        for anomaly, paths in ((name, cycles), (name + REALTIME, realtime)):
            if paths:
                by_anomaly[anomaly] = [_finding(core, path, anomaly) for path in sorted(paths, key=len)]
    return by_anomaly


def _data_cycles(core: _Core, *, reads: bool) -> list[list[int]]:
    """A shortest cycle of each strongly connected component: a path whose last node leads to the first."""
    graph = core.all if reads else core.ww
    shortest = []
    for component in nx.strongly_connected_components(graph):
        if len(component) < 2:
            continue
        candidates = []
        for node in sorted(component)[:STARTS_MAX]:
            path = core.path(node, node, reads=True) if reads else _around(core.ww, node, component)
            if path:
                candidates.append(path[:-1] if reads else path)
        if candidates:
            shortest.append(min(candidates, key=len))
    return shortest


def _around(graph: nx.DiGraph, node: int, component: set[int]) -> list[int] | None:
    """A shortest way from ``node`` back to itself, without the return."""
    inside = graph.subgraph(component)
    ways = [[node, *nx.shortest_path(inside, following, node)][:-1] for following in inside.successors(node)]
    return min(ways, key=len) if ways else None


def _realtime_cycles(core: _Core, *, reads: bool) -> list[list[int]]:
    """Paths whose last operation was acknowledged before their first began; one for each stretch of time they span."""
    candidates: list[tuple[int, int, list[int]]] = []
    graph = core.all if reads else core.ww
    late = sorted((node for node in graph if graph.out_degree(node)), key=lambda n: -core.began[n])
    for start in late[:STARTS_MAX]:
        reachable = nx.descendants(graph, start)
        for end in sorted(n for n in reachable if core.ended[n] < core.began[start]):
            path = core.path(start, end, reads=reads)
            if path:
                candidates.append((core.ended[end], core.began[start], path))
    return _shortest_by_stretch(candidates)


def _shortest_by_stretch(candidates: list[tuple[int, int, list[int]]]) -> list[list[int]]:
    """The latest of the shortest paths among candidates (from, to, path) whose spans of time overlap."""
    shortest: list[list[int]] = []
    reach = -1
    for begin, end, path in sorted(candidates, key=lambda candidate: candidate[:2]):
        if begin > reach or not shortest:
            shortest.append(path)
        elif len(path) <= len(shortest[-1]):
            shortest[-1] = path
        reach = max(reach, end)
    return shortest


def _finding(core: _Core, path: list[int], anomaly: str) -> Cycle:
    closed = [*path, path[0]]
    reads = anomaly.startswith(G1C)
    steps = []
    for number, (a, b) in enumerate(pairwise(closed)):
        if anomaly.endswith(REALTIME) and number == len(path) - 1:
            steps.append(CycleStep(type="realtime", a=EventPlace(a), b=EventPlace(core.began[b])))
        else:
            kinds = ("wr", "ww") if reads else ("ww",)
            steps.append(next(core.steps[a, b, kind] for kind in kinds if (a, b, kind) in core.steps))
    return Cycle(cycle=[EventPlace(node) for node in closed], steps=steps, type=anomaly)

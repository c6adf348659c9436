"""Links that are cut on the wire: which are cut, and how many packets each has dropped since.

The rules stand where the nodes live, in namespaces or on machines; who owns those says how rules are replaced and their
counters read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from harness.hosts import nft
from harness.hosts.links import links_at
from nemesis.cluster import Evidence, Link


class WireLinks:
    """Cuts and heals.

    ``ends`` are all who have an address (nodes, and all clients as one), ``nodes`` those of them where rules can stand.
    ``enforce(node, links)`` replaces the rules of a node, whose counters then begin at 0; ``count(node)`` reads them.
    """

    def __init__(
        self,
        ends: Collection[int],
        nodes: Collection[int],
        enforce: Callable[[int, Sequence[Link]], None],
        count: Callable[[int], Mapping[Link, int]],
    ) -> None:
        self._ends = ends
        self._nodes = nodes
        self._enforce = enforce
        self._count = count
        self._cut: set[Link] = set()
        self._dropped: dict[Link, int] = {}

    def on_the_wire(self, links: Collection[Link]) -> set[Link]:
        """Those of ``links`` whose ends both have addresses; single clients have none of their own."""
        return {link for link in links if link.source in self._ends and link.target in self._ends}

    def cut(self, links: Collection[Link]) -> Evidence:
        """Cut what is on the wire. Evidence: ``dropped`` packets by link since it was cut; none where none is."""
        new = self.on_the_wire(links) - self._cut
        self._cut |= new
        self._dropped.update(dict.fromkeys(new, 0))
        return self._replace(links)

    def heal(self, links: Collection[Link]) -> Evidence:
        """Heal what is on the wire. Evidence: as of :meth:`cut`."""
        self._cut.difference_update(links)
        return self._replace(links)

    def _replace(self, links: Collection[Link]) -> Evidence:
        """Bring the rules of every node concerned up to date; counts are kept over the replacement."""
        wire = self.on_the_wire(links)
        for node in sorted({nft.place(link, self._nodes) for link in wire}):
            for link, packets in self._count(node).items():
                self._dropped[link] = self._dropped.get(link, 0) + packets
            self._enforce(node, [link for link in links_at(self._cut, node) if nft.place(link, self._nodes) == node])
        dropped = {f"{s}>{t}": self._dropped.get(Link(s, t), 0) for s, t in sorted(wire)}
        return {"dropped": dropped} if dropped else {}

"""Loses packets between nodes by chance, and counts them: nftables draws a number for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from harness.worlds.hosts.cut_links import DroppedLinks
from nemesis.cluster import Link, Packets
from nemesis.evidence import LinksCut, PacketsLost

#: A table of its own, because that of cut links is replaced as a whole.
TABLE: Final = "ackproof_lossy"
#: A request and its answer of one packet each are both in time in 56 % of all cases; else TCP waits 0.2 s and longer.
LOST_PCT: Final = 25


class PacketLoss(Packets):
    """Loses :data:`LOST_PCT` of the packets on links of a host whose nodes have addresses of their own.

    ``nodes``, their ``addresses`` and ``nft`` are as of :class:`harness.worlds.hosts.cut_links.DroppedLinks`.
    ``single_links`` names the links of single nodes that links mean.
    """

    def __init__(
        self,
        nodes: Collection[int],
        addresses: Mapping[int, str],
        nft: Callable[[int, Sequence[str], str], str],
        single_links: Callable[[Collection[Link]], Collection[Link]],
    ) -> None:
        self._links = DroppedLinks(nodes, lambda _: addresses, nft, table=TABLE, lost_pct=LOST_PCT)
        self._single_links = single_links

    def lose(self, links: Collection[Link]) -> PacketsLost:
        """Lose packets on these links."""
        counted = self._links.cut(self._single_links(links), ())
        return {"lost_pct": LOST_PCT, **counted} if counted else {}

    def spare(self, links: Collection[Link]) -> LinksCut:
        """Lose no more on these links."""
        return self._links.heal(self._single_links(links), ())

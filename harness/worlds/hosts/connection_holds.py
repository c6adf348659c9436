"""Holds TCP connections that are open, so that what was sent on them arrives late.

A rule in the namespace of the end that was called drops what the caller sends on one connection, known by the caller's
address and port. Neither end is told: the caller's kernel sends the same bytes again, later and later, also after the
caller has closed the connection (Linux does so for about 100 s). Once the rule is gone they arrive, at the latest
after as long again as they were held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from harness.worlds.hosts.cut_links import REPLACE, dropped_packets, replacement
from nemesis.cluster import CLIENTS, Connections, Link, link_name
from nemesis.evidence import ConnectionsHeld, LinksCut

#: A table of its own, because that of cut links is replaced as a whole.
TABLE: Final = "ackproof_held"
_OPEN: Final = ("ss", "--no-header", "--tcp", "--numeric", "state", "established")
_MAPPED: Final = "::ffff:"
#: The address and the port of one end.
End = tuple[str, int]


class ConnectionHolds(Connections):
    """Holds connections between the nodes of a host, and of its clients to them.

    ``addresses`` are those of nodes and clients, all nodes listen on ``port``; ``run_at(node, command, text)`` answers
    what a command in the node's namespace writes. ``single_links`` names the links of single nodes that links mean.
    """

    def __init__(
        self,
        addresses: Mapping[int, str],
        port: int,
        run_at: Callable[[int, Sequence[str], str], str],
        single_links: Callable[[Collection[Link]], Collection[Link]],
    ) -> None:
        self._addresses = addresses
        self._port = port
        self._run_at = run_at
        self._single_links = single_links
        self._held: dict[Link, set[End]] = {}
        self._dropped: Counter[Link] = Counter()
        self._ruled: set[int] = set()

    def hold(self, links: Collection[Link]) -> ConnectionsHeld:
        """Hold the connections that are open now."""
        singles = sorted(self._single_links(links))
        calls = {node: self._calls_of(node) for node in {link.target for link in singles}}
        held = {
            link: ends
            for link in singles
            if (ends := [call for call in calls[link.target] if call[0] == self._addresses.get(link.source)])
        }
        for link, ends in held.items():
            self._held.setdefault(link, set()).update(ends)
        self._update(held)
        named = {link_name(link): [f"{host}:{port}" for host, port in ends] for link, ends in held.items()}
        return {"connections": named} if named else {}

    def deliver(self, links: Collection[Link]) -> LinksCut:
        """Remove the rules of these links."""
        ended = sorted(link for link in self._single_links(links) if self._held.pop(link, None))
        self._update(ended)
        return {"dropped": {link_name(link): self._dropped.pop(link, 0) for link in ended}} if ended else {}

    def _calls_of(self, node: int) -> list[End]:
        """The callers of the connections to ``node`` that are open; clients are never called."""
        return callers(self._run_at(node, _OPEN, ""), self._port) if node in self._addresses.keys() - {CLIENTS} else []

    def _update(self, links: Iterable[Link]) -> None:
        """Bring the rules of the called nodes up to date; counts are kept over the replacement."""
        for node in sorted({link.target for link in links}):
            if node in self._ruled:
                listing = self._run_at(node, ("nft", "--json", "list", "table", "ip", TABLE), "")
                self._dropped.update(dropped_packets(listing))
            own = {link: calls for link, calls in self._held.items() if link.target == node}
            self._run_at(node, ("nft", *REPLACE), ruleset(own, self._port))
            self._ruled.add(node)


def ruleset(held: Mapping[Link, Collection[End]], port: int) -> str:
    """The table of rules of one called node, which replaces the old one in one step; counters begin at 0."""
    rules = [
        f'ip saddr {host} tcp sport {source} tcp dport {port} counter drop comment "{link_name(link)}"'
        for link in sorted(held)
        for host, source in sorted(held[link])
    ]
    return replacement(TABLE, {"input": rules})


def callers(listing: str, port: int) -> list[End]:
    """The far ends of the connections to the own ``port``, from what ``ss`` lists of those that are open."""
    pairs = [tuple(map(_end, line.split()[2:4])) for line in listing.splitlines() if len(line.split()) >= 4]
    return sorted(far for near, far in pairs if near[1] == port)


def _end(shown: str) -> End:
    """``[::ffff:10.77.0.1]:9092`` is how the JVM's sockets show an IPv4 address."""
    host, _, port = shown.rpartition(":")
    return host.strip("[]").removeprefix(_MAPPED), int(port)

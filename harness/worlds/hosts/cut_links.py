"""Cuts links between nodes, in two ways.

*Held* links are cut by the nodes themselves: each end holds back what it would send, and drops what it would take. This
needs no rights, works for client links too (the node's end enforces them), and cuts both directions separately at the
level of messages: what TCP already delivered to a process stays held inside it until the link is healed.

*Dropped* links are cut by the kernel: nftables drops their packets, and counts them. Rules are made where the nodes
run: in a namespace, or on a machine. A link is cut where it enters its target, by a rule on the source's address. The
clients' side has no rules; packets to clients are dropped where they leave the source. A drop by the
kernel is harsher than a held message: with one direction gone, TCP's acknowledgements are gone too, so the other
direction stalls as soon as its window is full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
from typing_extensions import override

from harness.worlds.hosts import node_calls
from harness.worlds.hosts.contract import LinkCuts
from nemesis.cluster import CLIENTS, Link, link_name
from nemesis.evidence import LinksCut

#: A control request is answered in about a millisecond; two busy cores and a garbage collection stretch that.
CONTROL_LIMIT_S: Final = 1.0


def ends(links: Collection[Link], nodes: Collection[int]) -> list[int]:
    """The nodes among ``nodes`` that are an end of one of these links, in order. Clients enforce nothing."""
    return sorted({end for link in links for end in link if end in nodes and end < CLIENTS})


def links_at(links: Collection[Link], node: int) -> list[Link]:
    """The ``links`` that have ``node`` at one end, in order."""
    return sorted(link for link in links if node in link)


class HeldLinks(LinkCuts):
    """The links that nodes hold back, and the requests that make them do so. ``paths``: control sockets by node."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths
        self._cut: set[Link] = set()
        self._touched: set[Link] = set()

    def cut(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:
        """Have the running ends hold them back.

        Nothing if no node answered: then none is known to hold anything back.
        """
        self._cut.update(links)
        self._touched.update(links)
        evidence = self._request("cut", links, alive)
        return evidence if evidence["held"] else {}

    def heal(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:
        """Have the running ends deliver again; ``held`` counts what the cut had kept back."""
        self._cut.difference_update(links)
        return self._request("heal", links, alive)

    @override
    def enforced_by(self, node: int) -> list[Link]:
        return links_at(self._cut, node)

    def update(self, node: int) -> Callable[[], bool]:
        """Send the node its cuts and heals; a frozen node finds these requests first when it wakes."""
        healed = links_at(self._touched - self._cut, node)
        calls: list[node_calls.NodeCall] = []
        for op, links in (("heal", healed), ("cut", self.enforced_by(node))):
            if not links:
                continue
            try:
                calls.append(node_calls.NodeCall(self._paths[node], {"op": op, "links": links}, CONTROL_LIMIT_S))
            except OSError:
                return lambda: False
        return lambda: all(_answered(call) for call in calls)

    def _request(self, op: str, links: Collection[Link], alive: Collection[int]) -> LinksCut:
        asked = {node: self._paths[node] for node in ends(links, self._paths) if node in alive}
        answers = node_calls.ask(asked, {"op": op, "links": sorted(links)}, CONTROL_LIMIT_S)
        evidence: LinksCut = {"held": {str(node): answer.get("links") for node, answer in answers.items()}}
        if silent := sorted(set(asked) - set(answers)):
            evidence["silent"] = silent
        return evidence


def _answered(call: node_calls.NodeCall) -> bool:
    try:
        return bool(call.answer().get("ok"))
    except OSError:
        return False


TABLE: Final = "ackproof"
#: Words for ``nft``: rules come on standard input.
REPLACE: Final = ("-f", "-")


class DroppedLinks(LinkCuts):
    """The links that are cut by rules, and the packets that the rules dropped on each.

    Rules are made at ``nodes``; ``addresses(node)`` are those of all nodes and of the clients as that node sees them.
    ``nft(node, words, text)`` gives the command of that name ``words`` and, on standard input, ``text``, and answers
    what it writes: the host knows how a command gets to a node's kernel. ``ports``, ``table`` and ``lost_pct`` are as
    of :func:`ruleset`. ``rest`` cuts the links with an end that has no address, such as a single client.
    """

    def __init__(
        self,
        nodes: Collection[int],
        addresses: Callable[[int], Mapping[int, str]],
        nft: Callable[[int, Sequence[str], str], str],
        *,
        ports: Mapping[int, int] | None = None,
        table: str = TABLE,
        lost_pct: int = 100,
        rest: LinkCuts | None = None,
    ) -> None:
        self._nodes = nodes
        self._addresses = addresses
        self._nft = nft
        self._ports = ports
        self._table = table
        self._lost_pct = lost_pct
        self._rest = rest or LinkCuts()
        self._ruled: set[int] = set()
        self._cut: set[Link] = set()
        self._dropped: dict[Link, int] = {}

    def addressed(self, links: Collection[Link]) -> set[Link]:
        """The links whose two ends have addresses; single clients have no address of their own."""
        return {link for link in links if all(end in self._nodes or end == CLIENTS for end in link)}

    def cut(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:
        """Cut by rules, or by ``rest``."""
        new = self.addressed(links) - self._cut
        self._cut |= new
        self._dropped.update(dict.fromkeys(new, 0))
        rest = self._others(links)
        return {**self._update(links), **(self._rest.cut(rest, alive) if rest else {})}

    def heal(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:
        """Remove the rules of these links."""
        self._cut.difference_update(links)
        rest = self._others(links)
        return {**self._update(links), **(self._rest.heal(rest, alive) if rest else {})}

    def enforced_by(self, node: int) -> list[Link]:
        """The links that ``rest`` cuts: rules outlive processes, so a restarted node need not know them."""
        return self._rest.enforced_by(node)

    def update(self, node: int) -> Callable[[], bool]:
        """Tell the node of the links that ``rest`` cuts; rules need no help of the node."""
        return self._rest.update(node)

    def _others(self, links: Collection[Link]) -> list[Link]:
        return sorted(set(links) - self.addressed(links))

    def _update(self, links: Collection[Link]) -> LinksCut:
        """Bring the rules of every node concerned up to date; counts are kept over the replacement."""
        addressed = self.addressed(links)
        for node in sorted({self._enforcer(link) for link in addressed}):
            listing = self._nft(node, ("--json", "list", "table", "ip", self._table), "") if node in self._ruled else ""
            for link, packets in dropped_packets(listing).items():
                self._dropped[link] = self._dropped.get(link, 0) + packets
            own = [link for link in links_at(self._cut, node) if self._enforcer(link) == node]
            if own or node in self._ruled:
                addresses = self._addresses(node)
                rules = ruleset(node, own, addresses, ports=self._ports, table=self._table, lost_pct=self._lost_pct)
                self._nft(node, REPLACE, rules)
                self._ruled.add(node)
        dropped = {link_name(link): self._dropped.get(link, 0) for link in sorted(addressed)}
        return {"dropped": dropped} if dropped else {}

    def _enforcer(self, link: Link) -> int:
        """The node in whose namespace, or on whose machine, a link is cut."""
        return link.target if link.target in self._nodes else link.source


def ruleset(
    node: int,
    links: Collection[Link],
    addresses: Mapping[int, str],
    *,
    ports: Mapping[int, int] | None = None,
    table: str = TABLE,
    lost_pct: int = 100,
) -> str:
    """The table of rules of one node, which replaces the old one in one step; counters begin at 0.

    ``links`` are those that are cut at ``node``; ``addresses`` holds both ends of each. With ``ports``, only
    TCP to and from these ports of the nodes is dropped, and everything else between the two (SSH) goes on. With
    ``lost_pct`` below 100 each packet is dropped by that chance.
    """
    chance = "" if lost_pct == 100 else f"numgen random mod 100 < {lost_pct} "
    entering: list[str] = []
    leaving: list[str] = []
    for link in sorted(links):
        source, target = link
        address = f"ip saddr {addresses[source]}" if target == node else f"ip daddr {addresses[target]}"
        dropping = f'{chance}counter drop comment "{link_name(link)}"'
        rules = [f"{address} {match}{dropping}" for match in _matches(link, ports)]
        (entering if target == node else leaving).extend(rules)
    return replacement(table, {"input": entering, "output": leaving})


def replacement(table: str, chains: Mapping[str, list[str]]) -> str:
    """The text that replaces a table by one with these rules, by the hook of the kernel where they are looked at."""
    # Naming the table first makes its deletion succeed where it does not exist yet.
    lines = [f"table ip {table}", f"delete table ip {table}", f"table ip {table} {{"]
    for hook, rules in chains.items():
        lines += [f"  chain {hook} {{", f"    type filter hook {hook} priority filter; policy accept;"]
        lines += [*(f"    {rule}" for rule in rules), "  }"]
    return "\n".join([*lines, "}", ""])


def _matches(link: Link, ports: Mapping[int, int] | None) -> list[str]:
    """Conditions of rules, with ports: requests to the target's port, and answers from the source's."""
    if ports is None:
        return [""]
    to = [f"tcp dport {ports[link.target]} "] if link.target in ports else []
    return to + ([f"tcp sport {ports[link.source]} "] if link.source in ports else [])


def dropped_packets(listing: str) -> dict[Link, int]:
    """The packets that the rules of each link dropped, from the output of ``nft --json list table`` (may be empty)."""
    dropped: dict[Link, int] = {}
    for item in msgspec.json.decode(listing)["nftables"] if listing else ():
        rule: dict[str, Any] = item.get("rule", {})
        if "comment" not in rule:
            continue
        source, target = rule["comment"].split(">")
        counters = [part["counter"]["packets"] for part in rule["expr"] if "counter" in part]
        link = Link(int(source), int(target))
        dropped[link] = dropped.get(link, 0) + sum(counters)
    return dropped

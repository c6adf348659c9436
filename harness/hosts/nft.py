"""Rule text of nftables for cut links, and the reading of its counters. No effects here.

Rules stand where the nodes live: in a namespace, or on a machine. A link is cut where it enters its target: there is
dropped what comes from the source's address. Where clients are, no rules stand; what goes to them is dropped where it
leaves the source. A drop on the wire is harsher than a held message: with one direction gone, TCP's
acknowledgements are gone too, so the other direction stalls as soon as its window is full.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from nemesis.cluster import Link

TABLE: Final = "ackproof"


def place(link: Link, nodes: Collection[int]) -> int:
    """The node in whose namespace this link is cut."""
    return link.target if link.target in nodes else link.source


def ruleset(
    node: int,
    links: Collection[Link],
    addresses: Mapping[int, str],
    *,
    ports: Mapping[int, int] | None = None,
    table: str = TABLE,
) -> str:
    """The whole table of one node, which replaces the one before it in one step; counters begin at 0.

    ``links`` are those whose :func:`place` is ``node``; ``addresses`` holds both ends of each. With ``ports``, only
    TCP to and from these ports of the nodes is dropped, and everything else between the two (SSH) goes on.
    """
    entering = [
        f'ip saddr {addresses[s]} {match}counter drop comment "{s}>{t}"'
        for s, t in sorted(links)
        for match in _matches(Link(s, t), ports)
        if t == node
    ]
    leaving = [
        f'ip daddr {addresses[t]} {match}counter drop comment "{s}>{t}"'
        for s, t in sorted(links)
        for match in _matches(Link(s, t), ports)
        if t != node
    ]
    return "\n".join(
        [
            # Naming the table first makes its deletion succeed where there is none yet.
            f"table ip {table}",
            f"delete table ip {table}",
            f"table ip {table} {{",
            *_chain("input", entering),
            *_chain("output", leaving),
            "}",
            "",
        ]
    )


def _matches(link: Link, ports: Mapping[int, int] | None) -> list[str]:
    """Where only nodes' ports are meant: requests to the target's, and answers from the source's."""
    if ports is None:
        return [""]
    to = [f"tcp dport {ports[link.target]} "] if link.target in ports else []
    return to + ([f"tcp sport {ports[link.source]} "] if link.source in ports else [])


def _chain(hook: str, rules: list[str]) -> list[str]:
    head = [f"  chain {hook} {{", f"    type filter hook {hook} priority filter; policy accept;"]
    return [*head, *(f"    {rule}" for rule in rules), "  }"]


def dropped_packets(listing: bytes) -> dict[Link, int]:
    """Packets that the rules of each link dropped, from ``nft --json list table``."""
    dropped: dict[Link, int] = {}
    for item in msgspec.json.decode(listing)["nftables"]:
        rule: dict[str, Any] = item.get("rule", {})
        if "comment" not in rule:
            continue
        source, target = rule["comment"].split(">")
        counters = [part["counter"]["packets"] for part in rule["expr"] if "counter" in part]
        link = Link(int(source), int(target))
        dropped[link] = dropped.get(link, 0) + sum(counters)
    return dropped

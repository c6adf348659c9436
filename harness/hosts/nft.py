"""Rule text of nftables for cut links, and the reading of its counters. No effects here.

Every node has a network namespace, so the table's name needs no run in it. A link is cut where it enters its target:
the target's namespace drops what comes from the source's address. Clients have no namespace; what goes to them is
dropped where it leaves the source. A drop on the wire is harsher than a held message: with one direction gone, TCP's
acknowledgements are gone too, so the other direction stalls as soon as its window is full.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from nemesis.contract import Link

TABLE: Final = "ackproof"


def place(link: Link, nodes: Collection[int]) -> int:
    """The node in whose namespace this link is cut."""
    return link.target if link.target in nodes else link.source


def ruleset(node: int, links: Collection[Link], addresses: Mapping[int, str]) -> str:
    """The whole table of one node, which replaces the one before it in one step; counters begin at 0.

    ``links`` are those whose :func:`place` is ``node``; ``addresses`` holds both ends of each.
    """
    entering = [f'ip saddr {addresses[s]} counter drop comment "{s}>{t}"' for s, t in sorted(links) if t == node]
    leaving = [f'ip daddr {addresses[t]} counter drop comment "{s}>{t}"' for s, t in sorted(links) if t != node]
    return "\n".join(
        [
            # Naming the table first makes its deletion succeed where there is none yet.
            f"table ip {TABLE}",
            f"delete table ip {TABLE}",
            f"table ip {TABLE} {{",
            *_chain("input", entering),
            *_chain("output", leaving),
            "}",
            "",
        ]
    )


def _chain(hook: str, rules: list[str]) -> list[str]:
    head = [f"  chain {hook} {{", f"    type filter hook {hook} priority filter; policy accept;"]
    return [*head, *(f"    {rule}" for rule in rules), "  }"]


def dropped_packets(listing: bytes) -> dict[Link, int]:
    """Packets that each rule dropped, from ``nft --json list table``."""
    dropped: dict[Link, int] = {}
    for item in msgspec.json.decode(listing)["nftables"]:
        rule: dict[str, Any] = item.get("rule", {})
        if "comment" not in rule:
            continue
        source, target = rule["comment"].split(">")
        counters = [part["counter"]["packets"] for part in rule["expr"] if "counter" in part]
        dropped[Link(int(source), int(target))] = sum(counters)
    return dropped

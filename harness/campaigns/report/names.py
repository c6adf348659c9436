"""Names that the report gives to what a run's files number: nodes, writes, links, faults and moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nemesis import cluster
from nemesis.cluster import CLIENTS, CONTROLLER
from nemesis.receipts import Receipt

#: All links of a cluster of three brokers, its controller and the clients.
LINKS_MAX: Final = 10


def moment(time_us: int) -> str:
    """A moment of the run's clock, in seconds with milliseconds."""
    return f"{time_us / 1e6:.3f} s"


def node_name(node: int) -> str:
    """A node by its role and number; the first controller, mostly the only one, without a number."""
    return "the controller" if node == CONTROLLER else cluster.node_name(node)


def node_names(nodes: Sequence[int]) -> str:
    """Several nodes, one after the other."""
    return ", ".join(map(node_name, nodes))


def replica_set(nodes: Sequence[int]) -> str:
    """Brokers in braces, as a set: ``{0, 1, 2}``."""
    return "{" + ", ".join(map(str, nodes)) + "}"


def fault_name(receipt: Receipt) -> str:
    """A fault by its kind, the nodes that it hit, and the role that they had, which of the clients says all."""
    kind = f"{receipt.fault} ({receipt.shape})" if receipt.shape else receipt.fault
    role = f"[{receipt.role}]" if receipt.role else ""
    nodes = [node for node in receipt.targets if node < CLIENTS]
    return " ".join(part for part in (kind, node_names(nodes), role) if part)


def link_names(receipt: Receipt) -> str:
    """The links that a fault cut: both directions with a dash, one direction with an arrow."""
    links = {(link[0], link[1]) for link in receipt.links}
    both = [f"{node_name(a)} – {node_name(b)}" for a, b in sorted(links) if (b, a) in links and a < b]
    one_way = [f"{node_name(a)} → {node_name(b)}" for a, b in sorted(links) if (b, a) not in links]
    names = both + one_way
    return ", ".join([*names[:LINKS_MAX], *(["…"] if len(names) > LINKS_MAX else [])])

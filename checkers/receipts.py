"""What the receipts of a run's faults say, reduced to what a promise depends on.

A receipt stands in the history as JSON and reaches the checkers as a mapping
(:attr:`checkers.verdict.Verdict.faults`), so an old history can be judged by newer checkers. Only what is named here
is read; everything else in a receipt is for the reader of the report. A fault without evidence that it took effect
does not count: no receipt, no claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from nemesis.contract import CLIENTS

#: Kinds of fault that take bytes from a replica which it had already counted as its own. SIGKILL is not one of them:
#: what the operating system holds survives the process. A later kind that destroys copies is one word more here.
DESTROYING = frozenset({"power-loss", "wipe-disk", "corrupt-record"})


class FaultSeen(msgspec.Struct, frozen=True):
    """One fault that took effect.

    Attributes:
        kind: the fault's name ("kill", "pause", "partition", ...).
        nodes: brokers and the controller that were killed or frozen, and every end of a cut link that is not a client.
        clients_only: True where only links between clients and brokers were cut: the brokers noticed nothing.
    """

    kind: str
    nodes: tuple[int, ...] = ()
    clients_only: bool = False


def faults_seen(receipts: Iterable[Mapping[str, Any]]) -> tuple[FaultSeen, ...]:
    """The faults that took effect, in the receipts' order."""
    return tuple(_fault(receipt) for receipt in receipts if took_effect(receipt))


def took_effect(receipt: Mapping[str, Any]) -> bool:
    """Whether the receipt carries evidence. An explicit ``took_effect`` decides; else evidence must not be empty."""
    if "took_effect" in receipt:
        return bool(receipt["took_effect"])
    return bool(receipt.get("evidence"))


def kind_of(receipt: Mapping[str, Any]) -> str:
    """The fault's name as the receipt gives it, "fault" where it gives none."""
    return str(receipt.get("kind") or receipt.get("fault") or "fault")


def links_of(receipt: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """The cut links as (source, target)."""
    return tuple((int(source), int(target)) for source, target in receipt.get("links") or ())


def nodes_of(receipt: Mapping[str, Any]) -> tuple[int, ...]:
    """Every node that the receipt names, clients included, ascending."""
    named = [int(node) for node in receipt.get("nodes") or ()]
    if receipt.get("node") is not None:
        named.append(int(receipt["node"]))
    return tuple(sorted({*named, *(end for link in links_of(receipt) for end in link)}))


def _fault(receipt: Mapping[str, Any]) -> FaultSeen:
    links = links_of(receipt)
    nodes = tuple(node for node in nodes_of(receipt) if node < CLIENTS)
    return FaultSeen(
        kind=kind_of(receipt),
        nodes=nodes,
        clients_only=bool(links) and all(max(link) >= CLIENTS for link in links),
    )

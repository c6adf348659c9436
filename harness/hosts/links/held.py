"""Links that are cut by the nodes themselves: each end holds back what it would send, and drops what it would take.

This needs no rights, works for client links too (the node's end enforces them), and cuts both directions separately at
the level of messages: what TCP already delivered to a process stays held inside it until the link is healed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from harness.hosts import control
from nemesis.cluster import CLIENTS, Evidence, Link

#: A control request is answered in about a millisecond; two busy cores and a garbage collection stretch that.
CONTROL_LIMIT_S: Final = 1.0


def ends(links: Collection[Link], nodes: Collection[int]) -> list[int]:
    """The nodes among ``nodes`` that are an end of one of these links, in order. Clients enforce nothing."""
    return sorted({end for link in links for end in link if end in nodes and end < CLIENTS})


def links_at(links: Collection[Link], node: int) -> list[Link]:
    """Those of ``links`` that have ``node`` at one end, in order."""
    return sorted(link for link in links if node in link)


def link_name(link: Link) -> str:
    """A link as evidence and comments of rules name it."""
    return f"{link.source}>{link.target}"


class HeldLinks:
    """The links that nodes hold back, and the requests that make them do so. ``paths``: control sockets by node."""

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths
        self._cut: set[Link] = set()
        self._touched: set[Link] = set()

    def cut(self, links: Collection[Link], alive: Collection[int]) -> Evidence:
        """Have the living ends hold them back. Evidence: ``held`` by node, as the node answered; ``silent`` nodes.

        Nothing if nobody answered: then nobody is known to hold anything back.
        """
        self._cut.update(links)
        self._touched.update(links)
        evidence = self._request("cut", links, alive)
        return evidence if evidence["held"] else {}

    def heal(self, links: Collection[Link], alive: Collection[int]) -> Evidence:
        """Have the living ends deliver again; ``held`` counts what the cut had kept back."""
        self._cut.difference_update(links)
        return self._request("heal", links, alive)

    def at(self, node: int) -> list[Link]:
        """The cut links that this node has to enforce."""
        return links_at(self._cut, node)

    def update(self, node: int) -> Callable[[], bool]:
        """See :meth:`harness.hosts.contract.Host.update`. A frozen node finds the requests first when it wakes."""
        healed = links_at(self._touched - self._cut, node)
        calls: list[control.Call] = []
        for op, links in (("heal", healed), ("cut", self.at(node))):
            if not links:
                continue
            try:
                calls.append(control.Call(self._paths[node], {"op": op, "links": links}, CONTROL_LIMIT_S))
            except OSError:
                return lambda: False
        return lambda: all(_answered(call) for call in calls)

    def _request(self, op: str, links: Collection[Link], alive: Collection[int]) -> dict[str, Any]:
        asked = {node: self._paths[node] for node in ends(links, self._paths) if node in alive}
        answers = control.ask(asked, {"op": op, "links": sorted(links)}, CONTROL_LIMIT_S)
        evidence: dict[str, Any] = {"held": {str(node): answer.get("links") for node, answer in answers.items()}}
        if silent := sorted(set(asked) - set(answers)):
            evidence["silent"] = silent
        return evidence


def _answered(call: control.Call) -> bool:
    try:
        return bool(call.answer().get("ok"))
    except OSError:
        return False

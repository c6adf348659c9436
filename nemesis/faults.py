"""What a fault is: data that knows whom it hits, how it begins and how it ends.

A fault lives in a module of its own together with the stories it appears in; :mod:`nemesis.families` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import msgspec

from nemesis.cluster import Capability, ClusterView, Evidence, Link, Target, node_name
from nemesis.roles import Role, resolve


class Aim(msgspec.Struct, frozen=True):
    """What a fault hits: nodes, or links. Both are empty where it is impossible now, and ``impossible`` says why.

    ``partition`` names the log partition of a fault that concerns one; ``replicas`` are its brokers as the fault wants
    them, ``replicas_before`` as they were.
    """

    nodes: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    impossible: str = ""
    partition: str = ""
    replicas: tuple[int, ...] = ()
    replicas_before: tuple[int, ...] = ()


class Fault(msgspec.Struct, frozen=True, tag_field="kind"):
    """Base of all faults. ``role`` says around whom; ``needs`` which parts of a target it uses.

    ``stops_brokers`` says whether its nodes count against the budget.

    ``shows`` is what the evidence of every node holds if the fault is more than the death that it begins with.
    """

    role: Role
    needs: ClassVar[tuple[Capability, ...]] = ()
    stops_brokers: ClassVar[bool] = False
    shows: ClassVar[str] = ""

    def aim(self, view: ClusterView) -> Aim:
        """Whom it hits, the cluster being as ``view`` says."""
        raise NotImplementedError

    def begin(self, target: Target, aim: Aim) -> Evidence:
        """Do it. Evidence is by node where nodes are hit."""
        raise NotImplementedError

    def end(self, target: Target, aim: Aim) -> Evidence:
        """Undo it as far as ``aim`` says: what another fault still holds is not in it."""
        raise NotImplementedError


def aim_at_running(role: Role, view: ClusterView) -> Aim:
    """The holders of ``role`` whose process can still be killed or frozen."""
    holders = resolve(role, view)
    if not holders:
        return Aim(impossible=f"nobody is {role} now")
    running = {*view.running, *view.running_controllers}
    nodes = tuple(node for node in holders if node in running)
    return Aim(nodes=nodes) if nodes else Aim(impossible=f"{role} ({listed(holders)}) does not run now")


def by_node(act: Callable[[int], Evidence], nodes: Sequence[int]) -> Evidence:
    """Do ``act`` to every node, and collect what was observed of each; a node of which nothing was is left out."""
    observed = {str(node): act(node) for node in nodes}
    return {node: evidence for node, evidence in observed.items() if evidence}


def listed(nodes: Iterable[int]) -> str:
    """``broker 1, broker 2``."""
    return ", ".join(node_name(node) for node in nodes)

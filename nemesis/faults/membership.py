"""Nodes that leave a cluster and join it, as operators let them: one at a time, with others that stay (KIP-853)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, ClusterView, Target, require
from nemesis.evidence import Described, MembersChanged, NodeSaid
from nemesis.faults.fault import Aim
from nemesis.faults.upgrade import OperatorStep, Upgrade


class _Membership(OperatorStep, frozen=True):
    """Changes who votes, or who replicates; the process of the node runs on."""

    family: ClassVar[str] = "upgrade"
    operands: ClassVar[str] = ""
    needs: ClassVar[tuple[Capability, ...]] = (Capability.SUCCESSION,)
    spares_process: ClassVar[bool] = True
    replaces_replica: ClassVar[bool] = True

    @classmethod
    @override
    def in_words(cls, evidence: Mapping[str, MembersChanged]) -> str:
        return "; ".join(_members(seen) for seen in evidence.values())

    @override
    def is_done(self, node: int, view: ClusterView, begun: MembersChanged, seen: NodeSaid) -> bool:
        """The controller has the replicas that were asked for, and those of internal topics are in sync too."""
        assigned = begun.get("assigned", {})
        internal = [state for name, state in view.internal.items() if name in assigned]
        states = {**view.partitions, **view.internal}
        return all({*state.isr} == {*state.replicas} for state in internal) and all(
            {*states[name].replicas} == {*wanted} for name, wanted in assigned.items() if name in states
        )

    @override
    def undo(self, target: Target, aim: Aim, node: int) -> Described:
        """Undo nothing: it is over when the cluster is as was asked for."""
        return require(target.succession).describe(node)


class Leave(_Membership, frozen=True):
    """Let a node leave: a controller votes no longer, a broker's replicas go to a broker that has none of them.

    Where every other broker has a replica there is one replica less.
    """

    kind: ClassVar[str] = "leave"
    verb: ClassVar[str] = "leave"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> MembersChanged:
        return require(target.succession).leave(node)


class Join(_Membership, frozen=True):
    """Let a node that left join again: a controller votes, a broker gets its replicas back, with nothing in them."""

    kind: ClassVar[str] = "join"
    verb: ClassVar[str] = "join"

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> MembersChanged:
        return require(target.succession).join(node)


class Replace(Upgrade, frozen=True):
    """Put a new node in the place of one, with its number and nothing on its disk.

    The node is asked to end (SIGTERM). Then the cluster forgets it, if it is a broker, and the new one starts, in
    another form as an upgraded one does. It ends when every replica is in sync again.
    """

    kind: ClassVar[str] = "replace"
    verb: ClassVar[str] = "replace"
    destroys_copy: ClassVar[bool] = True
    empties_disk: ClassVar[bool] = True
    afresh: ClassVar[bool] = True


def _members(evidence: MembersChanged) -> str:
    """Say who votes now, or how many log partitions got other replicas; nothing where neither is known."""
    if "voters" in evidence:
        return f"the voters are {', '.join(map(str, evidence['voters']))}"
    return f"log partitions with other replicas: {len(evidence['assigned'])}" if "assigned" in evidence else ""

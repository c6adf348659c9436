"""Changes of who replicates a log partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from typing_extensions import override

from nemesis.cluster import Capability, ClusterView, PartitionView, Target, require
from nemesis.evidence import Reassigned
from nemesis.faults.fault import Aim, NodeFault, listed
from nemesis.roles import partition_of, resolve


class Reassign(NodeFault, frozen=True):
    """Take a log partition from the holder of ``role`` and give it to a broker that has none of it.

    Where every broker has a replica there is one replica less. At the end the replicas are as before, and the broker
    that had to leave comes back with an empty log. Racks are not looked at: replicas that share one then are in the
    receipt.
    """

    kind: ClassVar[str] = "reassign"
    verb: ClassVar[str] = "reassign"
    operands: ClassVar[str] = ""
    family: ClassVar[str] = "reassign"
    needs: ClassVar[tuple[Capability, ...]] = (Capability.REASSIGNMENT,)
    replaces_replica: ClassVar[bool] = True

    def aim(self, view: ClusterView) -> Aim:
        """The broker that is to leave."""
        holders, partition = resolve(self.role, view), partition_of(self.role, view)
        if not holders or not partition:
            return Aim(impossible=f"{self.role} does not exist now")
        state = view.partitions[partition]
        able = [node for node in holders if node in state.replicas and _in_sync_without(node, state, view)]
        if not able:
            return Aim(impossible=f"without {listed(holders)} no in-sync replica of {partition} would run")
        return Aim(
            nodes=(able[0],),
            partition=partition,
            replicas=_without(able[0], state, view),
            replicas_before=state.replicas,
        )

    @override
    def hit(self, target: Target, aim: Aim, node: int) -> Reassigned:
        asked = require(target.reassignment).reassign(aim.partition, aim.replicas)
        together = in_one_rack(aim.replicas, target.view().racks)
        return {**asked, "in_one_rack": together} if together else asked

    def undo(self, target: Target, aim: Aim, node: int) -> Reassigned:
        """Reassign back, which also calls off what has not come to its end."""
        return require(target.reassignment).reassign(aim.partition, aim.replicas_before)


def in_one_rack(replicas: Iterable[int], racks: Mapping[int, str]) -> dict[str, list[int]]:
    """The racks that have several of these replicas, and which. A controller refuses no such placement."""
    by_rack: dict[str, list[int]] = {}
    for node in replicas:
        by_rack.setdefault(racks.get(node, ""), []).append(node)
    return {rack: nodes for rack, nodes in sorted(by_rack.items()) if rack and len(nodes) > 1}


def _in_sync_without(node: int, state: PartitionView, view: ClusterView) -> bool:
    return bool(set(state.isr) & set(view.running) - {node})


def _without(node: int, state: PartitionView, view: ClusterView) -> tuple[int, ...]:
    """The replicas with a running broker that is not one of them in ``node``'s place, or with the place gone."""
    spare = sorted(set(view.running) - set(state.replicas))
    return tuple(other for replica in state.replicas for other in ([replica] if replica != node else spare[:1]))

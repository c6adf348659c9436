"""Placement of a new topic's replicas (rule 26). It is not looked at again: a later change may put them anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from harness.reference.core.types import NodeId

#: Replicas by partition, the preferred leader first.
Assignment = tuple[tuple[NodeId, ...], ...]


def alternate(racks: Mapping[NodeId, str], partitions: int, replication_factor: int) -> Assignment:
    """Replicas by partition: those of one partition are in as many racks as there are, or as it has replicas (KIP-36).

    ``racks`` are the brokers that may be chosen, each with its rack; brokers without one are in the rack "", so where
    none has one, partition p starts at broker p and goes on in order. Leaders alternate too. ``replication_factor``
    is at most the number of brokers.
    """
    inside: dict[str, list[NodeId]] = {}
    for node in sorted(racks):
        inside.setdefault(racks[node], []).append(node)
    return tuple(
        _replicas([inside[rack] for rack in sorted(inside)], number, replication_factor) for number in range(partitions)
    )


def _replicas(racks: list[list[NodeId]], partition: int, replication_factor: int) -> tuple[NodeId, ...]:
    """Round and round through the racks, each time the next broker of each; one that has its turn again is left out."""
    chosen: dict[NodeId, None] = {}
    turn = 0
    while len(chosen) < replication_factor:
        rack = racks[(partition + turn) % len(racks)]
        chosen[rack[(partition // len(racks) + turn // len(racks)) % len(rack)]] = None
        turn += 1
    return tuple(chosen)

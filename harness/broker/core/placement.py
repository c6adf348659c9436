"""Placement of a new topic's replicas (rule 26). It is not looked at again: a later change may put them anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from harness.broker.core.types import NodeId

#: Replicas by partition, the preferred leader first.
Assignment = tuple[tuple[NodeId, ...], ...]


def alternate(racks: Mapping[NodeId, str], partitions: int, replication_factor: int) -> Assignment:
    """Replicas by partition: those of one partition are in as many racks as there are, or as it has replicas (KIP-36).

    ``racks`` are the brokers that may be chosen, each with its rack, "" without one; ``replication_factor`` is at most
    their number. With brokers 0 and 1 in rack a, 2 and 3 in rack b, and three replicas each:

        partition 0: 0 2 1        partition 2: 1 3 0
        partition 1: 2 0 3        partition 3: 3 1 2
    """
    inside: dict[str, list[NodeId]] = {}
    for node in sorted(racks):
        inside.setdefault(racks[node], []).append(node)
    return tuple(
        _replicas([inside[rack] for rack in sorted(inside)], number, replication_factor) for number in range(partitions)
    )


def _replicas(racks: list[list[NodeId]], partition: int, replication_factor: int) -> tuple[NodeId, ...]:
    """Take the racks in turn, and the brokers of each in turn, until enough are chosen."""
    chosen: dict[NodeId, None] = {}
    turn = 0
    while len(chosen) < replication_factor:
        rack = racks[(partition + turn) % len(racks)]
        chosen[rack[(partition // len(racks) + turn // len(racks)) % len(rack)]] = None
        turn += 1
    return tuple(chosen)

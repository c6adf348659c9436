"""Where a new topic's replicas go, and why a topic cannot be made."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from harness.reference.core.messages import CreateTopic
from harness.reference.core.types import BrokerState, ErrorCode, NodeId, PartitionState

#: Kafka's own limits for a topic name.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: More partitions than this in one topic are a mistake in a test cluster of a few brokers.
PARTITIONS_MAX: Final = 10_000

Assignment = tuple[tuple[NodeId, ...], ...]


def objection(message: CreateTopic, brokers: Mapping[NodeId, BrokerState]) -> tuple[ErrorCode, str] | None:
    """Why the topic cannot be made, with a sentence; None if it can."""
    if not _NAME.fullmatch(message.topic) or message.topic in {".", ".."}:
        return (
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f'"{message.topic}" is no topic name: use 1 to 249 letters, digits, dots, dashes and underscores',
        )
    if message.assignment:
        return _assignment_objection(message.assignment, brokers)
    if not 1 <= message.partitions <= PARTITIONS_MAX:
        return ErrorCode.INVALID_PARTITIONS, f"a topic has 1 to {PARTITIONS_MAX} partitions, not {message.partitions}"
    ready = sum(not broker.fenced for broker in brokers.values())
    if not 1 <= message.replication_factor <= ready:
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {message.replication_factor} needs as many unfenced brokers; there are {ready}",
        )
    return None


def _assignment_objection(
    assignment: Assignment, brokers: Mapping[NodeId, BrokerState]
) -> tuple[ErrorCode, str] | None:
    for number, replicas in enumerate(assignment):
        if not replicas or len(set(replicas)) < len(replicas) or len(replicas) != len(assignment[0]):
            reason = "needs as many different replicas as partition 0, at least one"
        elif any(node not in brokers for node in replicas):
            reason = "names a broker that is not registered"
        elif all(brokers[node].fenced for node in replicas):
            reason = "has only fenced brokers"
        else:
            continue
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {number} {reason}"
    return None


def round_robin(brokers: Sequence[NodeId], partitions: int, replication_factor: int) -> Assignment:
    """Partition p starts at broker p and goes on in order, so that leaders and followers are spread evenly."""
    return tuple(
        tuple(brokers[(number + at) % len(brokers)] for at in range(replication_factor)) for number in range(partitions)
    )


def new_partition(replicas: tuple[NodeId, ...], active: Callable[[NodeId], bool]) -> PartitionState:
    """A partition's first state: every active replica is in sync, the first of them leads."""
    isr = tuple(node for node in replicas if active(node))
    return PartitionState(replicas=replicas, isr=isr, leader=isr[0], leader_epoch=0, partition_epoch=0)

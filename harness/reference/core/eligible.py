"""Eligible leader replicas (rule 15, KIP-966): who may lead besides the in-sync replicas.

With strict min ISR (rule 7) nothing is acknowledged to acks=all, and nothing becomes readable, while the ISR is smaller
than min.insync.replicas. So whoever leaves the ISR while it is that small, or makes it so, still has everything that
ever was, and is put on a second list, the ELR. Both lists together have at least min.insync.replicas members, and the
ISR may become empty. Only an unclean stop strikes a broker off: its disk may have lost what it had.

This broker keeps no word of how it stopped, so each of its starts counts as one after an unclean stop. Kafka's do, and
stay on the list after a clean one.
"""

from __future__ import annotations

from msgspec.structs import replace

from harness.reference.core.types import NONE, NodeId, PartitionState, TopicConfig


def leave(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` in the ISR, be it the last member."""
    return replace(state, isr=tuple(member for member in state.isr if member != node))


def strike(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` on either list: it was started again."""
    return replace(leave(state, node), elr=tuple(member for member in state.elr if member != node))


def listed(before: PartitionState, after: PartitionState, config: TopicConfig) -> PartitionState:
    """``after``, which follows ``before``, with its ELR and its last known leader.

    An unclean election begins anew: who left with more than the new leader has is eligible no more.
    """
    elr: set[NodeId] = set()
    begins_anew = after.recovering and after.leader != before.leader
    if len(after.isr) < min(config.min_insync_replicas, len(after.replicas)) and not begins_anew:
        elr = {*after.elr, *before.isr} - set(after.isr)
    last_known = before.last_known_leader if before.leader == NONE else before.leader
    return replace(
        after,
        elr=tuple(node for node in after.replicas if node in elr),
        last_known_leader=last_known if after.leader == NONE else NONE,
    )

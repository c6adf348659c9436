"""Who leads next (rules 13 to 15): a list of rules, asked in order; the first that names somebody decides.

The largest log (rule 27) is one more rule in such a list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from harness.reference.core.types import NONE, NodeId, PartitionState, TopicConfig

#: May this broker lead now? It may if it is registered, not fenced and not leaving.
Active = Callable[[NodeId], bool]
Rule = Callable[[PartitionState, TopicConfig, Active], PartitionState | None]


def keep_leader(state: PartitionState, config: TopicConfig, active: Active) -> PartitionState | None:
    """The present leader, while it is an active member of the ISR."""
    del config
    return state if state.leader in state.isr and active(state.leader) else None


def first_in_sync(state: PartitionState, config: TopicConfig, active: Active) -> PartitionState | None:
    """The first replica, in the order of assignment, that is an active member of the ISR."""
    del config
    for node in state.replicas:
        if node in state.isr and active(node):
            return replace(state, leader=node)
    return None


def first_eligible(state: PartitionState, config: TopicConfig, active: Active) -> PartitionState | None:
    """The first replica, in the order of assignment, that is an active member of the ELR, where the ISR is empty."""
    del config
    for node in state.replicas:
        if not state.isr and node in state.elr and active(node):
            return replace(state, leader=node, isr=(node,))
    return None


def last_known(state: PartitionState, config: TopicConfig, active: Active) -> PartitionState | None:
    """Who led last, where nobody is left on either list; what it may have lost is lost."""
    del config
    if not state.isr and not state.elr and active(state.last_known_leader):
        node = state.last_known_leader
        return replace(state, leader=node, isr=(node,), recovering=True)
    return None


def first_active_unclean(state: PartitionState, config: TopicConfig, active: Active) -> PartitionState | None:
    """The first active replica, whatever it has: what only others have is lost (unclean.leader.election.enable)."""
    if config.unclean_leader_election_enable:
        for node in state.replicas:
            if active(node):
                return replace(state, leader=node, isr=(node,), recovering=True)
    return None


ORDER: Final[Sequence[Rule]] = (keep_leader, first_in_sync, first_eligible, last_known, first_active_unclean)


def elect(state: PartitionState, config: TopicConfig, active: Active, order: Sequence[Rule] = ORDER) -> PartitionState:
    """``state`` with its next leader, NONE if nobody may lead. Epochs are raised by :func:`settle`."""
    for rule in order:
        chosen = rule(state, config, active)
        if chosen is not None:
            return chosen
    return replace(state, leader=NONE)


def without(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` in the ISR; the last member stays, since nobody else has everything (rule 13)."""
    isr = tuple(member for member in state.isr if member != node)
    return replace(state, isr=isr) if isr and len(isr) < len(state.isr) else state


def settle(before: PartitionState, after: PartitionState) -> PartitionState:
    """``after`` with its partition epoch raised for any change, its leader epoch for another leader (KAFKA-15021)."""
    if after == before:
        return before
    moved = after.leader != before.leader
    return replace(after, leader_epoch=before.leader_epoch + moved, partition_epoch=before.partition_epoch + 1)

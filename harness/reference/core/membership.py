"""Who may be in an ISR, as far as a leader can tell from its metadata (rules 11 and 20), and how it says so.

Deciding *when* to propose is partition.py's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.reference.core.context import Context
from harness.reference.core.followers import Follower
from harness.reference.core.messages import IsrMember
from harness.reference.core.types import NONE, NodeId


def eligible(context: Context, follower: Follower) -> bool:
    """The follower's broker is not fenced (KIP-841), and the incarnation that fetched is the present one (KIP-903)."""
    broker = context.image.brokers.get(follower.node)
    if broker is None or broker.fenced:
        return False
    return not context.config.broker_epochs or follower.broker_epoch in (NONE, broker.broker_epoch)


def replaced(context: Context, node: NodeId, broker_epoch: int) -> bool:
    """A fetch under ``broker_epoch`` comes from an incarnation that has a successor (KAFKA-15221)."""
    if broker_epoch == NONE or not context.config.broker_epochs:
        return False
    broker = context.image.brokers.get(node)
    return broker is not None and broker.broker_epoch > broker_epoch


def members(context: Context, isr: tuple[NodeId, ...], followers: Mapping[NodeId, Follower]) -> tuple[IsrMember, ...]:
    """The members of a proposal, each with the broker epoch under which it fetched last."""
    return tuple(
        IsrMember(node, followers[node].broker_epoch if node in followers else context.broker_epoch) for node in isr
    )

"""Commit rules: a record is committed once the in-sync replicas have it (rules 3, 4, 7), or a number of them (27, 28).

A replica has one rule for its life (:func:`commit_rule`). While it leads, it asks the rule three things: may a write be
appended, how far is the log committed, and what is a producer answered then.

*By number* (KIP-250). acks=all is answered when ``quorum.required.acks`` replicas have the record, the leader among
them: the high watermark is the log end of the k-th replica. The leader still keeps the ISR, but waits for none of it,
and min.insync.replicas is not asked. A member of the ISR may lack a committed record, so the next leader must be found
by its log (:mod:`election`).

*Of the present epoch.* k replicas with a record of an earlier epoch are not enough (Raft, section 5.4.2 and figure 8).
With k = 2 of three replicas, and A1 for record A of epoch 1:

    epoch 3: broker 0 leads with A1, copies it to broker 2, and fails; broker 1 has B2, which no other has
    epoch 4: broker 1 wins, since its last epoch is larger: A1 is lost, though two replicas had it

So in elections by epoch and log end the k-th log end counts only beyond the start of the present leader epoch. A new
leader begins its epoch with a record of its own that no client sees (``opens_epoch``): once k replicas have that one,
everything before it is committed too.

*As in Raft* (rule 28) k is the majority of the replicas, and each of them forces a record to its disk before it answers
for it.
"""

from __future__ import annotations

from typing import Protocol

from harness.broker.core.follower import Follower
from harness.broker.core.log import Log
from harness.broker.core.types import NO_ERROR, BrokerConfig, ErrorCode, NodeId, TopicConfig


class Leader(Protocol):
    """The part of a leading replica that a rule looks at; :class:`harness.broker.core.replica.Replica` has it."""

    log: Log
    high_watermark: int
    min_isr: int
    isr: tuple[NodeId, ...]
    maximal_isr: tuple[NodeId, ...]
    followers: dict[NodeId, Follower]
    epoch_start: int

    def about_to_join(self, follower: Follower, end: int) -> bool:
        """The follower is caught up with a log that ends at ``end``, and may join the ISR (rule 7)."""


class CommitRule(Protocol):
    """The way a leader commits. ``opens_epoch``: a leader's first record in its epoch is one of its own."""

    opens_epoch: bool

    def accepts(self, replica: Leader) -> bool:
        """May a write with acks=all be appended (rule 3)?"""

    def committed_end(self, replica: Leader) -> int:
        """The offset below which everything is committed by the followers' progress; may be an earlier one."""

    def answer(self, replica: Leader) -> ErrorCode:
        """The answer to a producer with acks=all once the high watermark has covered its records (rule 4)."""

    def flush_messages(self, config: TopicConfig) -> int:
        """The number of records that a replica may hold unflushed before it flushes (rule 24)."""


class InSync:
    """Kafka's: every member of the maximal ISR has it, and there are min.insync.replicas of them."""

    opens_epoch = False

    def __init__(self, *, strict_min_isr: bool) -> None:
        self._strict = strict_min_isr

    def accepts(self, replica: Leader) -> bool:
        """Ask for min.insync.replicas in the committed ISR."""
        return len(replica.isr) >= replica.min_isr

    def committed_end(self, replica: Leader) -> int:
        """Rule 7: the least log end over the maximal ISR and who is about to join; frozen below min ISR since 3.7."""
        if self._strict and len(replica.isr) < replica.min_isr:
            return replica.high_watermark
        end = offset = replica.log.end_offset
        for follower in replica.followers.values():
            reached = follower.end_offset
            if reached < offset and (follower.node in replica.maximal_isr or replica.about_to_join(follower, end)):
                offset = reached
        return offset

    def answer(self, replica: Leader) -> ErrorCode:
        """Ask for min.insync.replicas in the maximal ISR."""
        enough = len(replica.maximal_isr) >= replica.min_isr
        return NO_ERROR if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def flush_messages(self, config: TopicConfig) -> int:
        """Flush as flush.messages says."""
        return config.flush_messages


class Quorum:
    """A number of replicas has it, and, if the rule ``opens_epoch``, a record of the present epoch too.

    ``required`` replicas, the leader included, and never more than there are; None: the majority, which also flushes.
    """

    def __init__(self, required: int | None, *, opens_epoch: bool) -> None:
        self._required = required
        self.opens_epoch = opens_epoch

    def accepts(self, replica: Leader) -> bool:  # noqa: ARG002
        """Always: a write waits for its copies."""
        return True

    def committed_end(self, replica: Leader) -> int:
        """The log end of the k-th replica, as far as it proves anything."""
        ends = sorted([replica.log.end_offset, *(f.end_offset for f in replica.followers.values())], reverse=True)
        end = ends[copies(self._required, len(ends)) - 1]
        return end if end > replica.epoch_start or not self.opens_epoch else replica.high_watermark

    def answer(self, replica: Leader) -> ErrorCode:  # noqa: ARG002
        """Always well: enough replicas have it, or it would not be asked."""
        return NO_ERROR

    def flush_messages(self, config: TopicConfig) -> int:
        """Before a replica answers for a record, where the rule is Raft's."""
        return 1 if self._required is None else config.flush_messages


def copies(required: int | None, replicas: int) -> int:
    """The number of ``replicas`` that have a committed record; ``required`` None means the majority."""
    return replicas // 2 + 1 if required is None else min(required, replicas)


def required_acks(config: BrokerConfig) -> int | None:
    """The number of copies that a quorum asks for, None for the majority; see :func:`copies`."""
    return None if config.commit_rule == "majority" else config.quorum_required_acks


def commit_rule(config: BrokerConfig) -> CommitRule:
    """The rule that ``config`` names."""
    if config.commit_rule == "isr" and config.quorum_required_acks < 0:
        return InSync(strict_min_isr=config.strict_min_isr)
    return Quorum(required_acks(config), opens_epoch=config.leader_election == "largest-epoch-and-log-end")

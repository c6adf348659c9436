"""Wrong ISRs: the replicas that a leader waits for, and those that it proposes."""

from __future__ import annotations

from harness.broker.core.follower import Follower
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, ErrorCode, NodeId


class ShrinksBeforeAcceptance(Replica):
    """A leader stops to wait for a follower once it has proposed its removal (rule 10).

    A leader that is cut off shrinks its way to an acknowledgement, while the controller elects the follower: S04 with
    min.insync.replicas=1.
    """

    def _propose(self, isr: tuple[NodeId, ...]) -> None:
        super()._propose(isr)
        self.maximal_isr = isr


class JoinsByHighWatermark(Replica):
    """A follower joins the ISR at the high watermark, which lags after an election (rule 11, KAFKA-7128): S18."""

    def _has_enough(self, follower: Follower) -> bool:
        return follower.end_offset >= self.high_watermark


class JoinsAnywhere(Replica):
    """A follower joins the ISR with its first fetch, wherever that is (rule 11)."""

    def _has_enough(self, follower: Follower) -> bool:  # noqa: ARG002
        return True


class IgnoresBrokerEpochs(Replica):
    """A leader takes every fetch for one of the follower's present incarnation, and names no epochs (rules 11, 20).

    A late fetch of an incarnation whose disk is gone takes its empty successor into the ISR: S19.
    """

    def record_fetch(self, node: NodeId, offset: int, broker_epoch: int) -> ErrorCode:  # noqa: ARG002
        return super().record_fetch(node, offset, NONE)


class ProposesAgain(Replica):
    """A leader that finds a follower silent proposes another ISR before its last proposal was answered (rule 10).

    The first one may be accepted, and the leader no longer waits for its new member.
    """

    def check_isr(self) -> None:
        self.proposal = None
        super().check_isr()


class KeepsFencedOut(Replica):
    """A leader asks only once, when its epoch begins, which brokers are fenced (rule 11): those never join again."""

    _kept_out: frozenset[NodeId] = frozenset()

    def _lead(self) -> None:
        super()._lead()
        brokers = self._context.image.brokers
        self._kept_out = frozenset(node for node in self.replicas if node not in brokers or brokers[node].fenced)

    def _may_join(self, follower: Follower) -> bool:
        return follower.node not in self._kept_out and super()._may_join(follower)


class JoinsWhileFenced(Replica):
    """A leader takes a follower into the ISR that is fenced, and may be so because its disk is about to go (rule 11).

    So did Kafka before KIP-841. The controller has to accept it: the bug is in both.
    """

    def _may_join(self, follower: Follower) -> bool:
        broker = self._context.image.brokers.get(follower.node)
        return broker is not None and follower.broker_epoch in (NONE, broker.broker_epoch)

"""Wrong ISRs: the replicas that a leader waits for, and those that it proposes."""

from __future__ import annotations

from harness.reference.core.follower import Follower
from harness.reference.core.replica import Replica
from harness.reference.core.types import NONE, ErrorCode, NodeId


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

"""Who is in sync, wrongly: what leaders propose, and what the controller makes of it."""

from __future__ import annotations

from msgspec.structs import replace

from harness.reference.core.controller import Controller
from harness.reference.core.messages import AlterPartition
from harness.reference.core.replica import Follower, Replica
from harness.reference.core.types import NONE, ErrorCode, NodeId, PartitionState, TopicConfig


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


class KeepsFencedInIsr(Controller):
    """A broker that is fenced or leaves stays in the ISR (rule 13), and may lead when it is back: S36."""

    def _without(self, state: PartitionState, node: NodeId) -> PartitionState:  # noqa: ARG002
        return state


class KeepsEligibleAfterUncleanStop(Controller):
    """A replica stays on the lists of those who may lead, though its broker stopped uncleanly (rule 15): S09."""

    def _strike(self, node: NodeId) -> None:
        pass


class AcceptsProposalsOfDeposedLeaders(Controller):
    """A proposal is accepted from whoever led before, if only the present leader is in it (rule 10)."""

    def _proposal_error(self, message: AlterPartition, state: PartitionState | None) -> ErrorCode:
        error = super()._proposal_error(message, state)
        if error != ErrorCode.FENCED_LEADER_EPOCH or state is None:
            return error
        members = {member.broker for member in message.isr}
        may_be = state.leader in members and all(self._eligible(member, state) for member in message.isr)
        return ErrorCode.NONE if may_be else error


class AcceptsRefusedProposals(Controller):
    """A refusal is not the end of a proposal: a copy is accepted when its members are eligible again (rule 10): S54."""

    def _refused(self, state: PartitionState) -> PartitionState:
        return state


class KeepsElrAfterUncleanElection(Controller):
    """Who was eligible stays so after an unclean election, with more than the new leader has (rule 15)."""

    def _settled(self, before: PartitionState, after: PartitionState, config: TopicConfig) -> PartitionState:
        if not after.recovering or after.leader == before.leader:
            return super()._settled(before, after, config)
        return replace(super()._settled(before, replace(after, recovering=False), config), recovering=True)

"""Wrong decisions of the controller: who is in sync and may be elected, what it believes, what it forgets."""

from __future__ import annotations

from msgspec.structs import replace

from harness.broker.core.controller import Controller
from harness.broker.core.election import Active, ByIsr
from harness.broker.core.messages import AlterPartition, IsrMember
from harness.broker.core.types import (
    NO_NODE,
    NONE,
    BrokerConfig,
    ErrorCode,
    Image,
    NodeId,
    PartitionState,
    TopicConfig,
)


class KeepsFencedInIsr(Controller):
    """A broker that is fenced or leaves stays in the ISR (rule 13), and may lead when it is back: S36."""

    def _without(self, state: PartitionState, node: NodeId) -> PartitionState:  # noqa: ARG002
        return state


class KeepsEligibleAfterUncleanStop(Controller):
    """A replica stays on the lists of those who may lead, though its broker stopped uncleanly (rule 15): S09."""

    def _strike(self, node: NodeId) -> None:
        pass


class KeepsElrAfterUncleanElection(Controller):
    """An eligible replica stays so after an unclean election, with more than the new leader has (rule 15)."""

    def _settled(self, before: PartitionState, after: PartitionState, config: TopicConfig) -> PartitionState:
        if not after.recovering or after.leader == before.leader:
            return super()._settled(before, after, config)
        return replace(super()._settled(before, replace(after, recovering=False), config), recovering=True)


class AcceptsProposalsOfDeposedLeaders(Controller):
    """A proposal is accepted from a broker that led before, if only the present leader is in it (rule 10)."""

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


class ForgetsProducerIds(Controller):
    """A controller that starts again hands out producer ids from the first one on (rule 21)."""

    def __init__(
        self,
        config: BrokerConfig,
        image: Image | None = None,
        next_producer_id: int = 0,  # noqa: ARG002
        *,
        observe: bool = True,
    ) -> None:
        super().__init__(config, image, observe=observe)


class _PutsEligibleLast(ByIsr):
    """Elects as if no replica were eligible, and an eligible one only if no other may lead."""

    def __init__(self, active: Active, config: BrokerConfig, *, uncleanly: bool) -> None:
        super().__init__(active, config)
        self._uncleanly = uncleanly

    def elect(self, state: PartitionState, config: TopicConfig) -> PartitionState:
        unlisted = replace(state, elr=(), last_known_leader=NO_NODE if self._uncleanly else state.last_known_leader)
        unclean = self._uncleanly and config.unclean_leader_election_enable
        wrong = super().elect(unlisted, replace(config, unclean_leader_election_enable=unclean))
        if state.isr or not state.elr or wrong.leader == NONE:
            return super().elect(state, config)
        return replace(wrong, last_known_leader=state.last_known_leader)


class _ElectsOverEligible(Controller):
    _uncleanly: bool

    def __init__(
        self, config: BrokerConfig, image: Image | None = None, next_producer_id: int = 0, *, observe: bool = True
    ) -> None:
        super().__init__(config, image, next_producer_id, observe=observe)
        if isinstance(self._election, ByIsr):
            self._election = _PutsEligibleLast(self._active, config, uncleanly=self._uncleanly)


class ElectsLastLeaderOverEligible(_ElectsOverEligible):
    """The leader before an ISR became empty leads again before an eligible replica (rule 15), with less."""

    _uncleanly = False


class ElectsUncleanlyOverEligible(_ElectsOverEligible):
    """An unclean election, where it is allowed, is held though an eligible replica lives (rules 14, 15)."""

    _uncleanly = True


class AcceptsFencedMembers(Controller):
    """A fenced broker is taken into the ISR (rule 11, KIP-841), and nothing takes it out when its disk is gone."""

    def _eligible(self, member: IsrMember, state: PartitionState) -> bool:
        return super()._eligible(member, state) or self.image.brokers[member.broker].fenced

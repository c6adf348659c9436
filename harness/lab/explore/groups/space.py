"""The states of a scope of groups: the members of one group, and their coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

from typing_extensions import override

from harness.broker.core import messages
from harness.broker.core.groups.coordinator import LOG
from harness.broker.core.invariants import Broken
from harness.broker.core.messages import Message
from harness.broker.core.types import NONE
from harness.lab.explore.coordinated import CoordinatedSpace
from harness.lab.explore.coordinated_nodes import CoordinatedNodes
from harness.lab.explore.coordinator_node import Servers
from harness.lab.explore.counted_facts import CountedFacts
from harness.lab.explore.events import NodeEvent
from harness.lab.explore.groups.classic_members import ClassicMemberNode
from harness.lab.explore.groups.coordinators import GroupCoordinatorNode
from harness.lab.explore.groups.members import MemberNode
from harness.lab.explore.groups.rules import GROUP_RULES, broken_group_promises
from harness.lab.explore.groups.scope import GroupScope
from harness.lab.explore.searched import State
from harness.worlds.reference_settings import broker_config, topic_config

#: The things that a scope limits by their number, in the order in which facts count them.
_LIMITED: Final = ("fences", "moves", "delays")


class GroupFacts(NamedTuple):
    """Facts of a run up to a state: what of the scope is spent, and the largest commit that was acknowledged of each
    log partition."""

    spent: tuple[int, ...] = ()
    acknowledged: tuple[int, ...] = ()


class GroupSpace(CoordinatedSpace):
    """The states of one ``scope`` of groups."""

    rules: ClassVar[tuple[str, ...]] = GROUP_RULES
    scope: GroupScope
    nodes: CoordinatedNodes[MemberNode]
    facts: CountedFacts[GroupFacts]
    answers: ClassVar[Mapping[type[Message], type[Message]]] = {
        messages.ConsumerGroupHeartbeat: messages.ConsumerGroupHeartbeatResponse,
        messages.OffsetFetch: messages.OffsetFetchResponse,
        messages.OffsetCommit: messages.OffsetCommitResponse,
        messages.GroupJoin: messages.GroupJoinResponse,
        messages.GroupSync: messages.GroupSyncResponse,
        messages.GroupHeartbeat: messages.GroupHeartbeatResponse,
    }

    def __init__(self, scope: GroupScope) -> None:
        constants = scope.constants
        super().__init__(0, constants.members, constants)
        self.scope = scope
        settings, partitions = scope.chosen, constants.partitions
        servers = Servers(broker_config(settings), topic_config(settings), partitions, LOG)
        self.nodes = CoordinatedNodes(servers)
        limits = {name: getattr(constants, name) for name in _LIMITED}
        self.facts = CountedFacts(limits, GroupFacts((), (NONE,) * partitions))

    @override
    def first_nodes(self) -> list[int]:
        constants = self.scope.constants
        members: list[MemberNode] = (
            [*map(MemberNode, self.clients)]
            if constants.protocol == "consumer"
            else [ClassicMemberNode(number, partitions=constants.partitions) for number in self.clients]
        )
        return self.nodes.begin([GroupCoordinatorNode(self.nodes.servers), *members])

    @override
    def broken(self, state: State) -> Broken | None:
        acknowledged = self.facts.by_digest[state[-1]].acknowledged
        self.acknowledged = max(self.acknowledged, *acknowledged)
        broken = broken_group_promises(self.nodes.coordinators[state[0]], self.members_in(state), acknowledged)
        return next(filter(self.counts, broken), None)

    def members_in(self, state: State) -> list[MemberNode]:
        """The members of a state, and those that are not."""
        return [self.nodes.clients[digest] for digest in state[self.first_client : self.first_link]]

    @override
    def offers(self, state: State, number: int) -> Iterator[tuple[NodeEvent, int]]:
        member: MemberNode = self.nodes.clients[state[self.first_client + number]]
        yield from ((event, state[-1]) for event in member.offers(self.scope.constants.records))

    @override
    def _limited(self) -> Iterator[tuple[NodeEvent, str]]:
        yield from super()._limited()
        yield from ((NodeEvent("fence", number), "fences") for number in self.clients)

    @override
    def heard(self, after: list[int], number: int, before: int) -> None:
        """Note the commit that was acknowledged."""
        earlier, member = self.nodes.clients[before], self.nodes.clients[after[self.first_client + number]]
        if earlier.purpose != "commit" or member.waits:
            return
        (position,) = [position for position in earlier.places if position.partition == earlier.partition]
        facts = self.facts.by_digest[after[-1]]
        if any(now.partition == position.partition and now.committed == position.offset for now in member.places):
            acknowledged = [*facts.acknowledged]
            acknowledged[position.partition] = max(acknowledged[position.partition], position.offset)
            after[-1] = self.facts.keep(facts._replace(acknowledged=tuple(acknowledged)))

"""Elections: an in-sync replica leads (rules 13 to 15), or the live one with the largest log (27, 28).

The controller has one rule for its life (:func:`election_rule`).

*By the logs.* Where a number of replicas commits a record (:mod:`commit_rule`), the ISR does not say who has it. An
election takes two steps:

    1. The partition gets no leader, in a leader epoch of its own. A replica that learns of it neither leads nor
       follows any more, so its log stays as it is.
    2. The controller asks every live replica for the end of its log in that epoch (KIP-250), and elects the largest.

Fewer than RF - k + 1 answers elect no leader: only among that many is one of the k replicas that have a committed
record. KIP-250 does not ask for them, and loses what its k acknowledged if fewer brokers are back first.

*Largest* is the log end offset alone, as in KIP-250, or first the leader epoch of the last record, as in Raft (section
5.4.1). Broker 0 was deposed, and committed nothing of epoch 1 (S28):

    broker 0: A1 B1 C1        wins by the log end alone, and what epoch 2 committed is lost
    broker 1: A2 B2           wins by the epoch

Messages may be lost, so questions are repeated. A live replica that did not answer :data:`ASKED_MAX` times is not
waited for, and not counted. One that registers again is asked again: its disk may have lost what it answered for. The
controller is the only arbiter, and perfect: no replica votes, and there is no second candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.commit_rule import copies, required_acks
from harness.broker.core.effects import Context, Timer
from harness.broker.core.types import (
    NO_NODE,
    NONE,
    BrokerConfig,
    NodeId,
    PartitionState,
    TopicConfig,
    TopicPartition,
)

ELECTIONS: Final = Timer("elections")
#: So often is a live replica asked for its log end, a heartbeat interval apart.
ASKED_MAX: Final = 3

#: May this broker lead now? It may if it is registered, not fenced and not leaving.
Active = Callable[[NodeId], bool]


class Election(Protocol):
    """The rule by which the controller chooses leaders."""

    def elect(self, state: PartitionState, config: TopicConfig) -> PartitionState:
        """``state`` with its next leader; with NONE where the rule has to ask first, or no replica may lead."""

    def move(self, partition: TopicPartition, state: PartitionState, leader: NodeId) -> PartitionState:
        """``state`` for a planned move to ``leader``, an active member of the ISR."""

    def pursue(self) -> None:
        """The image has changed: ask the replicas that the rule has to hear."""

    def ask_again(self) -> list[TopicPartition]:
        """Repeat the questions without an answer; returns the partitions that may be decided now."""

    def on_log_end(self, message: messages.LogEndResponse) -> None:
        """Take a replica's answer: the end of its log."""

    def decide(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """``state`` with the leader that the answers so far elect; unchanged while they elect no leader."""


class ByIsr:
    """Kafka's: nothing has to be asked, the ISR says who has everything."""

    def __init__(self, active: Active, config: BrokerConfig) -> None:
        self._active = active
        self._config = config

    def elect(self, state: PartitionState, config: TopicConfig) -> PartitionState:
        """Elect by the lists alone, as :func:`elect` says."""
        return elect(state, self._active, uncleanly=elects_uncleanly(self._config, config))

    def move(self, partition: TopicPartition, state: PartitionState, leader: NodeId) -> PartitionState:  # noqa: ARG002
        """Name the new leader at once."""
        return replace(state, leader=leader)

    def pursue(self) -> None:
        """Ask no replica: the lists say it."""

    def ask_again(self) -> list[TopicPartition]:
        """Wait for no answer."""
        return []

    def on_log_end(self, message: messages.LogEndResponse) -> None:
        """No replica was asked."""

    def decide(self, partition: TopicPartition, state: PartitionState) -> PartitionState:  # noqa: ARG002
        """Nothing is open."""
        return state


#: A broker's number and its broker epoch: after a restart it is another incarnation, and is asked again.
Incarnation = tuple[NodeId, int]


class Ballot(msgspec.Struct, eq=False):
    """The election in one leaderless epoch.

    ``asked`` counts questions; ``preferred`` leads if no log is larger, NONE for the order of assignment.
    """

    leader_epoch: int
    preferred: NodeId
    asked: dict[Incarnation, int] = {}
    answers: dict[Incarnation, messages.LogEndResponse] = {}


class ByLog:
    """The live replica with the largest log, if enough of them answer. ``by_epoch``: the last leader epoch goes first.

    ``required`` is the number of copies of what is committed, see :func:`copies`.
    """

    def __init__(self, context: Context, active: Active, required: int | None, *, by_epoch: bool) -> None:
        self._context = context
        self._active = active
        self._required = required
        self._by_epoch = by_epoch
        self._ballots: dict[TopicPartition, Ballot] = {}
        self._preferred: dict[TopicPartition, NodeId] = {}
        self._armed = False

    def elect(self, state: PartitionState, config: TopicConfig) -> PartitionState:  # noqa: ARG002
        """The present leader while it lives, in the ISR or not; else no leader, until the logs are known."""
        return state if self._can_lead(state, state.leader) else replace(state, leader=NONE)

    def move(self, partition: TopicPartition, state: PartitionState, leader: NodeId) -> PartitionState:
        """An election in which ``leader`` is preferred: an in-sync replica may still lack what is committed (S27)."""
        if state.leader == leader:
            return state
        self._preferred[partition] = leader
        return replace(state, leader=NONE)

    def pursue(self) -> None:
        """Ask the live replicas of every leaderless partition that were not asked in this epoch yet."""
        ballots, self._ballots = self._ballots, {}
        for name, topic in self._context.image.topics.items():
            for number, state in enumerate(topic.partitions):
                if state.leader != NONE:
                    continue
                partition = TopicPartition(name, number)
                ballot = ballots.get(partition)
                if ballot is None or ballot.leader_epoch != state.leader_epoch:
                    ballot = Ballot(state.leader_epoch, self._preferred.pop(partition, NO_NODE))
                self._ballots[partition] = ballot
                self._ask(
                    partition,
                    ballot,
                    [incarnation for incarnation in self._live(state) if incarnation not in ballot.asked],
                )
        if self._ballots and not self._armed:
            self._armed = True
            self._context.remind(self._context.config.broker_heartbeat_interval_ms, ELECTIONS)

    def ask_again(self) -> list[TopicPartition]:
        """Ask every live replica again that has not answered, a heartbeat interval later."""
        self._armed = False
        for partition, ballot in self._ballots.items():
            state = self._context.image.partition(partition)
            live = [] if state is None else self._live(state)
            self._ask(partition, ballot, [incarnation for incarnation in live if incarnation not in ballot.answers])
        open_now = list(self._ballots)
        self.pursue()
        return open_now

    def on_log_end(self, message: messages.LogEndResponse) -> None:
        """Count an answer in the epoch in which it was asked."""
        ballot = self._ballots.get(message.partition)
        if ballot is not None and ballot.leader_epoch == message.leader_epoch:
            ballot.answers[message.broker, message.broker_epoch] = message

    def decide(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """The first with the largest log, once all live replicas have answered or were asked often enough."""
        ballot = self._ballots.get(partition)
        if ballot is None or ballot.leader_epoch != state.leader_epoch:
            return state
        live = self._live(state)
        answers = [ballot.answers[incarnation] for incarnation in live if incarnation in ballot.answers]
        awaited = any(
            incarnation not in ballot.answers and ballot.asked.get(incarnation, 0) <= ASKED_MAX for incarnation in live
        )
        replicas = len(state.replicas)
        if awaited or len(answers) <= replicas - copies(self._required, replicas):
            return state
        leader = max(answers, key=lambda answer: self._rank(answer, ballot)).broker
        isr = state.isr if leader in state.isr else (leader,)
        return replace(state, leader=leader, isr=isr, recovering=False)

    def _rank(self, answer: messages.LogEndResponse, ballot: Ballot) -> tuple[int, int, bool]:
        epoch = answer.last_epoch if self._by_epoch else NONE
        return epoch, answer.end_offset, answer.broker == ballot.preferred

    def _can_lead(self, state: PartitionState, node: NodeId) -> bool:
        return self._active(node) and node not in state.offline

    def _live(self, state: PartitionState) -> list[Incarnation]:
        brokers = self._context.image.brokers
        return [(node, brokers[node].broker_epoch) for node in state.replicas if self._can_lead(state, node)]

    def _ask(self, partition: TopicPartition, ballot: Ballot, incarnations: list[Incarnation]) -> None:
        for incarnation in incarnations:
            ballot.asked[incarnation] = ballot.asked.get(incarnation, 0) + 1
            self._context.send(incarnation[0], messages.LogEnd(partition, ballot.leader_epoch))


def election_rule(context: Context, active: Active) -> Election:
    """The rule that the cluster's settings name."""
    chosen = context.config.leader_election
    if chosen == "isr":
        return ByIsr(active, context.config)
    return ByLog(context, active, required_acks(context.config), by_epoch=chosen == "largest-epoch-and-log-end")


def elects_uncleanly(config: BrokerConfig, topic: TopicConfig) -> bool:
    """True if a replica that is on no list may lead: the topic allows it, and the controller asks it (rule 14)."""
    return config.unclean_elections and topic.unclean_leader_election_enable


def elect(state: PartitionState, active: Active, *, uncleanly: bool) -> PartitionState:
    """``state`` with its next leader, NONE if no replica may lead (rules 13 to 15). Epochs are raised elsewhere.

    In this order: the present leader; the first in the order of assignment that is in the ISR; where the ISR is empty,
    the first of the ELR; where that is empty too, who led last, though it may have lost something; and ``uncleanly``
    the first that is active at all: what only others have is lost then.
    """
    alive = [node for node in state.replicas if active(node) and node not in state.offline]
    if state.leader in state.isr and state.leader in alive:
        return state
    in_sync = next((node for node in alive if node in state.isr), NONE)
    if in_sync != NONE:
        return replace(state, leader=in_sync)
    eligible = next((node for node in alive if node in state.elr), NONE)
    if not state.isr and eligible != NONE:
        return replace(state, leader=eligible, isr=(eligible,))
    if not state.isr and not state.elr and state.last_known_leader in alive:
        return _new_history(state, state.last_known_leader)
    if uncleanly and alive:
        return _new_history(state, alive[0])
    return replace(state, leader=NONE)


def _new_history(state: PartitionState, leader: NodeId) -> PartitionState:
    return replace(state, leader=leader, isr=(leader,), recovering=True)

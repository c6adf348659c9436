"""The controller: sessions of brokers, elections, ISR changes, topics (rules 10, 13, 14, 15, 20, 29).

It is one node and assumed perfect: its surroundings persist its image after each call and before they deliver the
effects of that call. Every change makes a new image with a larger version, which is pushed to all registered brokers.

What happens to one partition is a function from its state to the next one, in this order: who leaves the lists
(``without``, or ``leave`` and ``strike``), who leads then (:mod:`election`), who is eligible too (``listed``), and
which epochs rise (``settle``).

*Eligible leader replicas* (rule 15, KIP-966). While the ISR is smaller than min.insync.replicas, nothing is
acknowledged to acks=all and nothing becomes readable (rule 7). So a broker that leaves it then, or makes it so small,
still has everything that was ever committed, and goes to a second list, the ELR. With min.insync.replicas=2:

    ISR 0 1 2                 all are in sync
    ISR 0 1                   2 is fenced; writes go on without it
    ISR 0        ELR 1        1 is fenced; from now on nothing is committed
    ISR empty    ELR 0 1      0 is fenced; the first of the two that comes back leads

Only an unclean stop strikes a broker off the ELR: its disk may have lost what it had. A clean stop leaves a mark with
the broker epoch on the disk, and the next incarnation names it when it registers. If that is the
epoch that the controller knows, nothing happened in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from harness.broker.core import messages
from harness.broker.core.effects import Context, Effect, Node, Timer
from harness.broker.core.election import ELECTIONS, Active, Election, election_rule
from harness.broker.core.placement import Assignment, alternate
from harness.broker.core.types import (
    CONTROLLER,
    NONE,
    BrokerConfig,
    BrokerState,
    ErrorCode,
    Image,
    NodeId,
    Outside,
    PartitionState,
    TopicConfig,
    TopicPartition,
    TopicState,
)
from harness.ground.observations import BrokerFenced, BrokerRegistered, LeaderElected

SESSIONS: Final = Timer("sessions")
UNCLEAN: Final = Timer("unclean")
#: Producer ids handed out at a time (KIP-730).
PRODUCER_IDS: Final = 1_000

#: Kafka's own limits for a topic name.
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
#: More partitions than this in one topic are a mistake in a test cluster of a few brokers.
PARTITIONS_MAX: Final = 10_000

Change = Callable[[PartitionState, TopicConfig], PartitionState]


class Controller(Node):
    """The cluster's one source of metadata. ``image`` and ``next_producer_id`` are what must be persisted."""

    next_producer_id: int
    _incarnations: dict[NodeId, int]
    _heard_us: dict[NodeId, int]
    _lists_eligible: Outside[bool]
    _election: Outside[Election]
    _session_us: Outside[int]
    _unclean_us: Outside[int]

    def __init__(
        self, config: BrokerConfig, image: Image | None = None, next_producer_id: int = 0, *, observe: bool = True
    ) -> None:
        self._context = Context(CONTROLLER, config, observing=observe)
        self._context.image = Image() if image is None else image
        self.next_producer_id = next_producer_id
        self._incarnations = {}
        self._heard_us = {}
        self._lists_eligible = config.eligible_leader_replicas
        self._election = election_rule(self._context, self._active)
        self._session_us = config.broker_session_timeout_ms * 1000
        self._unclean_us = config.unclean_leader_election_interval_ms * 1000
        self._handlers = {
            messages.Heartbeat: self._on_heartbeat,
            messages.AlterPartition: self._on_alter_partition,
            messages.RegisterBroker: self._on_register,
            messages.CreateTopic: self._on_create_topic,
            messages.DeleteTopic: self._on_delete_topic,
            messages.MoveLeader: self._on_move_leader,
            messages.LogEndResponse: self._on_log_end,
            messages.AllocateProducerIds: self._on_allocate_producer_ids,
            messages.Metadata: self._on_metadata,
        }

    def start(self, now_us: int) -> list[Effect]:
        """Give every unfenced broker of the image a fresh session: the image does not say when it was last heard."""
        self._context.begin(now_us)
        self._heard_us = {node: now_us for node, broker in self.image.brokers.items() if not broker.fenced}
        self._context.arm(now_us + self._session_us, SESSIONS)
        self._context.arm(now_us + self._unclean_us, UNCLEAN)
        self._election.pursue()
        return self._context.take()

    def on_timer(self, now_us: int, timer: Timer) -> list[Effect]:
        """Take one reminder."""
        self._context.begin(now_us)
        if timer == UNCLEAN:
            self._elect_where_none_leads()
            self._context.arm(now_us + self._unclean_us, timer)
        elif timer == ELECTIONS:
            for partition in self._election.ask_again():
                self._decide(partition)
        else:
            self._fence_the_silent(now_us)
            self._context.arm(min(self._heard_us.values(), default=now_us) + self._session_us, timer)
        return self._context.take()

    def _fence_the_silent(self, now_us: int) -> None:
        """Fence the brokers that were silent for broker.session.timeout.ms, in the order in which they fell silent."""
        silent_us = now_us - self._session_us
        for node, heard_us in sorted(self._heard_us.items(), key=lambda item: item[1]):
            if heard_us <= silent_us:
                self._fence(node)

    # --- sessions --------------------------------------------------------------------------------------------------

    def _on_register(self, message: messages.RegisterBroker) -> None:
        """Rule 20: while another incarnation's session is valid, a new one is refused."""
        node = message.broker
        registered = self.image.brokers.get(node)
        if registered is not None and self._incarnations.get(node) == message.incarnation:
            self._context.answer(
                messages.RegisterBrokerResponse(ErrorCode.NONE, message.incarnation, registered.broker_epoch)
            )
            return
        alive = node in self._heard_us and registered is not None and not registered.leaving
        if alive and self._context.config.broker_epochs:
            self._context.answer(
                messages.RegisterBrokerResponse(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message.incarnation)
            )
            return
        if not alive:
            self._fence(node)
        stopped_cleanly = registered is not None and message.previous_broker_epoch == registered.broker_epoch
        if self._lists_eligible and not stopped_cleanly:
            self._strike(node)
        self._re_elect(lambda state, _: self._online(state, node) if node in state.offline else state)
        self._incarnations[node] = message.incarnation
        epoch = self.image.version + 1
        # Without broker epochs a quick restart goes unnoticed: no fencing, the ISR as it was (KAFKA-7235).
        state = BrokerState(epoch, fenced=not alive, host=message.host, port=message.port, rack=message.rack)
        if self._context.observing:
            self._context.observe(BrokerRegistered(broker=node, broker_epoch=epoch))
        self._context.answer(messages.RegisterBrokerResponse(ErrorCode.NONE, message.incarnation, epoch))
        self._commit(brokers={**self.image.brokers, node: state})

    def _strike(self, node: NodeId) -> None:
        """Rule 15: the broker stopped uncleanly, and no node knows what its disk still has."""
        self._re_elect(lambda state, config: self._election.elect(strike(state, node), config))

    def _on_heartbeat(self, message: messages.Heartbeat) -> None:
        node = message.broker
        registered = self.image.brokers.get(node)
        if registered is None or registered.broker_epoch != message.broker_epoch:
            self._context.answer(messages.HeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH, message.broker_epoch))
            return
        self._take_offline(node, message.offline)
        if not registered.fenced or message.metadata_version >= self.image.version:
            self._heard_us[node] = self._context.now_us
        if registered.fenced and not message.leaving and message.metadata_version >= self.image.version:
            self._unfence(node, registered)
        if message.leaving and not registered.leaving:
            self._retire(node, replace(self.image.brokers[node], leaving=True))
        image = self.image
        self._context.answer(
            messages.HeartbeatResponse(
                ErrorCode.NONE,
                message.broker_epoch,
                fenced=image.brokers[node].fenced,
                may_leave=message.leaving and not self._leads(node),
                image=image if message.metadata_version < image.version else None,
            ),
        )

    def _take_offline(self, node: NodeId, partitions: Iterable[TopicPartition]) -> None:
        """Rule 29: replicas whose log directory failed leave the ISRs, and another broker leads."""
        hosted = [state for partition in partitions if (state := self.image.partition(partition)) is not None]
        failed = [state for state in hosted if node in state.replicas and node not in state.offline]
        if failed:
            self._re_elect(
                lambda state, config: (
                    self._election.elect(self._without(_offline(state, node), node), config)
                    if any(state is other for other in failed)
                    else state
                )
            )

    def _unfence(self, node: NodeId, registered: BrokerState) -> None:
        """The broker is up to date: it may lead again, first where it is the last that has everything."""
        self._commit(brokers={**self.image.brokers, node: replace(registered, fenced=False)})
        self._elect_where_none_leads()

    def _elect_where_none_leads(self) -> None:
        """Rule 14: when a broker is back; also regularly, because some elections become possible without that."""
        self._re_elect(lambda state, config: self._election.elect(state, config) if state.leader == NONE else state)

    def _fence(self, node: NodeId) -> None:
        """Rule 13: out of every ISR (but never the last member), and no leader any more."""
        self._heard_us.pop(node, None)
        registered = self.image.brokers.get(node)
        if registered is None or registered.fenced:
            return
        if self._context.observing:
            self._context.observe(BrokerFenced(broker=node, broker_epoch=registered.broker_epoch))
        self._retire(node, replace(registered, fenced=True))

    def _retire(self, node: NodeId, broker: BrokerState) -> None:
        """Take a broker that may lead no more out of its partitions, in the same image, without waiting for it."""
        self._context.image = replace(self.image, brokers={**self.image.brokers, node: broker})
        topics = self._changed(lambda state, config: self._election.elect(self._without(state, node), config))
        self._commit(topics=topics)

    def _active(self, node: NodeId) -> bool:
        broker = self.image.brokers.get(node)
        return broker is not None and not broker.fenced and not broker.leaving

    def _leads(self, node: NodeId) -> bool:
        return any(state.leader == node for topic in self.image.topics.values() for state in topic.partitions)

    # --- partitions ------------------------------------------------------------------------------------------------

    def _on_alter_partition(self, message: messages.AlterPartition) -> None:
        """Rule 10: accept a leader's proposal unless its epochs are old or a member may not be in the ISR.

        The leader takes an ineligible member's refusal as the end of the proposal, so that is what it must be: the
        partition epoch rises, and a copy that is still under way comes too late, whatever has become of the member.
        """
        name, number = partition = message.partition
        state = self.image.partition(partition)
        error = self._proposal_error(message, state)
        if state is None or error not in (ErrorCode.NONE, ErrorCode.INELIGIBLE_REPLICA):
            self._context.answer(messages.AlterPartitionResponse(message.correlation, partition, error))
            return
        topic = self.image.topics[name]
        if error:
            after, accepted = self._refused(state), None
        else:
            isr = tuple(member.broker for member in message.isr)
            after = accepted = self._settled(state, replace(state, isr=isr, recovering=False), topic.config)
        partitions = (*topic.partitions[:number], after, *topic.partitions[number + 1 :])
        self._context.answer(messages.AlterPartitionResponse(message.correlation, partition, error, accepted))
        self._commit(topics={**self.image.topics, name: replace(topic, partitions=partitions)})

    def _refused(self, state: PartitionState) -> PartitionState:
        return replace(state, partition_epoch=state.partition_epoch + 1)

    def _proposal_error(self, message: messages.AlterPartition, state: PartitionState | None) -> ErrorCode:
        broker = self.image.brokers.get(message.broker)
        members = {member.broker for member in message.isr}
        error = ErrorCode.NONE
        if broker is None or broker.broker_epoch != message.broker_epoch:
            error = ErrorCode.STALE_BROKER_EPOCH
        elif state is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif message.leader_epoch < state.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif message.broker != state.leader or message.broker not in members or not members <= set(state.replicas):
            error = ErrorCode.INVALID_REQUEST
        elif message.partition_epoch != state.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif not all(self._eligible(member, state) for member in message.isr):
            error = ErrorCode.INELIGIBLE_REPLICA
        return error

    def _eligible(self, member: messages.IsrMember, state: PartitionState) -> bool:
        """May it be in the partition's ISR, as the incarnation that fetched (KIP-841, KIP-903), on a good disk?"""
        if not self._active(member.broker) or member.broker in state.offline:
            return False
        same = member.broker_epoch in (NONE, self.image.brokers[member.broker].broker_epoch)
        return same or not self._context.config.broker_epochs

    def _changed(self, change: Change) -> dict[str, TopicState]:
        """All topics with ``change`` applied to every partition; those that did not change are the same objects."""
        topics = dict(self.image.topics)
        for name, topic in topics.items():
            partitions = tuple(
                self._settled(state, change(state, topic.config), topic.config) for state in topic.partitions
            )
            if partitions != topic.partitions:
                self._observe_elections(name, topic.partitions, partitions)
                topics[name] = replace(topic, partitions=partitions)
        return topics

    def _without(self, state: PartitionState, node: NodeId) -> PartitionState:
        """Rule 13, or rule 15 where the ISR may become empty."""
        return leave(state, node) if self._lists_eligible else without(state, node)

    def _online(self, state: PartitionState, node: NodeId) -> PartitionState:
        """The broker starts again, and may have the replica in a new, empty directory: it is on no list then."""
        back = replace(state, offline=tuple(other for other in state.offline if other != node))
        return strike(back, node) if self._lists_eligible else back

    def _settled(self, before: PartitionState, after: PartitionState, config: TopicConfig) -> PartitionState:
        return settle(before, listed(before, after, config) if self._lists_eligible else after)

    def _observe_elections(self, topic: str, before: Iterable[PartitionState], after: Iterable[PartitionState]) -> None:
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if self._context.observing and old.leader_epoch != new.leader_epoch:
                self._context.observe(
                    LeaderElected(
                        partition=str(TopicPartition(topic, number)),
                        leader=new.leader,
                        leader_epoch=new.leader_epoch,
                        isr=new.isr,
                        elr=new.elr,
                        unclean=unclean(old, new),
                    )
                )

    def _re_elect(self, change: Change) -> None:
        topics = self._changed(change)
        if topics != self.image.topics:
            self._commit(topics=topics)

    def _commit(
        self, brokers: dict[NodeId, BrokerState] | None = None, topics: dict[str, TopicState] | None = None
    ) -> None:
        """Make the next image and push it to every registered broker."""
        old = self.image
        image = Image(
            old.version + 1, old.brokers if brokers is None else brokers, old.topics if topics is None else topics
        )
        self._context.image = image
        update = messages.MetadataUpdate(image)
        for node in image.brokers:
            self._context.send(node, update)
        self._election.pursue()

    # --- requests for the cluster ----------------------------------------------------------------------------------

    def _on_create_topic(self, message: messages.CreateTopic) -> None:
        if message.topic in self.image.topics:
            self._answer(message, ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {message.topic} exists")
            return
        refused = objection(message, self.image.brokers)
        if refused is not None:
            self._answer(message, *refused)
            return
        ready = {node: broker.rack for node, broker in self.image.brokers.items() if self._active(node)}
        assignment = message.assignment or alternate(ready, message.partitions, message.replication_factor)
        partitions = tuple(new_partition(replicas, self._active) for replicas in assignment)
        topic = TopicState(message.config, partitions, self.image.version + 1)
        self._answer(message, ErrorCode.NONE)
        self._commit(topics={**self.image.topics, message.topic: topic})

    def _on_delete_topic(self, message: messages.DeleteTopic) -> None:
        if message.topic not in self.image.topics:
            self._answer(message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {message.topic} does not exist")
            return
        self._answer(message, ErrorCode.NONE)
        self._commit(topics={name: topic for name, topic in self.image.topics.items() if name != message.topic})

    def _on_move_leader(self, message: messages.MoveLeader) -> None:
        """A planned move (S03): any active ISR member may be named."""
        partition = TopicPartition(message.topic, message.partition)
        state = self.image.partition(partition)
        if state is None:
            self._answer(message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} does not exist")
        elif message.leader not in state.isr or not self._active(message.leader):
            reason = f"broker {message.leader} is not a live member of the ISR {list(state.isr)}"
            self._answer(message, ErrorCode.INELIGIBLE_REPLICA, reason)
        else:
            self._answer(message, ErrorCode.NONE)
            self._re_elect(lambda s, _: self._election.move(partition, s, message.leader) if s is state else s)

    def _on_log_end(self, message: messages.LogEndResponse) -> None:
        """Rules 27 and 28: the log that a replica would lead with."""
        self._election.on_log_end(message)
        self._decide(message.partition)

    def _decide(self, partition: TopicPartition) -> None:
        decided = self.image.partition(partition)
        self._re_elect(lambda state, _: self._election.decide(partition, state) if state is decided else state)

    def _answer(
        self,
        message: messages.CreateTopic | messages.DeleteTopic | messages.MoveLeader,
        error: ErrorCode,
        reason: str = "",
    ) -> None:
        self._context.answer(messages.TopicResponse(message.correlation, message.topic, error, reason))

    def _on_allocate_producer_ids(self, message: messages.AllocateProducerIds) -> None:
        registered = self.image.brokers.get(message.broker)
        if registered is None or registered.broker_epoch != message.broker_epoch:
            self._context.answer(messages.AllocateProducerIdsResponse(ErrorCode.STALE_BROKER_EPOCH))
            return
        first, self.next_producer_id = self.next_producer_id, self.next_producer_id + PRODUCER_IDS
        self._context.answer(messages.AllocateProducerIdsResponse(ErrorCode.NONE, first, PRODUCER_IDS))

    def _on_metadata(self, message: messages.Metadata) -> None:
        self._context.answer(messages.MetadataResponse(message.correlation, self.image))


# --- one partition: who leads, who is listed, which epochs rise ------------------------------------------------------


def _offline(state: PartitionState, node: NodeId) -> PartitionState:
    return replace(state, offline=(*state.offline, node))


def without(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` in the ISR; the last member stays, since no other has everything (rule 13)."""
    isr = tuple(member for member in state.isr if member != node)
    return replace(state, isr=isr) if isr and len(isr) < len(state.isr) else state


def settle(before: PartitionState, after: PartitionState) -> PartitionState:
    """``after`` with its partition epoch raised for any change, its leader epoch for another leader (KAFKA-15021)."""
    if after == before:
        return before
    assert after.leader in {NONE, *after.isr}, "a leader is in the ISR"
    assert {*after.isr, *after.elr} <= set(after.replicas), "the ISR and the ELR are of the replicas"
    assert not set(after.isr) & set(after.elr), "an in-sync replica is not on the second list"
    moved = after.leader != before.leader
    return replace(after, leader_epoch=before.leader_epoch + moved, partition_epoch=before.partition_epoch + 1)


def leave(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` in the ISR, which may become empty."""
    return replace(state, isr=tuple(member for member in state.isr if member != node))


def strike(state: PartitionState, node: NodeId) -> PartitionState:
    """``state`` without ``node`` on either list: it was started after an unclean stop."""
    return replace(leave(state, node), elr=tuple(member for member in state.elr if member != node))


def unclean(before: PartitionState, after: PartitionState) -> bool:
    """Tell whether the leader of ``after`` was elected in an unclean election: it was on no list before."""
    return after.recovering and after.leader not in {NONE, *before.isr, *before.elr}


def listed(before: PartitionState, after: PartitionState, config: TopicConfig) -> PartitionState:
    """``after``, which follows ``before``, with its ELR and its last known leader.

    An unclean election begins a new history: a broker that left with more than the new leader has is eligible no more.
    That leader itself is eligible when it stops in order, whether it was still recovering or not.
    """
    elr: set[NodeId] = set()
    if len(after.isr) < min(config.min_insync_replicas, len(after.replicas)) and not unclean(before, after):
        elr = {*after.elr, *before.isr} - set(after.isr)
    last_known = before.last_known_leader if before.leader == NONE else before.leader
    return replace(
        after,
        elr=tuple(node for node in after.replicas if node in elr),
        last_known_leader=last_known if after.leader == NONE else NONE,
    )


# --- where a new topic's replicas go, and why a topic cannot be made -------------------------------------------------


def name_objection(name: str) -> tuple[ErrorCode, str] | None:
    """The error of a name that no topic can have, with a sentence; None if one can."""
    if _NAME.fullmatch(name) and name not in {".", ".."}:
        return None
    reason = f'"{name}" is not a topic name: use 1 to 249 letters, digits, dots, dashes and underscores'
    return ErrorCode.INVALID_TOPIC_EXCEPTION, reason


def objection(message: messages.CreateTopic, brokers: Mapping[NodeId, BrokerState]) -> tuple[ErrorCode, str] | None:
    """The error of a topic that cannot be made, with a sentence; None if it can."""
    if (refused := name_objection(message.topic)) is not None:
        return refused
    if message.assignment:
        return _assignment_objection(message.assignment, brokers)
    if not 1 <= message.partitions <= PARTITIONS_MAX:
        return ErrorCode.INVALID_PARTITIONS, f"a topic has 1 to {PARTITIONS_MAX} partitions, not {message.partitions}"
    ready = sum(not broker.fenced for broker in brokers.values())
    if not 1 <= message.replication_factor <= ready:
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {message.replication_factor} needs that many unfenced brokers; there are {ready}",
        )
    return None


def _assignment_objection(
    assignment: Assignment, brokers: Mapping[NodeId, BrokerState]
) -> tuple[ErrorCode, str] | None:
    for number, replicas in enumerate(assignment):
        if not replicas or len(set(replicas)) < len(replicas) or len(replicas) != len(assignment[0]):
            reason = "needs as many replicas as partition 0, at least one, and each of them once"
        elif any(node not in brokers for node in replicas):
            reason = "names a broker that is not registered"
        elif all(brokers[node].fenced for node in replicas):
            reason = "has only fenced brokers"
        else:
            continue
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {number} {reason}"
    return None


def new_partition(replicas: tuple[NodeId, ...], active: Active) -> PartitionState:
    """A partition's first state: every active replica is in sync, the first of them leads."""
    isr = tuple(node for node in replicas if active(node))
    return PartitionState(replicas=replicas, isr=isr, leader=isr[0], leader_epoch=0, partition_epoch=0)

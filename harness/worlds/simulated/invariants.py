"""The invariants of the core, asked of a whole simulated cluster at every moment, whatever network and faults do.

The rules themselves are in :mod:`harness.broker.core.invariants`. This module says when they are asked:
:meth:`Invariants.step` watches the steps of the nodes, so the step that breaks something is found, and not only the
loss that follows from it a thousand steps later.

Looking at everything after every step would cost more than the simulation. So after a change of the controller's image
all candidates for leadership are looked at, after an answer to a client the log partition that it is about, and after
what may have changed a replica's epoch or shortened its log the node: nothing that a client is told comes from a state
that was not looked at. :meth:`Invariants.look` looks at everything.

Rules of old releases, unclean elections and destroyed disks break some of them by design; those are not asked then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

from harness.broker.core import messages
from harness.broker.core.broker import Broker
from harness.broker.core.commit_rule import required_acks
from harness.broker.core.effects import Deliver, Effect, Timer
from harness.broker.core.invariants import (
    Broken,
    begins_new_history,
    committed_has_its_copies,
    consistent_reads,
    eligible_stay,
    epochs_grow,
    high_watermark_is_committed,
    high_watermark_monotonic,
    high_watermark_on_log,
    isr_of_replicas,
    keeps_committed,
    maximal_isr_is_larger,
    one_leader_an_epoch,
)
from harness.broker.core.replica import Replica
from harness.broker.core.types import (
    NONE,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerConfig,
    Image,
    NodeId,
    PartitionState,
    TopicPartition,
)
from harness.worlds.simulated.cluster import SimulatedCluster
from harness.worlds.simulated.committed import Committed, epoch_at, has_record
from harness.worlds.simulated.coordinator_invariants import CoordinatorInvariants
from harness.worlds.simulated.excused_replicas import ExcusedReplicas
from harness.worlds.simulated.log_invariants import TAKES_AWAY, LogInvariants
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import CONTROLLER, node_name
from workloads import BrokenInvariant

#: The numbers of clients begin above those of brokers and of the controller.
_NODES: Final = CONTROLLER + 1
_DIVERGING: Final = attrgetter("diverging")


class InvariantBrokenError(AssertionError):
    """The core reached a state that its rules exclude.

    ``name`` is the invariant's, ``partition`` the log partition, and the text says where and how.
    """

    def __init__(self, name: str, partition: TopicPartition, text: str) -> None:
        super().__init__(f"{name}: {partition}: {text}")
        self.name = name
        self.partition = partition


def _raise(error: InvariantBrokenError) -> None:
    raise error


class Invariants:
    """Looks at a ``cluster`` with each step, at no more than what the step can have changed.

    ``config`` says which rules are on, ``broken`` is called with what is wrong. To be made before the cluster starts.
    """

    def __init__(
        self, cluster: SimulatedCluster, config: BrokerConfig, broken: Callable[[InvariantBrokenError], None] = _raise
    ) -> None:
        self._cluster = cluster
        self._broken = broken
        self._image = Image()
        self._leaders: dict[tuple[TopicPartition, int], NodeId] = {}
        self._committed: dict[TopicPartition, Committed] = {}
        self._remade: set[str] = set()
        self._high_watermarks: dict[Replica, tuple[int, int]] = {}
        self._suspects = ExcusedReplicas(config)
        self._damage_seen = 0
        self._damaged: set[NodeId] = set()
        self._config = config
        self._now_us = cluster.now_us
        self._coordinators = CoordinatorInvariants(config, self._note)
        self._logs = LogInvariants()
        #: The topics from which records go, and whether there is a coordinator, by the image before.
        self._kept_in_part: tuple[str, ...] = ()
        self._is_coordinated = False
        #: A number of copies commits a record, and not the ISR (rules 27, 28).
        self._by_number = required_acks(config) != NONE
        #: Only an unclean election or a destroyed disk loses committed records (:func:`keeps_committed`).
        self.keeps_committed = keeps_committed(config)

    def step(self, node: NodeId, cause: object, effects: Sequence[Effect]) -> None:
        """Look at what a step of ``node`` can have changed (:data:`harness.worlds.simulated.nodes.Watcher`).

        Raises:
            InvariantBrokenError: something is wrong.
        """
        if node == CONTROLLER:
            image = self._cluster.image()
            if image is not self._image:
                self._look_at_image(image, cause if isinstance(cause, messages.RegisterBroker) else None)
            return
        if self._is_coordinated or self._kept_in_part:
            broker = self._cluster.broker(node)
            if broker is not None and self._is_coordinated:
                self._coordinators.step(node, broker, cause, effects, self._now_us())
            if broker is not None and self._kept_in_part:
                self._look_at_what_goes(node, broker, cause)
        changes = _CHANGES.get(type(cause))
        if changes is not None and changes(cause):
            self._look_at_node(node)
        for effect in effects:
            if type(effect) is Deliver and effect.target >= _NODES:
                self._on_answer(node, effect.message)

    def look(self) -> None:
        """Look at everything, also at logs of dead brokers."""
        self._look_at_image(self._cluster.image())
        for node in self._cluster.brokers:
            self._look_at_node(node)

    def _on_answer(self, node: NodeId, message: Any) -> None:
        """A client is answered: by a leader whose state is in order, and a consumer with what others read too."""
        kind = type(message)
        if kind is messages.ProduceResponse:
            self._look_at_replica(node, message.partition)
        elif kind is messages.FetchResponse:
            for answer in message.partitions:
                if answer.batches:
                    self._look_at_replica(node, answer.partition)
                    self._reads_are_consistent(node, answer)

    def _on_damage(self) -> None:
        """A disk has lost records. Where a number of copies commits a record, nothing is claimed from then on."""
        self.keeps_committed &= not self._by_number
        for node in self._cluster.damaged[self._damage_seen :]:
            self._suspects.add(node, self._image)
            self._damaged.add(node)
        self._damage_seen = len(self._cluster.damaged)

    # --- the controller ----------------------------------------------------------------------------------------------

    def _note(self, partition: TopicPartition, broken: Broken | None) -> None:
        if broken is not None:
            self._broken(InvariantBrokenError(broken[0], partition, broken[1]))

    def _look_at_image(self, image: Image, registration: messages.RegisterBroker | None = None) -> None:
        if len(self._cluster.damaged) > self._damage_seen:
            self._on_damage()
        before, self._image = self._image, image
        going = (name for name, topic in image.topics.items() if topic.config.compacted or topic.config.expires)
        self._kept_in_part = tuple(going)
        self._is_coordinated = not image.topics.keys().isdisjoint((TRANSACTIONS_TOPIC, OFFSETS_TOPIC))
        self._suspects.registered(image)
        for name, topic in image.topics.items():
            old = before.topics.get(name)
            if old is topic:
                continue
            if old is None or old.identity != topic.identity:
                self._forget(name)
                old = topic
            for number, (earlier, state) in enumerate(zip(old.partitions, topic.partitions, strict=True)):
                partition = TopicPartition(name, number)
                self._note(partition, isr_of_replicas(state))
                self._note(partition, epochs_grow(earlier, state))
                self._elected(partition, earlier, state, _struck(registration, before, earlier))
                self._candidates_are_complete(partition, state)

    def _elected(
        self, partition: TopicPartition, before: PartitionState, after: PartitionState, struck: Sequence[NodeId]
    ) -> None:
        """After an unclean election, and under a leader whose disk has lost records, the log is what that one has."""
        topic = self._image.topics[partition.topic].config
        live = [node for node in after.replicas if node not in after.offline and _may_lead(self._image, node)]
        new_history = begins_new_history(self._config, topic, before, after, live=live, struck=struck)
        if self._config.eligible_leader_replicas and not new_history:
            self._note(partition, eligible_stay(topic, before, after, struck=struck))
        if self._suspects.lead(partition, after) or new_history:
            self._committed[partition] = Committed(since_epoch=after.leader_epoch)

    def _candidates_are_complete(self, partition: TopicPartition, state: PartitionState) -> None:
        """Ask it of every candidate; of a broker whose disk has lost records see :class:`ExcusedReplicas`.

        Where a number of replicas commits a record, that number of replicas has it too.
        """
        committed = self._committed_of(partition)
        for node in self._candidates(state):
            if self._lacking(node, partition, committed) is not None:
                self._has_committed(node, partition)
        if self._by_number:
            self._has_its_copies(partition, state)

    def _candidates(self, state: PartitionState) -> tuple[NodeId, ...]:
        if not self._by_number:
            return (*state.isr, *state.elr)
        return () if state.leader == NONE else (state.leader,)

    def _has_its_copies(self, partition: TopicPartition, state: PartitionState) -> None:
        lacking = [why for node in state.replicas if (why := self._lacks_committed(node, partition))]
        self._note(partition, committed_has_its_copies(self._config, len(state.replicas), lacking))

    # --- brokers -----------------------------------------------------------------------------------------------------

    def _look_at_what_goes(self, node: NodeId, broker: Broker, cause: object) -> None:
        """After the step of a cleaner or of retention its log partition, after others what may have been appended."""
        if type(cause) is Timer:
            replica = broker.replicas.get(cause.subject) if cause.name in TAKES_AWAY else None
            if replica is not None and replica.partition.topic in self._image.topics:
                config = self._image.topics[replica.partition.topic].config
                for broken in self._logs.taken_away(node, replica, config, cause, self._now_us()):
                    self._note(replica.partition, broken)
        elif type(cause) in _APPENDS:
            for partition, replica in broker.replicas.items():
                if partition.topic in self._kept_in_part:
                    self._look_at_log(node, partition, replica)

    def _look_at_log(self, node: NodeId, partition: TopicPartition, replica: Replica) -> None:
        topic = self._image.topics.get(partition.topic)
        if topic is not None and self.keeps_committed:
            for broken in self._logs.look(node, replica, topic.config):
                self._note(partition, broken)

    def _look_at_node(self, node: NodeId) -> None:
        broker = self._cluster.broker(node) if node in self._cluster.brokers else None
        for partition in () if broker is None else broker.replicas:
            self._look_at_replica(node, partition)

    def _look_at_replica(self, node: NodeId, partition: TopicPartition) -> None:
        broker = self._cluster.broker(node)
        replica = None if broker is None else broker.replicas.get(partition)
        state = self._image.partition(partition)
        if replica is None or state is None or replica.leader_epoch == NONE:
            return
        self._high_watermark_is_in_order(node, partition, replica)
        self._look_at_log(node, partition, replica)
        if replica.leading:
            first = self._leaders.setdefault((partition, replica.leader_epoch), node)
            broken = one_leader_an_epoch(replica.leader_epoch, first, node)
            if state.isr != replica.maximal_isr:
                broken = broken or maximal_isr_is_larger(state, replica.leader_epoch, replica.maximal_isr)
            if broken is not None:
                self._note(partition, broken)
            if replica.high_watermark > self._committed_of(partition).end_offset:
                self._commit(partition, replica, state)
        else:
            if node in self._candidates(state):
                self._has_committed(node, partition)
            self._follows_with_what_is_committed(node, partition, replica, state)
        if self._by_number:
            self._has_its_copies(partition, state)

    def _high_watermark_is_in_order(self, node: NodeId, partition: TopicPartition, replica: Replica) -> None:
        high_watermark = replica.high_watermark
        broken = high_watermark_on_log(node, high_watermark, replica.log.start_offset, replica.log.end_offset)
        if replica.leading:
            now = (replica.leader_epoch, high_watermark)
            before = self._high_watermarks.get(replica, (NONE, 0))
            if before != now:
                broken = broken or high_watermark_monotonic(node, before, now)
                self._high_watermarks[replica] = now
        if broken is not None:
            self._note(partition, broken)

    def _commit(self, partition: TopicPartition, replica: Replica, state: PartitionState) -> None:
        """Below a leader's high watermark are the records below every earlier one; then all candidates have more."""
        end, committed = replica.high_watermark, self._committed_of(partition)
        if not self.keeps_committed or replica.leader_epoch < committed.since_epoch:
            return
        self._has_committed(self._leaders[partition, replica.leader_epoch], partition)
        committed.commit(replica.log, end)
        self._candidates_are_complete(partition, state)

    def _follows_with_what_is_committed(
        self, node: NodeId, partition: TopicPartition, replica: Replica, state: PartitionState
    ) -> None:
        """Ask it of a follower; not after an unclean election, or under a leader whose disk has lost records.

        What a high watermark covers beyond all that is known was committed too, while nothing was looked at: then every
        candidate has it.
        """
        end, committed = replica.high_watermark, self._committed_of(partition)
        if (
            not self.keeps_committed
            or self._by_number
            or committed.since_epoch != NONE
            or partition.topic in self._remade
        ):
            return
        if not 0 < end <= replica.log.end_offset or (node, partition) in self._suspects.replicas:
            return
        last = min(end, committed.end_offset) - 1
        expected = committed.last_epoch if end > committed.end_offset else committed.epoch_at(last)
        broken = None
        if expected != NONE and last >= replica.log.start_offset:
            broken = high_watermark_is_committed(node, end, last, epoch_at(replica.log, last), expected)
            broken = broken if broken is not None and has_record(replica.log, last) else None
        self._note(partition, broken)
        if broken is None and end > committed.end_offset:
            committed.commit(replica.log, end)
            self._candidates_are_complete(partition, state)

    def _reads_are_consistent(self, node: NodeId, answer: messages.FetchedPartition) -> None:
        partition, committed = answer.partition, self._committed_of(answer.partition)
        broker = self._cluster.broker(node)
        replica = None if broker is None else broker.replicas.get(partition)
        if not self.keeps_committed or replica is None or replica.leader_epoch < committed.since_epoch:
            return
        if partition.topic in self._remade:
            return
        for batch in answer.batches:
            contradiction = committed.contradicted_by(batch)
            if contradiction is not None:
                self._note(partition, consistent_reads(f"broker {node}", batch.base_offset, *contradiction))

    # --- what is known of a log partition ----------------------------------------------------------------------------

    def _committed_of(self, partition: TopicPartition) -> Committed:
        committed = self._committed.get(partition)
        if committed is None:
            committed = self._committed[partition] = Committed()
        return committed

    def _has_committed(self, node: NodeId, partition: TopicPartition) -> None:
        """The log of ``node`` has all that is committed; where it has not, the message names the replicas that have."""
        lacks = self._lacks_committed(node, partition)
        if lacks is not None:
            name, text = lacks
            state = self._image.partition(partition)
            whole = [] if state is None else [n for n in state.replicas if self._lacks_committed(n, partition) is None]
            where = ", ".join(map(node_name, whole)) or "no broker"
            self._broken(InvariantBrokenError(name, partition, f"{text}; all of it is on {where}"))

    def _lacks_committed(self, node: NodeId, partition: TopicPartition) -> Broken | None:
        """The invariant that the log of ``node`` breaks by what it lacks, None if it lacks nothing or is excused."""
        committed = self._committed.get(partition)
        if committed is None or not self.keeps_committed or partition.topic in self._remade:
            return None
        if len(self._cluster.damaged) > self._damage_seen:
            self._on_damage()
        if self._suspects.replicas and (node, partition) in self._suspects.replicas:
            return None
        return self._lacking(node, partition, committed)

    def _lacking(self, node: NodeId, partition: TopicPartition, committed: Committed) -> Broken | None:
        """The same, excused or not. Only disks that have lost something can have bad batches."""
        log = self._cluster.log(node, partition)
        broken = committed.lacking_in(node, log)
        if broken is None and node in self._damaged:
            broken = committed.damaged_in(node, log, self._cluster.unread.get((node, partition), ()))
        return broken

    def _forget(self, topic: str) -> None:
        """A topic was made, maybe again under an old name, and is another one then.

        Nothing is claimed of what such a topic has committed: fetches do not carry its identity (KIP-516), so a broker
        that saw neither change confuses the two.
        """
        if any(partition.topic == topic for partition, _ in self._leaders):
            self._remade.add(topic)
        self._committed = {partition: kept for partition, kept in self._committed.items() if partition.topic != topic}
        self._leaders = {key: leader for key, leader in self._leaders.items() if key[0].topic != topic}


class FirstBroken:
    """Watches the invariants of a ``cluster``; the first that is broken is ``broken``, and the run goes on."""

    def __init__(self, cluster: SimulatedCluster, config: BrokerConfig, loop: Loop) -> None:
        self._loop = loop
        self.broken: BrokenInvariant | None = None
        cluster.watch(Invariants(cluster, config, self._note).step)

    def _note(self, error: InvariantBrokenError) -> None:
        if self.broken is None:
            partition, now_us = str(error.partition), self._loop.time_us
            self.broken = BrokenInvariant(name=error.name, partition=partition, time_us=now_us, text=str(error))


def _struck(registration: messages.RegisterBroker | None, before: Image, state: PartitionState) -> tuple[NodeId, ...]:
    """The broker that registers, where no list may hold it: it stopped uncleanly, or lacks the replica (rule 15)."""
    if registration is None:
        return ()
    node = registration.broker
    registered = before.brokers.get(node)
    clean = registered is not None and registration.previous_broker_epoch == registered.broker_epoch
    return () if clean and node not in state.offline else (node,)


def _may_lead(image: Image, node: NodeId) -> bool:
    broker = image.brokers.get(node)
    return broker is not None and not broker.fenced and not broker.leaving


def _always(_answer: Any) -> bool:
    return True


def _diverges(answer: Any) -> bool:
    return any(map(_DIVERGING, answer.partitions))


def _brings_an_image(answer: Any) -> bool:
    return answer.image is not None


#: Messages after which a log may be longer, or more of it committed.
_APPENDS: Final = frozenset({messages.Produce, messages.Fetch, messages.FetchResponse, messages.ProduceResponse})
#: Messages that may give a replica another epoch or a shorter log, and whether one does.
_CHANGES: Final[dict[type, Callable[[Any], bool]]] = {
    messages.MetadataUpdate: _always,
    messages.AlterPartitionResponse: _always,
    messages.OffsetForLeaderEpochResponse: _always,
    messages.ListOffsetsResponse: _always,
    messages.FetchResponse: _diverges,
    messages.HeartbeatResponse: _brings_an_image,
}

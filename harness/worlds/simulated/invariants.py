"""What holds at every moment in a whole simulated cluster, whatever the network and the faults do.

The rules about one replica alone are assertions in the core (``replica.py``); here are those that need two nodes to
be looked at together. :meth:`Invariants.step` watches the steps of the nodes, so the step that breaks something is
found, and not only the loss that follows from it a thousand steps later. They are the properties of the models of
KIP-966 and KIP-101 (``kip_966_properties.tla``, ``Kip101.tla``), under the names that those give them.

Looking at everything after every step would cost more than the simulation. So after a change of the controller's image
all candidates for leadership are looked at, after an answer to a client the log partition that it is about, and after
what may have changed a replica's epoch or shortened its log the node: nothing that a client is told comes from a state
that was not looked at. :meth:`Invariants.look` looks at everything.

Some rules of old releases, unclean elections and destroyed disks break some of them by design. Each says below under
which settings it holds; the others are simply not looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from harness.reference.core import messages
from harness.reference.core.commit_rule import copies, required_acks
from harness.reference.core.effects import Effect, Send
from harness.reference.core.log import Log, MemoryLog
from harness.reference.core.replica import Replica
from harness.reference.core.types import NONE, BrokerConfig, Image, NodeId, PartitionState, TopicPartition
from harness.worlds.simulated.cluster import Cluster
from harness.worlds.simulated.excused_replicas import ExcusedReplicas
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import CONTROLLER
from workloads import BrokenInvariant

#: The numbers of clients begin above those of brokers and of the controller.
_NODES: Final = CONTROLLER + 1
_DIVERGING: Final = attrgetter("diverging")


class InvariantBrokenError(AssertionError):
    """The core reached a state that its rules exclude.

    ``name`` is the invariant's, ``at`` the log partition, and the text says where and how.
    """

    def __init__(self, name: str, at: TopicPartition, text: str) -> None:
        super().__init__(f"{name}: {at}: {text}")
        self.name = name
        self.at = at


class Committed(msgspec.Struct):
    """What is known of one log partition: of what was ever committed, and of what was read of it.

    ``end_offset`` is its length, ``last_epoch`` the leader epoch of its last record. That is enough to know all of it:
    a leader epoch has one leader, which only appends, so two logs with the same epoch at an offset hold the same
    records up to there (KIP-101). ``epochs`` are its leader epochs with their first offsets, as a log has them.
    ``read`` has the records that consumers got, by the first offset of their batch.
    Leaders of epochs before ``since_epoch`` commit nothing that is claimed here.
    """

    end_offset: int = 0
    last_epoch: int = NONE
    epochs: Sequence[tuple[int, int]] = ()
    since_epoch: int = NONE
    read: dict[int, object] = {}


def _raise(error: InvariantBrokenError) -> None:
    raise error


class Invariants:
    """Looks at a ``cluster`` with each step, at no more than what the step can have changed.

    ``config`` says which rules are on, ``broken`` is called with what is wrong. To be made before the cluster starts.
    """

    def __init__(
        self, cluster: Cluster, config: BrokerConfig, broken: Callable[[InvariantBrokenError], None] = _raise
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
        #: How many copies commit a record (None: the majority), and whether it is they and not the ISR (rules 27, 28).
        self._required = required_acks(config)
        self._by_number = self._required != NONE
        #: Whether nothing that is committed may be lost but by an unclean election or a destroyed disk: the rules are
        #: those since 2.1 (KIP-101, 279, 320, KAFKA-7128), a quick restart is noticed (rule 20), and elections look for
        #: what the commit rule leaves behind.
        self.keeps_committed = config.truncation in ("kip-320", "on-fetch") and config.isr_join_epoch_rule
        self.keeps_committed &= config.fetch_fencing and config.broker_epochs
        self.keeps_committed &= not self._by_number or config.leader_election == "largest-epoch-and-log-end"

    def step(self, node: NodeId, cause: object, effects: Sequence[Effect]) -> None:
        """Look at what a step of ``node`` can have changed (:data:`harness.worlds.simulated.nodes.Watcher`).

        Raises:
            InvariantBrokenError: something is wrong.
        """
        if node == CONTROLLER:
            image = self._cluster.image()
            if image is not self._image:
                self._look_at_image(image)
            return
        changes = _CHANGES.get(type(cause))
        if changes is not None and changes(cause):
            self._look_at_node(node)
        for effect in effects:
            if type(effect) is Send and effect.target >= _NODES:
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
        """A disk has lost records. Where so many copies commit a record, nothing is claimed from then on."""
        self.keeps_committed &= not self._by_number
        for node in self._cluster.damaged[self._damage_seen :]:
            self._suspects.add(node, self._image)
        self._damage_seen = len(self._cluster.damaged)

    # --- the controller ----------------------------------------------------------------------------------------------

    def _look_at_image(self, image: Image) -> None:
        if len(self._cluster.damaged) > self._damage_seen:
            self._on_damage()
        before, self._image = self._image, image
        self._suspects.registered(image)
        for name, topic in image.topics.items():
            old = before.topics.get(name)
            if old is topic:
                continue
            if old is None or old.identity != topic.identity:
                self._forget(name)
                old = topic
            for number, (earlier, state) in enumerate(zip(old.partitions, topic.partitions, strict=True)):
                at = TopicPartition(name, number)
                self._isr_of_replicas(at, state)
                self._epochs_grow(at, earlier, state)
                self._begins_anew(at, earlier, state)
                self._candidates_are_complete(at, state)

    def _isr_of_replicas(self, at: TopicPartition, state: PartitionState) -> None:
        """TypeOK: the ISR and the ELR are apart, and of the replicas; a leader is in the ISR. Holds always."""
        isr, elr = set(state.isr), set(state.elr)
        if isr & elr or not isr | elr <= set(state.replicas) or state.leader not in {NONE, *isr}:
            self._broken(InvariantBrokenError("isr-of-replicas", at, str(state)))

    def _epochs_grow(self, at: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """EpochsGrow: every change has a larger partition epoch, another leader a larger leader epoch. Holds always."""
        if after == before:
            return
        moved = after.leader != before.leader
        if after.partition_epoch <= before.partition_epoch or after.leader_epoch < before.leader_epoch + moved:
            self._broken(InvariantBrokenError("epochs-grow", at, f"{after} follows {before}"))

    def _begins_anew(self, at: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """After an unclean election, and under a leader whose disk has lost records, the log is what that one has."""
        unclean = after.recovering and after.leader not in (NONE, before.leader)
        if self._suspects.lead(at, after) or unclean:
            self._committed[at] = Committed(since_epoch=after.leader_epoch)

    def _candidates_are_complete(self, at: TopicPartition, state: PartitionState) -> None:
        """LeaderCandidateCompleteness: whoever may be elected, dead or alive, has everything that was ever committed.

        Holds while ``keeps_committed``; of a broker whose disk has lost records see :class:`ExcusedReplicas`. Where a
        number of replicas commits, whoever was elected has it, and so many replicas do.
        """
        known = self._known(at)
        for node in self._candidates(state):
            if not _has_all(self._cluster.log(node, at), known):
                self._has_committed(node, at)
        if self._by_number:
            self._has_its_copies(at, state)

    def _candidates(self, state: PartitionState) -> tuple[NodeId, ...]:
        if not self._by_number:
            return (*state.isr, *state.elr)
        return () if state.leader == NONE else (state.leader,)

    def _has_its_copies(self, at: TopicPartition, state: PartitionState) -> None:
        """StateMachineSafety, as far as logs show it: so many replicas as commit a record have all that is committed.

        It holds under the rules 27 and 28, while ``keeps_committed``: elections by leader epoch and log end.
        """
        lacking = [why for node in state.replicas if (why := self._lacks_committed(node, at))]
        if len(state.replicas) - len(lacking) < copies(self._required, len(state.replicas)):
            self._broken(InvariantBrokenError("committed-has-its-copies", at, "; ".join(text for _, text in lacking)))

    # --- brokers -----------------------------------------------------------------------------------------------------

    def _look_at_node(self, node: NodeId) -> None:
        broker = self._cluster.broker(node) if node in self._cluster.brokers else None
        for at in () if broker is None else broker.replicas:
            self._look_at_replica(node, at)

    def _look_at_replica(self, node: NodeId, at: TopicPartition) -> None:
        broker = self._cluster.broker(node)
        replica = None if broker is None else broker.replicas.get(at)
        state = self._image.partition(at)
        if replica is None or state is None or replica.leader_epoch == NONE:
            return
        self._high_watermark_on_log(at, replica)
        if replica.leading:
            self._one_leader_an_epoch(node, at, replica)
            if state.isr != replica.maximal_isr:
                self._maximal_isr_is_larger(at, replica, state)
            if replica.high_watermark > self._known(at).end_offset:
                self._commit(at, replica, state)
        else:
            if node in self._candidates(state):
                self._has_committed(node, at)
            self._follows_with_what_is_committed(node, at, replica, state)
        if self._by_number:
            self._has_its_copies(at, state)

    def _high_watermark_on_log(self, at: TopicPartition, replica: Replica) -> None:
        """TypeOK: what is committed is on the log; and a leader's high watermark never moves back. Holds always.

        Under a new leader a follower's may move back (rule 8), and so may that of a process that was started again.
        """
        high_watermark = replica.high_watermark
        if not 0 <= high_watermark <= replica.log.end_offset:
            text = f"a high watermark of {high_watermark} over a log that ends at {replica.log.end_offset}"
            self._broken(InvariantBrokenError("high-watermark-on-log", at, text))
        if replica.leading:
            epoch, earlier = self._high_watermarks.get(replica, (NONE, 0))
            if epoch == replica.leader_epoch and high_watermark < earlier:
                text = f"the leader's high watermark moved from {earlier} back to {high_watermark}"
                self._broken(InvariantBrokenError("high-watermark-monotonic", at, text))
            self._high_watermarks[replica] = (replica.leader_epoch, high_watermark)

    def _one_leader_an_epoch(self, node: NodeId, at: TopicPartition, replica: Replica) -> None:
        """OneLeaderPerEpoch: in a leader epoch one broker leads. Holds always: the controller counts them (rule 13)."""
        leader = self._leaders.setdefault((at, replica.leader_epoch), node)
        if leader != node:
            text = f"brokers {leader} and {node} lead in epoch {replica.leader_epoch}"
            self._broken(InvariantBrokenError("one-leader-an-epoch", at, text))

    def _maximal_isr_is_larger(self, at: TopicPartition, replica: Replica, state: PartitionState) -> None:
        """ReplicationQuorumSuperset: what the controller calls in sync, the leader waits for. Holds always.

        Only the leader of the present epoch is looked at: a deposed one commits nothing, because whom it waits for
        fetches from another.
        """
        if replica.leader_epoch != state.leader_epoch:
            return
        if not set(state.isr) <= set(replica.maximal_isr):
            text = f"the controller's ISR is {state.isr}, and the leader {state.leader} counts {replica.maximal_isr}"
            self._broken(InvariantBrokenError("maximal-isr-is-larger", at, text))

    def _commit(self, at: TopicPartition, replica: Replica, state: PartitionState) -> None:
        """LeaderCompleteness: the records below a leader's high watermark are those below every earlier one.

        Holds while ``keeps_committed``.
        """
        end, known = replica.high_watermark, self._known(at)
        if not self.keeps_committed or replica.leader_epoch < known.since_epoch:
            return
        self._has_committed(self._leaders[at, replica.leader_epoch], at)
        self._is_committed(known, replica.log, end)
        self._candidates_are_complete(at, state)

    def _follows_with_what_is_committed(
        self, node: NodeId, at: TopicPartition, replica: Replica, state: PartitionState
    ) -> None:
        """LogMatching: what a follower's high watermark covers is committed, for consumers may read it there (rule 8).

        What it covers beyond all that is known was committed too, while nobody looked: then every candidate has it.
        Holds while ``keeps_committed``, until an unclean election, or a leader whose disk has lost records.
        """
        end, known = replica.high_watermark, self._known(at)
        if not self.keeps_committed or self._by_number or known.since_epoch != NONE or at.topic in self._remade:
            return
        if not 0 < end <= replica.log.end_offset or (node, at) in self._suspects.replicas:
            return
        if end > known.end_offset:
            if known.end_offset and _epoch_at(replica.log, known.end_offset - 1) != known.last_epoch:
                self._broken(_uncommitted(node, at, end, known.end_offset - 1))
                return
            self._is_committed(known, replica.log, end)
            self._candidates_are_complete(at, state)
        elif _epoch_in(known.epochs, end - 1) != _epoch_at(replica.log, end - 1):
            self._broken(_uncommitted(node, at, end, end - 1))

    def _is_committed(self, known: Committed, log: Log, end: int) -> None:
        last_epoch = _epoch_at(log, end - 1)
        if last_epoch != known.last_epoch:
            known.epochs = tuple(log.epochs())
        known.end_offset, known.last_epoch = end, last_epoch

    def _reads_are_consistent(self, node: NodeId, answer: messages.FetchedPartition) -> None:
        """ConsistentRead: at an offset all consumers get the same record, at any time.

        Holds while ``keeps_committed``.
        """
        at, known = answer.partition, self._known(answer.partition)
        broker = self._cluster.broker(node)
        replica = None if broker is None else broker.replicas.get(at)
        if not self.keeps_committed or replica is None or replica.leader_epoch < known.since_epoch:
            return
        if at.topic in self._remade:
            return
        for batch in answer.batches:
            read = known.read.setdefault(batch.base_offset, batch.records)
            if read is not batch.records and read != batch.records:
                text = f"broker {node} has another record for a consumer at {batch.base_offset} than one has read there"
                self._broken(InvariantBrokenError("consistent-reads", at, text))

    # --- what is known of a log partition ----------------------------------------------------------------------------

    def _known(self, at: TopicPartition) -> Committed:
        known = self._committed.get(at)
        if known is None:
            known = self._committed[at] = Committed()
        return known

    def _has_committed(self, node: NodeId, at: TopicPartition) -> None:
        """LogMatching: the log of ``node`` has all that is committed, with the same epoch at its last record.

        Holds while ``keeps_committed``.
        """
        lacks = self._lacks_committed(node, at)
        if lacks is not None:
            name, text = lacks
            state = self._image.partition(at)
            whole = [] if state is None else [n for n in state.replicas if self._lacks_committed(n, at) is None]
            rest = f"brokers {whole} have all of it" if whole else "no broker has all of it"
            self._broken(InvariantBrokenError(name, at, f"{text}; {rest}"))

    def _lacks_committed(self, node: NodeId, at: TopicPartition) -> tuple[str, str] | None:
        """The invariant that the log of ``node`` breaks by what it lacks, and how; None if it lacks nothing."""
        known = self._committed.get(at)
        if known is None or not self.keeps_committed or at.topic in self._remade:
            return None
        if len(self._cluster.damaged) > self._damage_seen:
            self._on_damage()
        if self._suspects.replicas and (node, at) in self._suspects.replicas:
            return None
        log = self._cluster.log(node, at) or MemoryLog()
        end = known.end_offset
        if _has_all(log, known):
            return None
        if log.end_offset < end:
            return "candidates-are-complete", f"broker {node} may lead with {log.end_offset} of {end} committed offsets"
        return "logs-match", f"broker {node} has another record than the committed one at {end - 1}"

    def _forget(self, topic: str) -> None:
        """A topic was made, maybe again under an old name, and is another one then.

        Nothing is claimed of what such a topic has committed: fetches do not carry its identity (KIP-516), so a broker
        that saw neither change confuses the two.
        """
        if any(at.topic == topic for at, _ in self._leaders):
            self._remade.add(topic)
        self._committed = {at: kept for at, kept in self._committed.items() if at.topic != topic}
        self._leaders = {key: leader for key, leader in self._leaders.items() if key[0].topic != topic}


class FirstBroken:
    """Watches the invariants of a ``cluster``; the first that is broken is ``found``, and the run goes on."""

    def __init__(self, cluster: Cluster, config: BrokerConfig, loop: Loop) -> None:
        self._loop = loop
        self.found: BrokenInvariant | None = None
        cluster.watch(Invariants(cluster, config, self._note).step)

    def _note(self, error: InvariantBrokenError) -> None:
        if self.found is None:
            now_us = self._loop.time_us
            self.found = BrokenInvariant(name=error.name, partition=str(error.at), time_us=now_us, text=str(error))


def _always(_answer: Any) -> bool:
    return True


def _diverges(answer: Any) -> bool:
    return any(map(_DIVERGING, answer.partitions))


def _brings_an_image(answer: Any) -> bool:
    return answer.image is not None


#: Messages that may give a replica another epoch or a shorter log, and whether one does.
_CHANGES: Final[dict[type, Callable[[Any], bool]]] = {
    messages.MetadataUpdate: _always,
    messages.AlterPartitionResponse: _always,
    messages.OffsetForLeaderEpochResponse: _always,
    messages.ListOffsetsResponse: _always,
    messages.FetchResponse: _diverges,
    messages.HeartbeatResponse: _brings_an_image,
}


def _uncommitted(node: NodeId, at: TopicPartition, end: int, offset: int) -> InvariantBrokenError:
    text = f"broker {node} follows with a high watermark of {end} and another record than the committed one at {offset}"
    return InvariantBrokenError("high-watermark-is-committed", at, text)


def _has_all(log: Log | None, known: Committed) -> bool:
    """The log has the last committed record, and so all of them."""
    end = known.end_offset
    return log is not None and log.end_offset >= end and _epoch_in(log.epochs(), end - 1) == known.last_epoch


def _epoch_at(log: Log, offset: int) -> int:
    """The leader epoch of the record at ``offset``, NONE where the log knows none."""
    return _epoch_in(log.epochs(), offset)


def _epoch_in(epochs: Sequence[tuple[int, int]], offset: int) -> int:
    """The same in (leader epoch, first offset), ascending in both."""
    if epochs and epochs[-1][1] <= offset:
        return epochs[-1][0]
    index = bisect_right(epochs, offset, key=lambda pair: pair[1]) - 1
    return epochs[index][0] if index >= 0 else NONE

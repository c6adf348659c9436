"""What holds at every moment in a whole simulated cluster, whatever the network and the faults do.

The rules about one replica alone are assertions in the core (``partition.py``); here are those that need two nodes to
be looked at together. :meth:`Invariants.step` is a hook for :attr:`Loop.on_step`, so the first step that breaks
something ends the run, and not the loss that follows from it a thousand steps later. They are the properties of the
models of KIP-966 and KIP-101 (``kip_966_properties.tla``, ``Kip101.tla``), under the names that those give them.

Some rules of old releases, unclean elections and destroyed disks break some of them by design. Each says below under
which settings it holds; the others are simply not looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from harness.reference.core.commit_rule import copies, required_acks
from harness.reference.core.log import Log, MemoryLog
from harness.reference.core.partition import Replica
from harness.reference.core.types import NONE, BrokerConfig, Image, PartitionState, TopicPartition
from harness.worlds.simulated.cluster import Cluster
from harness.worlds.simulated.nodes import Process
from harness.worlds.simulated.wires import Wire


class InvariantBrokenError(AssertionError):
    """The core reached a state that its rules exclude. ``name`` is the invariant's; the text says where and how."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class Committed(NamedTuple):
    """How far one log partition was ever committed: its length in offsets, and the leader epoch of its last record.

    That is enough to know all of it: a leader epoch has one leader, which only appends, so two logs with the same epoch
    at an offset hold the same records up to there (KIP-101).
    """

    end_offset: int = 0
    last_epoch: int = NONE


class Invariants:
    """Looks at a ``cluster`` after each step, at no more than what the step can have changed.

    ``config`` says which rules are on; ``clean`` that no election of this run's topics may be unclean.
    """

    def __init__(self, cluster: Cluster, config: BrokerConfig, *, clean: bool) -> None:
        self._cluster = cluster
        self._image = Image()
        self._leaders: dict[tuple[TopicPartition, int], int] = {}
        self._committed: dict[TopicPartition, Committed] = {}
        self._remade: set[str] = set()
        self._high_watermarks: dict[Replica, tuple[int, int]] = {}
        #: How many copies commit a record (None: the majority), and whether it is they and not the ISR (rules 27, 28).
        self._required = required_acks(config)
        self._by_number = self._required != NONE
        #: Whether nothing that is committed may be lost: the rules are those since 2.1 (KIP-101, 279, 320, KAFKA-7128),
        #: a quick restart is noticed (rule 20), elections are clean and look for what the commit rule leaves behind,
        #: and no disk has lost anything so far.
        self.keeps_committed = clean and config.truncation in ("kip-320", "on-fetch") and config.isr_join_epoch_rule
        self.keeps_committed &= config.fetch_fencing and config.broker_epochs
        self.keeps_committed &= not self._by_number or config.leader_election == "largest-epoch-and-log-end"

    def step(self, function: Callable[[Any], object], _argument: Any) -> None:
        """Look at the node at which ``function`` has just been called, and at the controller's newest image.

        Raises:
            InvariantBrokenError: something is wrong.
        """
        owner = getattr(function, "__self__", None)
        image = self._cluster.image()
        if image is not self._image:
            self._look_at_image(image)
        if type(owner) is Wire:
            self._look_at_node(owner.target)
        elif type(owner) is Process:
            self._look_at_node(owner.node)

    def look(self) -> None:
        """Look at everything, also at logs of dead brokers."""
        self._look_at_image(self._cluster.image())
        for node in self._cluster.brokers:
            self._look_at_node(node)

    # --- the controller ----------------------------------------------------------------------------------------------

    def _look_at_image(self, image: Image) -> None:
        before, self._image = self._image, image
        for name, topic in image.topics.items():
            old = before.topics.get(name)
            if old is topic:
                continue
            if old is None or old.identity != topic.identity:
                self._forget(name)
                old = topic
            for number, (earlier, state) in enumerate(zip(old.partitions, topic.partitions, strict=True)):
                self._isr_of_replicas(TopicPartition(name, number), state)
                self._epochs_grow(TopicPartition(name, number), earlier, state)
                self._candidates_are_complete(TopicPartition(name, number), state)

    def _isr_of_replicas(self, at: TopicPartition, state: PartitionState) -> None:
        """TypeOK: the ISR and the ELR are apart, and of the replicas; a leader is in the ISR. Holds always."""
        isr, elr = set(state.isr), set(state.elr)
        if isr & elr or not isr | elr <= set(state.replicas) or state.leader not in (NONE, *isr):
            raise InvariantBrokenError("isr-of-replicas", f"{at}: {state}")

    def _epochs_grow(self, at: TopicPartition, before: PartitionState, after: PartitionState) -> None:
        """EpochsGrow: every change has a larger partition epoch, another leader a larger leader epoch. Holds always."""
        if after == before:
            return
        moved = after.leader != before.leader
        if after.partition_epoch <= before.partition_epoch or after.leader_epoch < before.leader_epoch + moved:
            raise InvariantBrokenError("epochs-grow", f"{at}: {after} follows {before}")

    def _candidates_are_complete(self, at: TopicPartition, state: PartitionState) -> None:
        """LeaderCandidateCompleteness: whoever may be elected, dead or alive, has everything that was ever committed.

        Holds while ``keeps_committed``: an old rule, an unclean election or a destroyed disk may take it from them.
        Where a number of replicas commits, whoever was elected has it, and so many replicas do.
        """
        for node in self._candidates(state):
            self._has_committed(node, at)
        if self._by_number:
            self._has_its_copies(at, state)

    def _candidates(self, state: PartitionState) -> tuple[int, ...]:
        if not self._by_number:
            return (*state.isr, *state.elr)
        return () if state.leader == NONE else (state.leader,)

    def _has_its_copies(self, at: TopicPartition, state: PartitionState) -> None:
        """StateMachineSafety, as far as logs show it: so many replicas as commit a record have all that is committed.

        It holds under the rules 27 and 28, while ``keeps_committed``: elections by leader epoch and log end.
        """
        lacking = [why for node in state.replicas if (why := self._lacks_committed(node, at))]
        if len(state.replicas) - len(lacking) < copies(self._required, len(state.replicas)):
            raise InvariantBrokenError("committed-has-its-copies", "; ".join(text for _, text in lacking))

    # --- brokers -----------------------------------------------------------------------------------------------------

    def _look_at_node(self, node: int) -> None:
        broker = self._cluster.broker(node) if node in self._cluster.brokers else None
        if broker is None:
            return
        for at, replica in broker.replicas.items():
            state = self._image.partition(at)
            if state is None or replica.leader_epoch == NONE:
                continue
            self._high_watermark_on_log(at, replica)
            if replica.leading:
                self._one_leader_an_epoch(node, at, replica)
                self._maximal_isr_is_larger(at, replica, state)
                self._commit(at, replica, state)
            if node in self._candidates(state):
                self._has_committed(node, at)
            if self._by_number:
                self._has_its_copies(at, state)

    def _high_watermark_on_log(self, at: TopicPartition, replica: Replica) -> None:
        """TypeOK: what is committed is on the log; and a leader's high watermark never moves back. Holds always.

        Under a new leader a follower's may move back (rule 8), and so may that of a process that was started again.
        """
        high_watermark = replica.high_watermark
        if not 0 <= high_watermark <= replica.log.end_offset:
            text = f"{at}: a high watermark of {high_watermark} over a log that ends at {replica.log.end_offset}"
            raise InvariantBrokenError("high-watermark-on-log", text)
        if replica.leading:
            epoch, earlier = self._high_watermarks.get(replica, (NONE, 0))
            if epoch == replica.leader_epoch and high_watermark < earlier:
                text = f"{at}: the leader's high watermark moved from {earlier} back to {high_watermark}"
                raise InvariantBrokenError("high-watermark-monotonic", text)
            self._high_watermarks[replica] = (replica.leader_epoch, high_watermark)

    def _one_leader_an_epoch(self, node: int, at: TopicPartition, replica: Replica) -> None:
        """OneLeaderPerEpoch: in a leader epoch one broker leads. Holds always: the controller counts them (rule 13)."""
        key = (at, replica.leader_epoch)
        leader = self._leaders.setdefault(key, node)
        if leader != node:
            text = f"{at}: brokers {leader} and {node} lead in epoch {replica.leader_epoch}"
            raise InvariantBrokenError("one-leader-an-epoch", text)

    def _maximal_isr_is_larger(self, at: TopicPartition, replica: Replica, state: PartitionState) -> None:
        """ReplicationQuorumSuperset: what the controller calls in sync, the leader waits for. Holds always.

        Only the leader of the present epoch is looked at: a deposed one commits nothing, because whom it waits for
        fetches from another.
        """
        if replica.leader_epoch == state.leader_epoch and not set(state.isr) <= set(replica.maximal_isr):
            text = (
                f"{at}: the controller's ISR is {state.isr}, and the leader {state.leader} counts {replica.maximal_isr}"
            )
            raise InvariantBrokenError("maximal-isr-is-larger", text)

    def _commit(self, at: TopicPartition, replica: Replica, state: PartitionState) -> None:
        """LeaderCompleteness: the records below a leader's high watermark are those below every earlier one.

        Holds while ``keeps_committed``, for the leader of the newest epoch.
        """
        end = replica.high_watermark
        if not self.keeps_committed or end <= self._committed.get(at, Committed()).end_offset:
            return
        self._has_committed(self._leaders[at, replica.leader_epoch], at)
        self._committed[at] = Committed(end, _epoch_at(replica.log, end - 1))
        self._candidates_are_complete(at, state)

    def _has_committed(self, node: int, at: TopicPartition) -> None:
        """LogMatching: the log of ``node`` has all that is committed, with the same epoch at its last record.

        Holds while ``keeps_committed``.
        """
        lacks = self._lacks_committed(node, at)
        if lacks is not None:
            raise InvariantBrokenError(*lacks)

    def _lacks_committed(self, node: int, at: TopicPartition) -> tuple[str, str] | None:
        """The invariant that the log of ``node`` breaks by what it lacks, and how; None if it lacks nothing."""
        committed = self._committed.get(at)
        if committed is None or not self.keeps_committed or at.topic in self._remade:
            return None
        if self._cluster.damaged:
            self.keeps_committed = False
            return None
        log = self._cluster.log(node, at) or MemoryLog()
        end = log.end_offset
        if end < committed.end_offset:
            text = f"{at}: broker {node} may lead with {end} of {committed.end_offset} committed offsets"
            return "candidates-are-complete", text
        if _epoch_at(log, committed.end_offset - 1) != committed.last_epoch:
            text = f"{at}: broker {node} has another record than the committed one at {committed.end_offset - 1}"
            return "logs-match", text
        return None

    def _forget(self, topic: str) -> None:
        """A topic was made, maybe again under an old name, and is another one then.

        Nothing is claimed of what such a topic has committed: fetches do not carry its identity (KIP-516), so a broker
        that saw neither change confuses the two.
        """
        if any(at.topic == topic for at, _ in self._leaders):
            self._remade.add(topic)
        self._committed = {at: kept for at, kept in self._committed.items() if at.topic != topic}
        self._leaders = {key: leader for key, leader in self._leaders.items() if key[0].topic != topic}


def _epoch_at(log: Log, offset: int) -> int:
    """The leader epoch of the record at ``offset``, NONE where the log knows none."""
    epochs = log.epochs()
    index = bisect_right(epochs, offset, key=lambda pair: pair[1]) - 1
    return epochs[index][0] if index >= 0 else NONE

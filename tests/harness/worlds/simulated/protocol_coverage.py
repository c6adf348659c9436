"""Coverage of the protocol: words for what a simulated run has reached in the core of the reference broker.

A word names an answer ("Fetch FENCED_LEADER_EPOCH"), a branch ("elected: from the ELR") or a state in which a write is
at risk ("leader changed: with writes in flight"). The words of a run are a set. What no run ever reached, no run has
tested: ``WORDS`` in ``protocol_words.py`` lists everything that can be reached, and why.

:class:`Coverage` watches the steps of the nodes (:meth:`SimulatedCluster.watch`) and compares what they left with
what it knew. An answer counts when it is sent, whether it arrives or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harness.broker.core import messages
from harness.broker.core.effects import Deliver, Effect
from harness.broker.core.election import ELECTIONS
from harness.broker.core.replica import Replica
from harness.broker.core.types import NONE, BrokerState, ErrorCode, Image, NodeId, PartitionState, TopicPartition
from harness.worlds.simulated.cluster import SimulatedCluster
from nemesis.cluster import CONTROLLER

_REQUESTS: Final[Mapping[type, str]] = {
    messages.ListOffsetsResponse: "ListOffsets",
    messages.OffsetForLeaderEpochResponse: "OffsetForLeaderEpoch",
    messages.AlterPartitionResponse: "AlterPartition",
    messages.RegisterBrokerResponse: "RegisterBroker",
    messages.HeartbeatResponse: "Heartbeat",
    messages.InitProducerIdResponse: "InitProducerId",
    messages.AllocateProducerIdsResponse: "AllocateProducerIds",
}
#: The numbers of clients begin above those of brokers and of the controller.
_NODES: Final = CONTROLLER + 1


class Coverage:
    """Watches ``cluster`` from now on; ``words`` are those that it has reached. To be made before the world opens."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.words: set[str] = set()
        self._cluster = cluster
        self._image = Image()
        self._answered: set[tuple[object, ...]] = set()
        self._proposals: set[tuple[object, ...]] = set()
        self._batches: dict[object, int] = {}
        #: The end of what was acknowledged by (log partition, leader epoch); of all epochs, under NONE.
        self._acknowledged: dict[tuple[TopicPartition, int], int] = {}
        #: The end of a replica's log when it was looked at last, and its last leader epoch.
        self._ends: dict[tuple[NodeId, TopicPartition], tuple[int, int]] = {}
        self._led: dict[tuple[NodeId, TopicPartition], int] = {}
        self._on_cause: dict[type, Callable[[NodeId, Any], None]] = {
            messages.Produce: self._on_produce,
            messages.AlterPartition: self._on_proposal,
            messages.MoveLeader: self._on_move,
            messages.FetchResponse: self._on_fetched,
            messages.OffsetForLeaderEpochResponse: self._on_epoch_end,
            messages.ListOffsetsResponse: self._on_offset,
            messages.MetadataUpdate: self._on_image,
            messages.HeartbeatResponse: self._on_heartbeat,
            messages.RegisterBrokerResponse: self._on_registered,
        }
        cluster.watch(self.step)

    def step(self, node: NodeId, cause: object, effects: Sequence[Effect]) -> None:
        """Take a step of a node into account (:data:`harness.worlds.simulated.nodes.Watcher`)."""
        for effect in effects:
            if type(effect) is Deliver:
                self._on_answer(node, effect.target, effect.message)
        on_cause = self._on_cause.get(type(cause))
        if on_cause is not None:
            on_cause(node, cause)
        if node == CONTROLLER and self._cluster.image() is not self._image:
            self._on_change(by_log=cause == ELECTIONS or type(cause) is messages.LogEndResponse)

    def _reach(self, what: str, *ways: str | bool) -> None:
        """Each word that is not false."""
        self.words.update(f"{what}: {how}" for how in ways if how)

    # --- answers -----------------------------------------------------------------------------------------------------

    def _on_answer(self, node: NodeId, target: NodeId, message: Any) -> None:
        kind = type(message)
        if kind is messages.FetchResponse:
            request = "Fetch" if target < _NODES else "consumer's Fetch"
            for answer in message.partitions:
                self._answer(request, answer.error, _besides(answer))
        elif kind is messages.ProduceResponse:
            self._answer("Produce", message.error)
            if not message.error:
                self._on_acknowledged(node, message)
        elif kind in _REQUESTS:
            self._answer(_REQUESTS[kind], message.error)

    def _answer(self, request: str, error: ErrorCode, besides: str = "") -> None:
        key = (request, error, besides)
        if key not in self._answered:
            self._answered.add(key)
            self.words.add(f"{request} {besides or ErrorCode(error).name}")

    def _on_move(self, _node: NodeId, message: messages.MoveLeader) -> None:
        """A planned move is the nemesis' own request, so its answer goes nowhere."""
        state = self._cluster.image().partition(TopicPartition(message.topic, message.partition))
        moved = state is not None and state.leader == message.leader
        self._answer("MoveLeader", ErrorCode.NONE if moved else ErrorCode.INELIGIBLE_REPLICA)

    def _on_acknowledged(self, node: NodeId, message: messages.ProduceResponse) -> None:
        partition, offset = message.partition, message.base_offset
        replica = self._replica(node, partition)
        state = self._image.partition(partition)
        if replica is None or state is None or offset == NONE:
            return
        if replica.high_watermark > offset:
            for epoch in (replica.last_epoch(), NONE):
                self._acknowledged[partition, epoch] = max(self._acknowledged.get((partition, epoch), 0), offset + 1)
        logs = [log for member in replica.isr if (log := self._cluster.log(member, partition)) is not None]
        self._reach(
            "acknowledged",
            state.leader_epoch > replica.leader_epoch and "by a deposed leader",
            len(replica.isr) == 1 and "with an ISR of one",
            len(replica.isr) == replica.min_isr and "at min ISR",
            replica.proposal and "during a proposal",
            all(follower.end_offset <= offset for follower in replica.followers.values()) and "by the leader alone",
            all(log.durable_offset <= offset for log in logs) and "in page caches only",
        )

    # --- requests that are looked at ---------------------------------------------------------------------------------

    def _on_produce(self, node: NodeId, message: messages.Produce) -> None:
        """A batch is known again by its records, which no other batch has: a retry sends the same."""
        replica = self._replica(node, message.partition)
        if replica is None or not replica.leading:
            return
        end = replica.log.end_offset
        appended = end > self._ends.get((node, replica.partition), (end, NONE))[0]
        self._ends[node, replica.partition] = (end, replica.leader_epoch)
        epoch = self._batches.setdefault(message.batch.records, NONE)
        if epoch != NONE:
            self._reach("retried", "in the same epoch" if epoch == replica.leader_epoch else "in a later epoch")
            self._reach("retried", "and appended again" if appended else "and recognised")
        if appended:
            self._batches[message.batch.records] = replica.leader_epoch

    def _on_proposal(self, _node: NodeId, message: messages.AlterPartition) -> None:
        members = tuple(member.broker for member in message.isr)
        proposal = (message.partition, message.broker, message.leader_epoch, message.partition_epoch, members)
        state = self._image.partition(message.partition)
        size = len(members) if state is None else len(state.isr)
        self._reach(
            "proposed",
            len(members) < size and "a smaller ISR",
            len(members) > size and "a larger ISR",
            proposal in self._proposals and "again",
        )
        self._proposals.add(proposal)

    # --- followers ---------------------------------------------------------------------------------------------------

    def _on_fetched(self, node: NodeId, message: messages.FetchResponse) -> None:
        for answer in message.partitions:
            if answer.diverging is not None:
                self._on_cut(node, answer.partition, "by a diverging fetch")
            elif answer.batches:
                self._on_cut(node, answer.partition, "below a fetched batch")

    def _on_epoch_end(self, node: NodeId, message: messages.OffsetForLeaderEpochResponse) -> None:
        self._on_cut(node, message.partition, "by an epoch's end")

    def _on_offset(self, node: NodeId, message: messages.ListOffsetsResponse) -> None:
        self._on_cut(node, message.partition, "out of range")

    def _on_heartbeat(self, node: NodeId, message: messages.HeartbeatResponse) -> None:
        if message.image is not None:
            self._on_image(node, message)

    def _on_registered(self, node: NodeId, _message: object) -> None:
        """An earlier incarnation's log is no measure of what this one finds on its disk."""
        self._ends = {key: end for key, end in self._ends.items() if key[0] != node}
        self._led = {key: epoch for key, epoch in self._led.items() if key[0] != node}

    def _on_image(self, node: NodeId, _message: object) -> None:
        broker = self._cluster.broker(node)
        for partition, replica in {} if broker is None else broker.replicas.items():
            self._on_cut(node, partition, "to the high watermark")
            led = self._led.pop((node, partition), NONE)
            if replica.leading:
                self._led[node, partition] = replica.leader_epoch
                self._reach("leader changed", NONE < led < replica.leader_epoch and "again before all knew")

    def _on_cut(self, node: NodeId, partition: TopicPartition, why: str) -> None:
        """A replica's log may have become shorter: ``why`` if it is."""
        replica = self._replica(node, partition)
        if replica is None:
            return
        end = replica.log.end_offset
        earlier_end, epoch = self._ends.get((node, partition), (end, NONE))
        if end < earlier_end:
            self._reach(
                "truncated", why, end < self._acknowledged.get((partition, epoch), 0) and "acknowledged records"
            )
        self._ends[node, partition] = (end, replica.last_epoch())

    # --- the controller ----------------------------------------------------------------------------------------------

    def _on_change(self, *, by_log: bool) -> None:
        """The controller has a new image; ``by_log``: because it has heard of the ends of logs (rules 27, 28)."""
        before, image = self._image, self._cluster.image()
        self._image = image
        for node, broker in image.brokers.items():
            self._on_broker(before.brokers.get(node, broker), broker)
        for name, topic in image.topics.items():
            earlier_topic = before.topics.get(name)
            if earlier_topic is None or earlier_topic is topic or earlier_topic.identity != topic.identity:
                continue
            for number, (earlier, state) in enumerate(zip(earlier_topic.partitions, topic.partitions, strict=True)):
                partition = TopicPartition(name, number)
                if state.leader != earlier.leader:
                    self._on_election(partition, earlier, state, by_log=by_log)
                if state.isr != earlier.isr:
                    self._on_isr(partition, earlier, state, min(topic.config.min_insync_replicas, len(state.replicas)))

    def _on_broker(self, before: BrokerState, after: BrokerState) -> None:
        anew = after.broker_epoch != before.broker_epoch
        self._reach(
            "broker",
            after.fenced and not before.fenced and not anew and "fenced",
            before.fenced and not after.fenced and not anew and "unfenced",
            after.leaving and not before.leaving and "leaving",
            anew and "registered anew",
            anew and not after.fenced and "registered anew unfenced",
        )

    def _on_election(
        self, partition: TopicPartition, before: PartitionState, after: PartitionState, *, by_log: bool
    ) -> None:
        self._reach("elected", "by log" if by_log else _kind_of_election(before, after))
        old = self._leading(before.leader, partition)
        self._reach(
            "leader changed",
            old is not None and old.log.end_offset > old.high_watermark and "with writes in flight",
            old is not None and after.leader != NONE and "and two lead",
        )
        replica = self._replica(after.leader, partition)
        if replica is not None:
            end, acknowledged = replica.log.end_offset, self._acknowledged.get((partition, NONE), 0)
            self._reach(
                "elected",
                old is not None and end < old.log.end_offset and "with a shorter log than the old leader",
                replica.high_watermark < acknowledged and "with an old high watermark",
                end < acknowledged and "without acknowledged records",
            )

    def _on_isr(self, partition: TopicPartition, before: PartitionState, after: PartitionState, min_isr: int) -> None:
        leader = self._leading(before.leader, partition)
        in_flight = leader is not None and leader.log.end_offset > leader.high_watermark
        size, was = len(after.isr), len(before.isr)
        stays = after.leader == before.leader
        joined = [self._replica(node, partition) for node in after.isr if node not in before.isr]
        behind = leader is not None and any(r is not None and r.log.end_offset < leader.log.end_offset for r in joined)
        self._reach(
            "ISR",
            stays and size < was and "shrank",
            stays and size > was and "grew",
            stays and behind and "grew below the leader's log end",
            size < was and size == min_isr and in_flight and "shrank to min ISR with writes in flight",
            size < min_isr and "is below min ISR",
            size < min_isr and in_flight and "is below min ISR with writes in flight",
            size == 0 and "is empty",
            size == 1 and "is one broker",
        )

    # --- replicas ----------------------------------------------------------------------------------------------------

    def _replica(self, node: NodeId, partition: TopicPartition) -> Replica | None:
        broker = self._cluster.broker(node) if node in self._cluster.brokers else None
        return None if broker is None else broker.replicas.get(partition)

    def _leading(self, node: NodeId, partition: TopicPartition) -> Replica | None:
        replica = self._replica(node, partition)
        return replica if replica is not None and replica.leading else None


def _besides(answer: messages.FetchedPartition) -> str:
    if answer.diverging is not None:
        return "diverging"
    return "" if answer.read_replica == NONE else "read replica"


def _kind_of_election(before: PartitionState, after: PartitionState) -> str:
    """The rule by which a leader follows another, in the controller's order (:func:`election.elect`)."""
    leader = after.leader
    if leader == NONE:
        kind = "nobody"
    elif leader in before.isr:
        kind = "moved" if before.leader in after.isr else "clean"
    elif leader in before.elr:
        kind = "from the ELR"
    else:
        kind = "last known leader" if leader == before.last_known_leader else "unclean"
    return kind

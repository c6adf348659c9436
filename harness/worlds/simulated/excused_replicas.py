"""Remembers the replicas that no claim can be made of: a fault has taken records from their disk."""

from __future__ import annotations

from collections.abc import Iterable

from harness.broker.core.types import BrokerConfig, Image, NodeId, PartitionState, TopicPartition


class ExcusedReplicas:
    """Replicas on a disk that has lost records, as long as they may be among the candidates nonetheless.

    A broker's disk loses records only while the broker is dead. Until its session is over the controller does not know
    that, and the last member stays in the ISR for ever (rule 13) and may lead with what is left (KAFKA-15495). With
    eligible leader replicas no broker that was started after an unclean stop may be on any list (rule 15).
    ``replicas`` are they.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self._lists_eligible = config.eligible_leader_replicas
        #: Brokers whose disk has lost records and that have not registered since, with their old broker epoch.
        self._damaged: dict[NodeId, int] = {}
        self.replicas: set[tuple[NodeId, TopicPartition]] = set()

    def add(self, node: NodeId, image: Image) -> None:
        """The disk of ``node`` has lost records."""
        if (broker := image.brokers.get(node)) is not None:
            self._damaged[node] = broker.broker_epoch
        self.replicas |= {
            (node, partition) for partition, state in _partitions(image) if node in {*state.isr, *state.elr}
        }

    def registered(self, image: Image) -> None:
        """Let brokers that registered again be candidates like others, but as the last member of an ISR without ELR."""
        for node in [node for node, epoch in self._damaged.items() if image.brokers[node].broker_epoch != epoch]:
            del self._damaged[node]
            alone = {(node, partition) for partition, state in _partitions(image) if state.isr == (node,)}
            others = {replica for replica in self.replicas if replica[0] != node}
            self.replicas = others | (set() if self._lists_eligible else self.replicas & alone)

    def lead(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Look at a new ``state``; the answer says that a suspect begins to lead, with what its disk still has."""
        if not self._damaged and not self.replicas:
            return False
        listed = (*state.isr, *state.elr)
        self.replicas = {replica for replica in self.replicas if replica[1] != partition or replica[0] in listed}
        self.replicas |= {(node, partition) for node in self._damaged if node in listed}
        leads = (state.leader, partition) in self.replicas and state.leader not in self._damaged
        if leads:
            self.replicas.discard((state.leader, partition))
        return leads


def _partitions(image: Image) -> Iterable[tuple[TopicPartition, PartitionState]]:
    return (
        (TopicPartition(name, number), state)
        for name, topic in image.topics.items()
        for number, state in enumerate(topic.partitions)
    )

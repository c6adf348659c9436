"""Shows the nemesis a cluster: its metadata, and which of its processes run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from harness.broker.core.types import (
    NONE,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerState,
    PartitionState,
    serving_partition,
)
from harness.worlds.hosts import NodeState
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER, ClusterView, PartitionView
from workloads import LogPartition, WorkloadPlan, topics_of


class ClusterImage(msgspec.Struct, frozen=True):
    """The controller's metadata: brokers by number, partitions by name ("topic-number")."""

    version: int = 0
    brokers: dict[int, BrokerState] = {}
    partitions: dict[str, PartitionState] = {}


class ControllerMetadata(ABC):
    """The controllers' metadata of the cluster, learned without the network under test."""

    @abstractmethod
    def image(self) -> ClusterImage:
        """The newest metadata; the last ones if no controller can be reached."""

    def controllers(self) -> tuple[int, ...]:
        """Every controller, the active one first."""
        return (CONTROLLER,)

    def controller_works(self) -> bool:
        """False if the active controller is known not to work yet since its last start."""
        return True


def partitions_of(image: ClusterImage, *topics: str) -> dict[str, PartitionView]:
    """The partitions of these topics by name, in the controller's order."""
    return {
        name: PartitionView(
            leader=None if state.leader == NONE else state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            replicas=state.replicas,
            elr=state.elr,
            partition_epoch=state.partition_epoch,
        )
        for name, state in image.partitions.items()
        if LogPartition.named(name).topic in topics
    }


def are_whole(views: Iterable[PartitionView]) -> bool:
    """True if each of these partitions has a leader and all its replicas in sync."""
    return all(view.leader is not None and set(view.isr) == set(view.replicas) for view in views)


class Viewer:
    """The view of a workload's topics. It asks the operating system each time which processes run.

    ``racks`` are those of the brokers, in order, if they have some. ``group`` is the name of the workload's group.
    """

    def __init__(
        self, metadata: ControllerMetadata, nodes: Nodes, workload: WorkloadPlan, racks: Sequence[str] = ()
    ) -> None:
        self._racks = dict(enumerate(racks))
        self.image = metadata.image
        self._metadata = metadata
        self._nodes = nodes
        self._topics = topics_of(workload)
        self.group = workload.topic
        self._transactional_ids = workload.transactional_ids

    def partitions(self) -> dict[str, PartitionView]:
        """The topics' partitions by name, as the controllers' newest metadata have them."""
        return partitions_of(self.image(), *self._topics)

    def led_partitions(self) -> dict[str, PartitionView]:
        """The same, and those of the logs of coordinators."""
        return partitions_of(self.image(), *self._topics, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)

    def running(self) -> tuple[int, ...]:
        """The brokers whose process runs and is not frozen."""
        return self._nodes.in_state(NodeState.RUNNING, self._nodes.brokers)

    def view(self) -> ClusterView:
        """The topics' partitions, the controllers, and the nodes that run now."""
        image, controllers = self.image(), self._metadata.controllers()
        internal = partitions_of(image, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
        active_runs = bool(self._nodes.in_state(NodeState.RUNNING, controllers[:1]))
        return ClusterView(
            partitions=partitions_of(image, *self._topics),
            running=self.running(),
            brokers=self._nodes.brokers,
            controllers=controllers,
            running_controllers=self._nodes.in_state(NodeState.RUNNING, self._nodes.controllers),
            controller_active=self._metadata.controller_works() and active_runs,
            racks=self._racks,
            coordinators=_serving(internal, OFFSETS_TOPIC, [self.group]),
            transaction_coordinators=_serving(internal, TRANSACTIONS_TOPIC, self._transactional_ids),
            internal=internal,
        )


def _serving(internal: Mapping[str, PartitionView], topic: str, names: Iterable[str]) -> tuple[int, ...]:
    """The leaders of the partitions of ``topic`` that serve groups or transactional ids of these names."""
    count = sum(LogPartition.named(name).topic == topic for name in internal)
    if not count:
        return ()
    serving = [internal.get(str(LogPartition(topic, serving_partition(name, count)))) for name in names]
    return tuple(state.leader for state in serving if state is not None and state.leader is not None)

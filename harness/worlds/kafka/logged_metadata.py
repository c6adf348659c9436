"""The controllers' metadata, read from nodes' logs as they grow: KRaft's controllers', or with ZooKeeper the brokers'.

Several nodes log the same changes, some a little later than others, and from the start again after their own restart.
Each has a higher partition epoch than the one before, so the state with the highest is the newest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from typing_extensions import override

from harness.broker.core.types import BrokerState, PartitionState
from harness.ground.observations import (
    BrokerFenced,
    BrokerRegistered,
    ControllerActivated,
    ControllerStarted,
    IsrChanged,
)
from harness.worlds.hosts import NodeState
from harness.worlds.kafka.log_events import LogTail
from harness.worlds.kafka.log_patterns import LogEvent, PartitionChanged, PartitionDescribed, ReplicasAssigned
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import ClusterImage, ControllerMetadata

_STATE: Final = frozenset(PartitionState.__struct_fields__)


class LoggedMetadata(ControllerMetadata):
    """The metadata in the logs of the nodes ``writers``, as far as one of them has logged them."""

    def __init__(self, nodes: Nodes, writers: Iterable[int]) -> None:
        self._tails: Final = {node: LogTail(nodes.log(node)) for node in writers}
        self._brokers: dict[int, BrokerState] = {}
        self._partitions: dict[str, PartitionState] = {}

    @override
    def image(self) -> ClusterImage:
        for node, tail in self._tails.items():
            for event in tail.events():
                self._learn(node, event)
        return ClusterImage(brokers=self._brokers, partitions=self._partitions)

    def _learn(self, node: int, event: LogEvent) -> None:  # noqa: ARG002 - whose word it is matters to controllers
        if isinstance(event, BrokerRegistered | BrokerFenced):
            self._brokers[event.broker] = BrokerState(broker_epoch=0, fenced=isinstance(event, BrokerFenced))

    def _is_news(self, partition: str, partition_epoch: int) -> bool:
        state = self._partitions.get(partition)
        return state is None or partition_epoch >= state.partition_epoch


class ControllerLogs(LoggedMetadata):
    """The metadata in the logs of KRaft's controllers. Where all are away, the last view holds."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes, nodes.controllers)
        self._nodes = nodes
        self._applied: dict[int, dict[str, PartitionState]] = {node: {} for node in nodes.controllers}
        self._active = (0, nodes.controllers[0])
        self._starts_again = False

    @override
    def image(self) -> ClusterImage:
        image = super().image()
        # A node that is started again logs it a second later, and works later still.
        self._starts_again |= bool(self._nodes.in_state(NodeState.DEAD, (self._active[1],)))
        return image

    @override
    def controllers(self) -> tuple[int, ...]:
        active = self._active[1]
        return (active, *(node for node in self._nodes.controllers if node != active))

    @override
    def controller_works(self) -> bool:
        return not self._starts_again

    def _learn(self, node: int, event: LogEvent) -> None:
        applied = self._applied[node]
        match event:
            case ControllerActivated(epoch=epoch):
                self._active = max(self._active, (epoch, node))
                self._starts_again = False
            case ControllerStarted():
                self._starts_again |= node == self._active[1]
            case PartitionDescribed(partition):
                self._apply(node, partition, _state_of(event))
            case PartitionChanged(partition) if partition in applied:
                new = {name: value for name, value in event._asdict().items() if value is not None and name in _STATE}
                self._apply(node, partition, msgspec.structs.replace(applied[partition], **new))
            case _:
                super()._learn(node, event)

    def _apply(self, node: int, partition: str, state: PartitionState) -> None:
        self._applied[node][partition] = state
        if self._is_news(partition, state.partition_epoch):
            self._partitions[partition] = state


class BrokerLogs(LoggedMetadata):
    """The controller's metadata in the logs of brokers with ZooKeeper. Brokers that are cut off have older news.

    The leader of a partition changes its in-sync replicas itself, and the controller hears of it later. Both count as
    versions of one record in ZooKeeper, which are the partition epochs.
    """

    def __init__(self, nodes: Nodes) -> None:
        super().__init__(nodes, nodes.brokers)
        self._orders: dict[str, tuple[int, ...]] = {}

    def _learn(self, node: int, event: LogEvent) -> None:
        match event:
            case ReplicasAssigned(partition, replicas):
                self._orders[partition] = replicas
                if partition in self._partitions:
                    self._set(partition, self._partitions[partition])
            case PartitionDescribed(partition):
                if self._is_news(partition, event.partition_epoch):
                    self._set(partition, _state_of(event))
            case IsrChanged(partition=partition, isr=isr, partition_epoch=epoch) if partition in self._partitions:
                if isr is not None and epoch is not None and self._is_news(partition, epoch):
                    state = self._partitions[partition]
                    self._set(partition, msgspec.structs.replace(state, isr=isr, partition_epoch=epoch))
            case _:
                super()._learn(node, event)

    def _set(self, partition: str, state: PartitionState) -> None:
        order = self._orders.get(partition, ())
        ordered = set(order) == set(state.replicas)
        self._partitions[partition] = msgspec.structs.replace(state, replicas=order) if ordered else state


def _state_of(event: PartitionDescribed) -> PartitionState:
    """The state as the controller's metadata have it."""
    return PartitionState(**{name: value for name, value in event._asdict().items() if name in _STATE})

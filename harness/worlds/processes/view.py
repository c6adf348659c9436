"""The controller's word about the cluster, as the nemesis sees it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from harness.hosts import Host, NodeState
from harness.reference.core.types import NONE, BrokerState, PartitionState
from harness.worlds.processes.nodes import Nodes
from nemesis.cluster import CONTROLLER, ClusterView, PartitionView

#: A controller answers in a millisecond; one that does not in this time is busy or cut short, and the last view stands.
STATUS_LIMIT_S: Final = 0.25
#: Several faults that fire together look once.
FRESH_S: Final = 0.05


class ClusterImage(msgspec.Struct, frozen=True):
    """The controller's metadata as its control socket tells it: partitions by name ("topic-number")."""

    version: int = 0
    brokers: dict[int, BrokerState] = {}
    partitions: dict[str, PartitionState] = {}


def partitions_of(image: ClusterImage, topic: str) -> dict[str, PartitionView]:
    """The partitions of one topic by name, in the controller's order."""
    return {
        name: PartitionView(
            leader=None if state.leader == NONE else state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            replicas=state.replicas,
        )
        for name, state in image.partitions.items()
        if name.rpartition("-")[0] == topic
    }


class Viewer:
    """Asks the controller over its control socket, never over the network under test."""

    def __init__(self, host: Host, nodes: Nodes, topic: str) -> None:
        self._host = host
        self._nodes = nodes
        self._topic = topic
        self._image = ClusterImage()
        self._asked_at = float("-inf")
        self._answers = True

    def image(self) -> ClusterImage:
        """The controller's metadata, at most FRESH_S old if it can be reached, else the last that was."""
        if time.monotonic() - self._asked_at >= FRESH_S and self._controller_runs():
            answer = self._host.ask([CONTROLLER], {"op": "status"}, STATUS_LIMIT_S).get(CONTROLLER, {})
            told = image_in(answer)
            self._image, self._answers = told or self._image, told is not None
            self._asked_at = time.monotonic()
        return self._image

    def view(self) -> ClusterView:
        """See :meth:`nemesis.cluster.Target.view`. Which brokers run is asked of the operating system, each time."""
        image = self.image()
        return ClusterView(
            partitions=partitions_of(image, self._topic),
            running=self._nodes.in_state(NodeState.RUNNING, self._nodes.brokers),
            brokers=self._nodes.brokers,
            controllers=self.controllers(),
            running_controllers=self._nodes.in_state(NodeState.RUNNING, self._nodes.controllers),
            controller_active=self.controller_active(),
        )

    def controllers(self) -> tuple[int, ...]:
        """Every controller, the active one first."""
        return self._nodes.controllers

    def controller_active(self) -> bool:
        """Whether the active controller runs and, as far as is known, has begun its work since its last start."""
        return self._answers and bool(self._nodes.in_state(NodeState.RUNNING, self.controllers()[:1]))

    def _controller_runs(self) -> bool:
        return bool(self._nodes.in_state(NodeState.RUNNING, (CONTROLLER,)))


def image_in(answer: Mapping[str, Any]) -> ClusterImage | None:
    """The image in an answer to ``status``; None if there is none, or one that cannot be read."""
    try:
        return msgspec.convert(answer["image"], ClusterImage, strict=False)
    except (KeyError, msgspec.ValidationError):
        return None

"""Where a cluster keeps its metadata, and what that means for its nodes: KRaft or ZooKeeper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness.worlds.kafka import zookeeper
from harness.worlds.kafka.installation import Installation
from harness.worlds.kafka.jvm import LEVELS, MAIN
from harness.worlds.kafka.logged_metadata import BrokerLogs, ControllerLogs, LoggedMetadata
from harness.worlds.kafka.prepared import BOOTSTRAP, META, format_directory, new_id
from harness.worlds.kafka.properties import NodePlace, node_properties
from harness.worlds.real.nodes import Nodes
from nemesis.cluster import CONTROLLER
from workloads import Settings

#: Before it leaders log the in-sync replicas that they have written to ZooKeeper at level TRACE only.
LOUD_ISR_SINCE: Final = (2, 4, 0)
#: Before it the controller sends brokers the replicas in no order; only its own log has the preferred one first.
ORDERED_SINCE: Final = (0, 11, 0)


class Mode(ABC):
    """A mode. ``levels`` are the classes that log more than warnings, and from which level on."""

    levels: Mapping[str, str] = LEVELS

    def __init__(self, settings: Settings, installation: Installation, brokers: int) -> None:
        self._settings = settings
        self._installation = installation
        self._brokers = brokers

    def main(self, node: int) -> str:  # noqa: ARG002 - most nodes are alike
        """The main class of a node."""
        return MAIN

    def format(self, data: Path, node: int) -> tuple[Path, ...]:  # noqa: ARG002
        """Format a directory that never was, or was wiped; the answer is what is new in it."""
        return ()

    @abstractmethod
    def properties(self, place: NodePlace) -> dict[str, str]:
        """What a node is configured with."""

    @abstractmethod
    def metadata(self, nodes: Nodes) -> LoggedMetadata:
        """The controllers' word, from the nodes' logs."""


class KRaft(Mode):
    """Controllers of their own keep the metadata."""

    def __init__(self, settings: Settings, installation: Installation, brokers: int) -> None:
        super().__init__(settings, installation, brokers)
        self._cluster = new_id()

    def format(self, data: Path, node: int) -> tuple[Path, ...]:
        """See :meth:`Mode.format`: without, a node refuses to start."""
        if (data / META).exists():
            return ()
        format_directory(self._installation, data, node, self._cluster, elr=self._settings.eligible_leader_replicas)
        return (data / META, data / BOOTSTRAP)

    def properties(self, place: NodePlace) -> dict[str, str]:
        """See :meth:`Mode.properties`."""
        return node_properties(place, self._settings, self._brokers)

    def metadata(self, nodes: Nodes) -> ControllerLogs:
        """See :meth:`Mode.metadata`."""
        return ControllerLogs(nodes)


class ZooKeeper(Mode):
    """One broker controls, and CONTROLLER is ZooKeeper."""

    def __init__(self, settings: Settings, installation: Installation, brokers: int) -> None:
        super().__init__(settings, installation, brokers)
        # Here every broker logs each word of the controller that reaches it, and nobody else does.
        self.levels = {**LEVELS, "state.change.logger": "TRACE"}
        if installation.version < LOUD_ISR_SINCE:
            self.levels |= {"kafka.cluster.Partition": "TRACE"}
        if installation.version < ORDERED_SINCE:
            self.levels |= {"kafka.controller.KafkaController": "INFO"}

    def main(self, node: int) -> str:
        """See :meth:`Mode.main`."""
        return zookeeper.MAIN if node == CONTROLLER else MAIN

    def properties(self, place: NodePlace) -> dict[str, str]:
        """See :meth:`Mode.properties`."""
        if place.node == CONTROLLER:
            return zookeeper.zookeeper_properties(place.address, str(place.data), self._settings)
        return zookeeper.broker_properties(place, self._settings, self._brokers, self._installation.version)

    def metadata(self, nodes: Nodes) -> BrokerLogs:
        """See :meth:`Mode.metadata`."""
        return BrokerLogs(nodes)

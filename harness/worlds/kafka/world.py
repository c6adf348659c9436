"""One run on a real Kafka cluster: a controller, brokers, real clients, one thread that drives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from harness.hosts import Here, Host, SshHost
from harness.java import java_program
from harness.observations import Observation
from harness.plan import Kafka, Namespaces, require_kind
from harness.records.journal import Journal
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.class_data_archive import make_archive
from harness.worlds.kafka.installation import Installation, find
from harness.worlds.kafka.jvm_pauses import pauses_in
from harness.worlds.kafka.log_events import observations_in
from harness.worlds.kafka.nodes import KafkaNodes
from harness.worlds.kafka.properties import possible_with_kraft
from harness.worlds.kafka.releases import DEFAULT_VERSION, parse_version
from harness.worlds.kafka.view import KafkaViewer
from harness.worlds.kafka.zookeeper_admin import ASKED_SINCE, KeeperOperator
from harness.worlds.kafka.zookeeper_cluster import ZooKeeperNodes, ZooKeeperViewer
from harness.worlds.kafka.zookeeper_properties import possible_with_zookeeper
from harness.worlds.processes import ProcessesWorld
from harness.worlds.processes.leadership import ConfirmedReassignment, ReassigningOperator
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.view import Viewer
from harness.worlds.processes.world import ON_DISKS
from nemesis.cluster import CONTROLLER, Capability, Leadership, PartitionView, Reassignment
from workloads.settings import Settings

_OTHERS_DISKS: Final = "disks of machines that are reached over SSH are left alone"
_NO_CUTS: Final = 'links of Apache Kafka are cut with host = "namespaces" only, which needs root'


def release_for(world: Kafka, settings: Settings) -> Installation:
    """The installed release that ``world`` asks for, and that can do what the ``settings`` ask for.

    Raises:
        PlanError: it cannot, or there is no such release.
        HostError: it is not installed here, or cannot start as it is.
    """
    version = parse_version(world.version or DEFAULT_VERSION)
    if world.mode == "zookeeper":
        possible_with_zookeeper(settings, version)
    else:
        possible_with_kraft(settings, version)
    installation = find(str(version))  # last: nobody should fetch a release that cannot do it
    installation.require_startable()
    return installation


class KafkaWorld(ProcessesWorld):
    """The world of processes with Kafka's own processes in it. The run's files stand in ``directory``."""

    @cached_property
    def _kafka(self) -> Kafka:
        return require_kind(self._spec.world, Kafka)

    @cached_property
    def _release(self) -> Installation:
        return release_for(self._kafka, self._settings)

    def _told(self, wall_begin_us: int) -> list[Observation]:
        """From the nodes' logs."""
        logs = self._directory / "logs"
        by_node = {int(path.stem.rpartition("-")[2]): path for path in logs.glob("node-*.log")}
        told = [*observations_in(by_node, wall_begin_us), *pauses_in(logs, wall_begin_us)]
        return sorted(told, key=lambda seen: seen.time_us)

    def _check(self) -> None:
        make_archive(self._release)

    def _make_host(self, journal: Journal) -> Host:
        if not self._kafka.machines:
            return super()._make_host(journal)
        here = Here(self._directory, self._release.home, Path(java_program()))
        return SshHost(self._kafka.machines, journal, here)

    def _lacks(self) -> Mapping[Capability, str]:
        if self._kafka.machines:
            return dict.fromkeys((Capability.FILES, *ON_DISKS), _OTHERS_DISKS)
        # Kafka's nodes cut no links for the harness, as the reference broker's do.
        return {} if isinstance(self._kafka.host, Namespaces) else {Capability.LINKS: _NO_CUTS}

    def _make_administration(self, host: Host, viewer: Viewer) -> tuple[Leadership, Reassignment | None]:
        def running() -> list[str]:
            return [f"{at.host}:{at.port}" for at in map(host.address, viewer.view().running)]

        def partitions() -> Mapping[str, PartitionView]:
            return viewer.view().partitions

        operator: ReassigningOperator
        if self._release.version < ASKED_SINCE:
            operator = KeeperOperator(lambda: host.address(CONTROLLER))
        else:
            operator = administration = Administration(running)
            self._resources.callback(administration.close)
        confirmed = ConfirmedReassignment(operator, partitions)
        return confirmed, confirmed

    def _make_nodes(self, host: Host) -> Nodes:
        kind = ZooKeeperNodes if self._kafka.mode == "zookeeper" else KafkaNodes
        return kind(host, self._directory, self._spec, self._release, self._lifetime_s())

    def _make_viewer(self, host: Host, nodes: Nodes) -> Viewer:
        kind = ZooKeeperViewer if self._kafka.mode == "zookeeper" else KafkaViewer
        return kind(host, nodes, self._spec.workload.topic)

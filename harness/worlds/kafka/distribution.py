"""Apache Kafka as a distribution: its nodes as Java processes of one release, read from their logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from typing_extensions import override

from harness.ground.machine.java import java_program
from harness.ground.observations import Observation
from harness.plan import Kafka, RunSpec, Ssh, require_kind
from harness.records.journal import Journal
from harness.worlds.hosts import Host, Launch, LocalFiles, LocalHost, LoopbackHost, SshHost
from harness.worlds.kafka import zookeeper
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.class_archive import make_archive
from harness.worlds.kafka.formatting import (
    META,
    TRANSACTIONS_FEATURE,
    FirstFeatures,
    FirstFiles,
    FirstVoters,
    first_files,
    format_directory,
    new_id,
    of_broker,
)
from harness.worlds.kafka.installation import Installation, find
from harness.worlds.kafka.jvm import LEVELS, MAIN, LogFiles, node_command, pauses_in
from harness.worlds.kafka.log_events import observations_in
from harness.worlds.kafka.logged_metadata import BrokerLogs, ControllerLogs, LoggedMetadata
from harness.worlds.kafka.logged_roles import LoggedRoles
from harness.worlds.kafka.members import ClusterMembers
from harness.worlds.kafka.patches import patched
from harness.worlds.kafka.properties import (
    NodePlace,
    as_text,
    elections_possible,
    node_properties,
    possible_with_kraft,
    transactions_possible,
)
from harness.worlds.kafka.releases import DEFAULT_VERSION, Version, parse_version
from harness.worlds.kafka.succession import LEFT_ALONE, Forms, KafkaSuccession, NodeForm
from harness.worlds.kafka.zookeeper import ASKED_SINCE, ZooKeeperAdministration, possible_with_zookeeper
from harness.worlds.real import Distribution, lifetime_s, local_host
from harness.worlds.real.direct_access import Ask
from harness.worlds.real.leadership import ConfirmedReassignment
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import ControllerMetadata, Viewer
from nemesis.cluster import CONTROLLER, Capability, Leadership, Reassignment
from nemesis.succession import Succession
from workloads import Settings, WorkloadPlan, kind_of

_NO_CUTS: Final = 'links of Apache Kafka are cut with host = "namespaces" only, which needs root'
_NO_KRAFT: Final = "clusters with ZooKeeper cannot be upgraded here"
_ONE_RELEASE: Final = "machines over SSH are given one release"
#: A scripted story has one coordinator: one log serves every group, and one every transactional id.
_ONE_LOG: Final = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
_ONE_DIRECTORY: Final = "nodes of Apache Kafka are started with one log directory here"
#: Before it leaders log the in-sync replicas that they have written to ZooKeeper at level TRACE only.
LOUD_ISR_SINCE: Final = (2, 4, 0)
#: Before it the controller sends brokers the replicas in no order; only its own log has the preferred one first.
ORDERED_SINCE: Final = (0, 11, 0)


def release_of(world: Kafka) -> Version:
    """The release that ``world`` begins with.

    Raises:
        PlanError: it does not exist.
    """
    return parse_version(world.version or DEFAULT_VERSION)


def release_for(world: Kafka, settings: Settings, workload: WorkloadPlan | None = None) -> Installation:
    """The installed release that ``world`` begins with, and that can do what the ``settings`` ask for.

    Only a ``workload`` of transactions asks for a version of them.

    Raises:
        PlanError: it cannot, or this release does not exist.
        HostError: it is not installed here, or does not start here.
    """
    version = release_of(world)
    if world.mode == "zookeeper":
        possible_with_zookeeper(settings, version)
    else:
        possible_with_kraft(settings, version)
    elections_possible(settings, world, version)
    if workload is not None and kind_of(workload).transactional:
        transactions_possible(settings, version)
    installation = find(str(version))  # last: no user should fetch a release that cannot do it
    installation.require_startable()
    return patched(installation, world)


def successor_for(world: Kafka, first: Installation) -> Installation:
    """The installed release that nodes of ``world`` are upgraded to; the ``first`` one where the plan names none.

    Raises:
        PlanError: this release does not exist.
        HostError: it is not installed here, or does not start here.
    """
    if not world.upgrade_to:
        return first
    installation = find(world.upgrade_to)
    installation.require_startable()
    return installation


class Mode(NamedTuple):
    """One way to keep a cluster's metadata, with its consequences for the nodes.

    ``levels`` has the classes that log more than warnings, each with its lowest level. ``properties`` gives the
    configuration of a node, ``metadata`` the controllers' word from the nodes' logs, ``main`` the main class of a node.
    ``format`` formats the directory of a node that never ran, or was emptied, and returns the new files in it.
    """

    levels: Mapping[str, str]
    properties: Callable[[NodePlace], dict[str, str]]
    metadata: Callable[[Nodes], LoggedMetadata]
    main: Callable[[int], str]
    format: Callable[[Nodes, int], tuple[Path, ...]]


def kraft(settings: Settings, installation: Installation, brokers: int, *, dynamic: bool = False) -> Mode:
    """Controllers of their own keep the metadata; where the quorum is ``dynamic``, they join and leave (KIP-853)."""
    cluster = new_id()
    features = FirstFeatures(settings.eligible_leader_replicas, settings.transaction_version)
    voters = FirstVoters(installation, features)

    def fixed(nodes: Nodes, node: int) -> tuple[str, FirstFiles]:
        files = first_files(installation, features)
        return "", files if node in nodes.controllers else of_broker(files)

    def format_once(nodes: Nodes, node: int) -> tuple[Path, ...]:
        """Format a directory that is not formatted; a node refuses to start on such a one."""
        data = nodes.data(node)
        if (data / META).exists():
            return ()
        directory, files = (voters.of if dynamic else fixed)(nodes, node)
        format_directory(data, node, cluster, files, directory=directory)
        return (data / META, *(data / name for name in files))

    return Mode(
        LEVELS,
        lambda node_place: node_properties(msgspec.structs.replace(node_place, dynamic=dynamic), settings, brokers),
        ControllerLogs,
        lambda _: MAIN,
        format_once,
    )


def with_zookeeper(settings: Settings, installation: Installation, brokers: int) -> Mode:
    """One broker controls, and CONTROLLER is ZooKeeper."""
    # Here every broker logs each word of the controller that reaches it, and no other node does.
    levels = {**LEVELS, "state.change.logger": "TRACE"}
    if installation.version < LOUD_ISR_SINCE:
        levels |= {"kafka.cluster.Partition": "TRACE"}
    if installation.version < ORDERED_SINCE:
        levels |= {"kafka.controller.KafkaController": "INFO"}

    def properties(node_place: NodePlace) -> dict[str, str]:
        if node_place.node == CONTROLLER:
            return zookeeper.zookeeper_properties(node_place.address, str(node_place.data), settings)
        return zookeeper.broker_properties(node_place, settings, brokers, installation.version)

    def main(node: int) -> str:
        return zookeeper.MAIN if node == CONTROLLER else MAIN

    return Mode(levels, properties, BrokerLogs, main, lambda *_: ())


class KafkaDistribution(Distribution):
    """Launches and reads nodes of the release and mode that ``spec`` asks for."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._world = require_kind(spec.world, Kafka)

    @property
    @override
    def controllers(self) -> int:
        return self._world.controllers

    @cached_property
    def release(self) -> Installation:
        """The installed release. Raises as :func:`release_for`."""
        return release_for(self._world, self._spec.chosen(), self._spec.workload)

    @cached_property
    def _forms(self) -> Forms:
        return Forms(
            NodeForm(self.release), NodeForm(successor_for(self._world, self.release), dict(self._world.change))
        )

    @cached_property
    def _mode(self) -> Mode:
        settings, brokers = self._spec.chosen(), self._spec.brokers
        if self._world.mode == "zookeeper":
            return with_zookeeper(settings, self.release, brokers)
        return kraft(settings, self.release, brokers, dynamic=self._world.upgrade_by != "restart")

    @override
    def check(self) -> None:
        make_archive(self.release)
        make_archive(self._forms.successor.release)

    @override
    def lacks(self, host: type[Host]) -> Mapping[Capability, str]:
        lacks = {Capability.LOG_DIRECTORIES: _ONE_DIRECTORY}
        if self._world.mode == "zookeeper":
            lacks[Capability.SUCCESSION] = _NO_KRAFT
        elif not issubclass(host, LocalHost):
            lacks[Capability.SUCCESSION] = _ONE_RELEASE
        return lacks | {Capability.LINKS: _NO_CUTS} if issubclass(host, LoopbackHost) else lacks

    @override
    def launch(self, nodes: Nodes, node: int) -> Launch:
        self._forms.begin(node)
        formatted = self._mode.format(nodes, node)
        properties = nodes.directory / "data" / f"{node}.properties"
        properties.write_text(as_text(self.properties(nodes, node)), encoding="utf-8")
        logs = nodes.log(node).parent
        release = self._forms.of(node).release
        files = LogFiles(logs / f"logging-{release.version}.properties", logs / f"gc-{node}.log")
        files.write(release, self._mode.levels)
        return Launch(
            node=node,
            command=node_command(
                release,
                node,
                properties,
                files,
                partial(nodes.host.path_on, node),
                main=self._mode.main(node),
                max_lifetime_s=lifetime_s(self._spec),
            ),
            environment={},
            directory=nodes.data(node).parent,
            log=nodes.log(node),
            files=(properties, files.configuration, *formatted),
        )

    def properties(self, nodes: Nodes, node: int) -> dict[str, str]:
        """The configuration of ``node``."""
        node_place = NodePlace(
            node=node,
            # Relative to the process's directory: the path of a run has commas in it, and log.dirs is a list.
            data=Path(nodes.data(node).name),
            address=nodes.host.address(node),
            controllers={controller: nodes.host.address(controller) for controller in nodes.controllers},
            rack=dict(enumerate(self._spec.racks)).get(node, ""),
        )
        more = _ONE_LOG if self._spec.story else {}
        return {**self._mode.properties(node_place), **more, **self._forms.of(node).change}

    @override
    def metadata(self, nodes: Nodes) -> ControllerMetadata:
        return self._mode.metadata(nodes)

    @override
    def administration(
        self, nodes: Nodes, viewer: Viewer, resources: ExitStack
    ) -> tuple[Leadership, Reassignment | None]:
        operator: Administration | ZooKeeperAdministration
        if self.release.version < ASKED_SINCE:
            operator = ZooKeeperAdministration(lambda: nodes.host.address(CONTROLLER))
        else:
            operator = _operator(nodes, viewer, resources)
        confirmed = ConfirmedReassignment(operator.move_leader, operator.reassign, viewer.led_partitions)
        return confirmed, confirmed

    @override
    def succession(self, nodes: Nodes, viewer: Viewer, resources: ExitStack) -> Succession:
        operator = _operator(nodes, viewer, resources)
        members = ClusterMembers(nodes, operator, viewer.running, dynamic=self._world.upgrade_by != "restart")
        chosen = LEFT_ALONE | ({TRANSACTIONS_FEATURE} if self._spec.chosen().transaction_version == 1 else set())
        return KafkaSuccession(nodes, self._forms, operator, members, chosen)

    @override
    def configuration(self, nodes: Nodes) -> dict[str, Any]:
        to = f" to {self._world.upgrade_to}" if self._world.upgrade_to else ""
        return {"version": f"{self.release.version}{to}"} | self.properties(nodes, nodes.brokers[0])

    @override
    def own_words(self, nodes: Nodes) -> Ask:
        return LoggedRoles(nodes).of

    @override
    def observations(self, directory: Path, wall_begin_us: int) -> list[Observation]:
        logs = directory / "logs"
        by_node = {int(path.stem.rpartition("-")[2]): path for path in logs.glob("node-*.log")}
        return [*observations_in(by_node, wall_begin_us), *pauses_in(logs, wall_begin_us)]


def _operator(nodes: Nodes, viewer: Viewer, resources: ExitStack) -> Administration:
    """An administration that asks the brokers that run."""
    addresses = nodes.host.address
    administration = Administration(lambda: [f"{a.host}:{a.port}" for a in map(addresses, viewer.running())])
    resources.callback(administration.close)
    return administration


def host_kind(world: Kafka) -> type[Host]:
    """The kind of place that its nodes have."""
    return SshHost if isinstance(world.host, Ssh) else local_host(world.host)


def host_for(
    world: Kafka, directory: Path, distribution: KafkaDistribution, make: Callable[..., Host] = SshHost
) -> Callable[[Journal], Host]:
    """Makes the place of the nodes of a run, whose files are in ``directory``; ``make`` makes it on machines."""
    if not isinstance(world.host, Ssh):
        return local_host(world.host)
    machines = world.host.machines
    return lambda journal: make(
        machines, journal, LocalFiles(directory, distribution.release.home, Path(java_program()))
    )

"""Starts a cluster for one run: the nodes of a distribution on a host, until the run's topic is whole."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Protocol

from typing_extensions import override

from harness.ground.errors import HostError, StartError
from harness.ground.observations import IsrChanged, NotEnoughReplicas, Observation
from harness.plan import OPEN, Loopback, Namespaces, RunSpec
from harness.records.journal import Journal
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.clients import RealDirectClient
from harness.worlds.contract import NodeCrash
from harness.worlds.hosts import (
    Clocks,
    Host,
    Launch,
    LocalHost,
    LoopbackHost,
    MountedDisk,
    NamespaceHost,
    make_disks,
    undo_here,
)
from harness.worlds.real.attacked_nodes import AttackedNodes, connect
from harness.worlds.real.direct_access import Ask, DirectRequests, ReplicasOnDisk
from harness.worlds.real.lacks import ON_DISKS, out_of_reach
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.observation_times import rightly_timed
from harness.worlds.real.target import Preparation, assemble
from harness.worlds.real.topic import create_topic
from harness.worlds.real.view import ClusterImage, ControllerMetadata, Viewer, are_whole, partitions_of
from harness.worlds.real.world import Opened, Opening, RealCluster
from harness.worlds.refused_attempts import RefusalCounter
from harness.worlds.replica_logs import logs_on_disks
from nemesis.cluster import CONTROLLER, Capability, Leadership, Reassignment
from nemesis.succession import Succession
from workloads import RefusedAttempts, topics_of

#: The reference broker starts in about a second, Kafka in about four; a busy machine gets this long.
START_LIMIT_S: Final = 120.0
#: A node lives so much longer than the plan says, for starting, first writes, slow commands and rollouts, and a slow
#: machine.
SPARE_LIFETIME_S: Final = 600.0
#: The time that a broker, which may be far away, has for its first answer.
FAR_LIMIT_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.01


class Distribution(Protocol):
    """A system whose nodes are started for a run: how they are launched, asked, administered and read."""

    @property
    def controllers(self) -> int:
        """The number of nodes that are controllers; their own numbers begin at CONTROLLER."""

    def check(self) -> None:
        """Refuse what this system cannot do, as :meth:`harness.worlds.real.world.RealCluster.check` says."""

    def lacks(self, host: type[Host]) -> Mapping[Capability, str]:
        """The capabilities that this system's nodes lack on such a host under every plan, and why."""

    def launch(self, nodes: Nodes, node: int) -> Launch:
        """The start of a node, on its old files if it has any; its directory exists."""

    def metadata(self, nodes: Nodes) -> ControllerMetadata:
        """The controllers' metadata, once every node was started."""

    def administration(
        self, nodes: Nodes, viewer: Viewer, resources: ExitStack
    ) -> tuple[Leadership, Reassignment | None]:
        """The parts that change leaders and replicas; whatever has to be closed is pushed to ``resources``."""

    def succession(self, nodes: Nodes, viewer: Viewer, resources: ExitStack) -> Succession | None:  # noqa: ARG002
        """The part that gives nodes another form, if this system does not lack it; resources as above."""
        return None

    def configuration(self, nodes: Nodes) -> dict[str, Any]:
        """The configuration of every broker."""

    def own_words(self, nodes: Nodes) -> Ask:
        """A way to ask running brokers about their replicas, from now on."""

    def observations(self, directory: Path, wall_begin_us: int) -> list[Observation]:
        """The observations that the nodes of the run in ``directory`` wrote down, by their own wall clocks."""


def lifetime_s(spec: RunSpec) -> float:
    """The time after which a node ends by itself, in case the harness dies before it ends the node."""
    workload, answers_ms = spec.workload, spec.chosen().answer_limit_ms
    return (workload.duration_ms + workload.ending_limit_ms + answers_ms) / 1_000 + SPARE_LIFETIME_S


def local_host(planned: Loopback | Namespaces) -> type[NamespaceHost | LoopbackHost]:
    """The class of the host on this machine that a plan names; a run's journal makes one."""
    return NamespaceHost if isinstance(planned, Namespaces) else LoopbackHost


class StartedCluster(RealCluster):
    """A cluster that a run starts, on the host that ``make_host`` makes from the run's journal."""

    def __init__(
        self, spec: RunSpec, directory: Path, distribution: Distribution, make_host: Callable[[Journal], Host]
    ) -> None:
        self._spec = spec
        self._directory = directory.absolute()
        self._distribution = distribution
        self._make_host = make_host
        self._nodes: Nodes | None = None
        self._within_reach = False

    @override
    def check(self) -> None:
        self._distribution.check()

    @override
    def open(self, opening: Opening) -> Opened:
        spec, distribution, journal = self._spec, self._distribution, opening.journal
        host = self._make_host(journal)
        preparation = Preparation(spec.faults.families, out_of_reach(distribution.lacks(type(host)), type(host)))
        opening.resources.callback(host.close)
        disks = preparation.prepare(lambda: self._make_disks(journal), *ON_DISKS)
        nodes = Nodes(host, self._directory, spec.brokers, distribution.controllers, distribution.launch)
        host.open(nodes.all)
        preparation.lacks.update(host.lacks())
        clocks = preparation.prepare(lambda: Clocks(self._directory / "clocks"), Capability.CLOCKS)
        if clocks is not None:
            nodes.environment_of = clocks.environment
        for node in nodes.all:
            nodes.start(node)
        bootstrap = [f"{address.host}:{address.port}" for address in map(host.address, nodes.brokers)]
        viewer = Viewer(distribution.metadata(nodes), nodes, spec.workload, spec.racks)
        self._bring_up(nodes, viewer, bootstrap)
        clients = opening.make_clients(bootstrap, OPEN)
        attacked = AttackedNodes(nodes, viewer, journal, opening.clock, connect)
        administration = distribution.administration(nodes, viewer, opening.resources)
        succession = preparation.prepare(
            lambda: distribution.succession(nodes, viewer, opening.resources), Capability.SUCCESSION
        )
        target = assemble(attacked, preparation, disks, clocks, administration, succession=succession)
        self._nodes = nodes
        direct = RealDirectClient(opening.clock, host.address)
        opening.resources.callback(direct.close)
        self._within_reach = within_reach = isinstance(host, LocalHost)
        return Opened(
            target,
            clients,
            lambda: {"broker": distribution.configuration(nodes)},
            DirectRequests(direct),
            ReplicasOnDisk(nodes, viewer, distribution.own_words(nodes)) if within_reach else None,
            processor_s=host.processor_s if isinstance(host, LocalHost) else None,
        )

    def remove_files(self) -> None:
        """Remove all data and logs: even a controller's files name the addresses that were taken."""
        for name in ("data", "logs"):
            shutil.rmtree(self._directory / name, ignore_errors=True)

    @override
    def observations(self, wall_begin_us: int) -> list[Observation]:
        observed = self._distribution.observations(self._directory, wall_begin_us)
        return rightly_timed(observed, self._directory / "clocks")

    @override
    def refused_attempts(self, wall_begin_us: int) -> RefusedAttempts | None:
        if not self._within_reach:
            return None
        counter = RefusalCounter(self._spec.workload.log_partitions)
        for seen in self.observations(wall_begin_us):
            if isinstance(seen.fact, NotEnoughReplicas | IsrChanged):
                counter.add(seen.fact)
        return counter.attempts()

    @override
    def crashes(self, now_us: int) -> Sequence[NodeCrash]:
        return () if self._nodes is None else self._nodes.crashes.look(now_us)

    @override
    def replica_logs(self) -> ReplicaLogs | None:
        if self._spec.workload.application is not None:
            return None  # what an application writes has no values of the history
        return logs_on_disks(self._directory / "data", range(self._spec.brokers), *topics_of(self._spec.workload))

    def _make_disks(self, journal: Journal) -> Mapping[int, MountedDisk]:
        try:
            return make_disks(self._directory / "data", range(self._spec.brokers), journal)
        except HostError:
            undo_here(journal)  # the run goes on without disks
            raise

    def _bring_up(self, nodes: Nodes, viewer: Viewer, bootstrap: Sequence[str]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        workload, topics = self._spec.workload, topics_of(self._spec.workload)

        def registered(image: ClusterImage) -> bool:
            return all(node in image.brokers and not image.brokers[node].fenced for node in nodes.brokers)

        def accepting(_: ClusterImage) -> bool:
            # Kafka's controller unfences a broker a moment before the broker listens to clients.
            return all(connect(nodes.host.address(node), FAR_LIMIT_S) == "accepted" for node in nodes.brokers)

        def complete(image: ClusterImage) -> bool:
            views = partitions_of(image, *topics).values()
            return are_whole(views) and len(views) == len(topics) * workload.partitions

        def wait(condition: Callable[[ClusterImage], bool], complaint: str) -> None:
            while not condition(viewer.image()):
                nodes.check()
                if time.monotonic() > deadline:
                    logs = nodes.log(CONTROLLER).parent
                    raise StartError(f"{complaint} within {START_LIMIT_S:.0f} s; see the logs in {logs}")
                time.sleep(_LOOK_EVERY_S)

        wait(registered, "not every broker registered with the controller")
        wait(accepting, "not every broker accepts connections")
        for topic in topics:
            create_topic(bootstrap, topic, workload.partitions, self._spec.chosen(), self._spec.assignment)
        wait(complete, f"not every partition of {' and '.join(topics)} has a leader and all replicas")

"""One run on real processes: a controller, brokers, kafka-python clients, one thread that drives."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.errors import HostError, PortError, StartError
from harness.hosts import Disks, Host, LoopbackHost, NamespaceHost
from harness.observations import Observation
from harness.plan import Namespaces, RunSpec, Started, require_kind
from harness.records.journal import Journal
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.contract import NodeDeath
from harness.worlds.processes.clock import kept_begin_us
from harness.worlds.processes.crashes import Deaths, with_deaths
from harness.worlds.processes.leadership import ConfirmedLeadership, ControlSocketOperator
from harness.worlds.processes.nodes import Nodes, trace_files
from harness.worlds.processes.real import Opened, RealWorld
from harness.worlds.processes.shaping import rightly_timed, wall_clocks
from harness.worlds.processes.target import NodeControl, Preparation, assemble, connect
from harness.worlds.processes.topic import create_topic
from harness.worlds.processes.traces import observations_in
from harness.worlds.processes.view import ClusterImage, Viewer, partitions_of
from harness.worlds.reference import LACKS, refuse_what_it_lacks
from harness.worlds.replica_logs import logs_on_disks
from nemesis.cluster import CONTROLLER, Capability, Leadership, Reassignment

#: The reference broker takes about a second, Kafka about four; machines that are busy with other things get this long.
START_LIMIT_S: Final = 60.0
#: A port that was free a moment ago may be taken when its node gets there; then others are chosen.
PORT_CHOICES: Final = 3
#: What a node's life may exceed the run's plan by, for starting, first writes, slow commands and a slow machine.
SPARE_LIFETIME_S: Final = 300.0
#: What needs a disk of each broker's own.
ON_DISKS: Final = (Capability.POWER, Capability.DISK_SPACE, Capability.DISK_SPEED)
#: For a broker to answer at first, wherever on earth it is.
FAR_LIMIT_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.01


class ProcessesWorld(RealWorld):
    """Implements :class:`harness.worlds.contract.World`. The run's files stand in ``directory``, which must exist.

    What is particular to the reference broker stands in the methods ``_make_nodes``, ``_make_viewer``, ``_check`` and
    ``observations``; another system's world replaces these and shares the rest.

    ``ports`` fixes ports by node on the loopback host; without it free ones are chosen.
    """

    def __init__(self, spec: RunSpec, directory: Path, ports: Mapping[int, int] | None = None) -> None:
        super().__init__(spec, directory)
        self._ports = ports
        self._watched: Deaths | None = None
        self._deaths: Sequence[NodeDeath] = ()

    def open(self) -> None:
        """See :meth:`World.open`.

        Raises:
            StartError: a node died at its start, or the cluster was not ready within START_LIMIT_S.
            PortError: a given port is taken.
            HostError: this machine cannot offer the host.
            PlanError: this world cannot do what the run asks for.
        """
        self._check()
        self._begin()
        for choice in range(PORT_CHOICES):
            try:
                self._open_once()
            except BaseException as error:
                self.close()
                if isinstance(error, PortError) and self._ports is None and choice < PORT_CHOICES - 1:
                    continue
                raise
            return

    def observations(self) -> Sequence[Observation]:
        """See :meth:`World.observations`. From files, so also after :meth:`close` and in another process."""
        begin_us = kept_begin_us(self._directory)
        told = [] if begin_us is None else rightly_timed(self._told(begin_us), self._directory / "clocks")
        return with_deaths(told, self._deaths)

    def _told(self, wall_begin_us: int) -> list[Observation]:
        """What the nodes told of themselves."""
        return observations_in(trace_files(self._directory), wall_begin_us)

    def deaths(self) -> Sequence[NodeDeath]:
        """See :meth:`World.deaths`. After :meth:`close`, what was found before it."""
        if self._watched is not None:
            self._deaths = self._watched.look(self._clock.now_us())
        return self._deaths

    def replica_logs(self) -> ReplicaLogs | None:
        """See :meth:`World.replica_logs`. After :meth:`close` only: files of a running broker still change."""
        return logs_on_disks(self._directory / "data", range(self._spec.brokers), self._spec.workload.topic)

    def close(self) -> None:
        """See :meth:`World.close`. Logs and data stay."""
        self.deaths()
        self._watched = None
        super().close()

    def _check(self) -> None:
        """Refuse what this world cannot do, before anything is started."""
        refuse_what_it_lacks(self._settings)

    def _open_once(self) -> None:
        """Start everything."""
        journal = self._make_journal()
        preparation = Preparation(self._spec.faults.families, self._lacks())
        disks = preparation.prepare(lambda: self._make_disks(journal), *ON_DISKS)
        host = self._make_host(journal)
        self._resources.callback(host.close)
        nodes = self._make_nodes(host)
        host.open(nodes.all)
        preparation.lacks.update(host.lacks())
        clocks = preparation.prepare(lambda: wall_clocks(host, self._directory / "clocks"), Capability.CLOCKS)
        if clocks is not None:
            nodes.environment_of = clocks.environment
        for node in nodes.all:
            nodes.start(node)
        bootstrap = [f"{address.host}:{address.port}" for address in map(host.address, nodes.brokers)]
        viewer = self._make_viewer(host, nodes)
        self._bring_up(host, nodes, viewer, bootstrap)
        clients = self._make_clients(bootstrap)
        control = NodeControl(host, nodes, viewer, journal, self._clock)
        target = assemble(control, preparation, disks, clocks, self._make_administration(host, viewer))
        self._cluster = Opened(target, clients, lambda: {"broker": nodes.broker_configuration()})
        self._watched = nodes.deaths

    def _make_host(self, journal: Journal) -> Host:
        if isinstance(require_kind(self._spec.world, Started).host, Namespaces):
            return NamespaceHost(journal)
        return LoopbackHost(journal, self._ports)

    def _lacks(self) -> Mapping[Capability, str]:
        """What is not to be had in this world, whatever is planned."""
        return LACKS

    def _make_disks(self, journal: Journal) -> Disks:
        disks = Disks(self._directory / "data", range(self._spec.brokers), journal)
        self._resources.callback(disks.close)  # where there is no host yet that undoes it
        try:
            disks.make()
        except HostError:
            disks.close()
            raise
        return disks

    def _make_nodes(self, host: Host) -> Nodes:
        return Nodes(host, self._directory, self._settings, self._spec.brokers, self._lifetime_s())

    def _make_administration(self, host: Host, viewer: Viewer) -> tuple[Leadership, Reassignment | None]:
        return ConfirmedLeadership(ControlSocketOperator(host), lambda: viewer.view().partitions), None

    def _make_viewer(self, host: Host, nodes: Nodes) -> Viewer:
        return Viewer(host, nodes, self._spec.workload.topic)

    def _lifetime_s(self) -> float:
        workload, settings = self._spec.workload, self._settings
        answers_ms = settings.delivery_timeout_ms + settings.request_timeout_ms
        return (workload.duration_ms + workload.drain_limit_ms + answers_ms) / 1_000 + SPARE_LIFETIME_S

    def _bring_up(self, host: Host, nodes: Nodes, viewer: Viewer, bootstrap: Sequence[str]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        workload = self._spec.workload

        def registered(image: ClusterImage) -> bool:
            return all(node in image.brokers and not image.brokers[node].fenced for node in nodes.brokers)

        def complete(image: ClusterImage) -> bool:
            views = partitions_of(image, workload.topic).values()
            led = all(view.leader is not None and set(view.isr) == set(view.replicas) for view in views)
            return led and len(views) == workload.partitions

        _wait(registered, "not every broker registered with the controller", nodes, viewer, deadline)
        _wait(
            # Kafka's controller lets a broker take part a moment before the broker listens to clients.
            lambda _: all(connect(host.address(node), FAR_LIMIT_S) == "accepted" for node in nodes.brokers),
            "not every broker accepts connections",
            nodes,
            viewer,
            deadline,
        )
        create_topic(bootstrap, workload.topic, workload.partitions, self._settings)
        _wait(
            complete, f"not every partition of {workload.topic} has a leader and all replicas", nodes, viewer, deadline
        )


def _wait(
    condition: Callable[[ClusterImage], bool], complaint: str, nodes: Nodes, viewer: Viewer, deadline: float
) -> None:
    while not condition(viewer.image()):
        nodes.check()
        if time.monotonic() > deadline:
            raise StartError(
                f"{complaint} within {START_LIMIT_S:.0f} s; see the logs in {nodes.log(CONTROLLER).parent}"
            )
        time.sleep(_LOOK_EVERY_S)

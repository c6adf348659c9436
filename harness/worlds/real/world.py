"""Holds one run with real clients: its directory, its clock, and a cluster that it opens and closes.

A :class:`RealCluster` knows what the cluster is and how it is opened: one that is started for the run
(:mod:`harness.worlds.real.started`), or one that exists already (:mod:`harness.worlds.existing`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from typing_extensions import override

from harness.ground.errors import HarnessError, PlanError, PortError
from harness.ground.machine.disk_watch import DiskWatch
from harness.ground.machine.processor_watch import ProcessorWatch
from harness.ground.machine.watch import Watch
from harness.ground.observations import Observation
from harness.plan import OPEN, RealTime, RunSpec, Security, require_kind
from harness.records.journal import FILE_NAME, Journal
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.clients import CLIENTS, ClientLibrary, RealClients, without_secrets
from harness.worlds.contract import DirectClient, NodeCrash, Replicas, World
from harness.worlds.hosts import PORT_CHOICES
from harness.worlds.real.clock import RealClock
from harness.worlds.real.instances import LocalInstances
from harness.worlds.real.observation_times import keep_begin, kept_begin_us, with_crashes
from nemesis.cluster import Target
from nemesis.faults import InstanceCut
from workloads import ClientCapability, RefusedAttempts, kind_of, topics_of

#: Clients give up at once; their threads get this time to notice.
CLIENTS_LIMIT_S: Final = 10.0
#: Libraries that would log every injected fault to standard error.
_LOGGERS: Final = ("kafka", "harness.worlds.clients", "kazoo", "paramiko")


class Opening(NamedTuple):
    """The means to open a cluster: the run's clock and journal, and a maker of clients for its bootstrap servers.

    Each step pushes its undoing to ``resources`` before it can fail; they are undone in reverse order.
    """

    clock: RealClock
    journal: Journal
    resources: ExitStack
    make_clients: Callable[[Sequence[str], Security], RealClients]


class Opened(NamedTuple):
    """A cluster that is ready; ``configuration`` gives its part of the settings in effect, by role.

    ``direct`` and ``replicas`` are for scripted stories, see :class:`harness.worlds.contract.World`. ``processor_s``
    gives the processor's time of nodes that run on this machine, with its disk and its processors.
    """

    target: Target
    clients: RealClients
    configuration: Callable[[], Mapping[str, dict[str, Any]]]
    direct: DirectClient | None = None
    replicas: Replicas | None = None
    processor_s: Callable[[], float] | None = None


class RealCluster(ABC):
    """A real cluster of one run, opened once (or again, after a port was taken)."""

    def check(self) -> None:  # noqa: B027 - an existing cluster has to be asked first
        """Refuse what this cluster cannot do, before anything is touched, and prepare what takes long.

        Raises:
            HarnessError: the plan or this machine has to be changed; the text says how.
        """

    @abstractmethod
    def open(self, opening: Opening) -> Opened:
        """Start or reach the cluster and make the run's topic.

        Raises:
            HarnessError: it cannot be opened; the text says what to do.
        """

    def remove_files(self) -> None:  # noqa: B027 - the files of an existing cluster are its own
        """Remove the nodes' files that a failed opening left, because the next one must begin without them."""

    @abstractmethod
    def observations(self, wall_begin_us: int) -> list[Observation]:
        """The observations in the run's files; time 0 is ``wall_begin_us``, in microseconds since the epoch."""

    def refused_attempts(self, wall_begin_us: int) -> RefusedAttempts | None:  # noqa: ARG002
        """Count the refused attempts as :class:`World` does; None if the brokers' words are out of reach."""
        return None

    def crashes(self, now_us: int) -> Sequence[NodeCrash]:  # noqa: ARG002
        """The nodes that ended by themselves; none if the cluster's processes are not the run's own."""
        return ()

    def replica_logs(self) -> ReplicaLogs | None:
        """The logs on the brokers' disks, as :class:`World` says; None if no disk is in reach."""
        return None


#: The client library of a run: from its world and its directory, and what ends the library's own processes.
Libraries = Callable[[RealTime, Path, ExitStack], ClientLibrary]


class RealWorld(World):
    """A world with real clients and a real cluster. The run's files are in ``directory``, which must exist.

    ``close`` raises a HostError if a part of the run could not be undone; it stays in the journal then.
    """

    def __init__(
        self,
        spec: RunSpec,
        directory: Path,
        cluster: RealCluster,
        libraries: Libraries = lambda world, *_: CLIENTS[world.client],
    ) -> None:
        self._spec = spec
        self._libraries = libraries
        self._directory = directory.absolute()
        self._cluster = cluster
        self._clock = RealClock()
        self._opened: Opened | None = None
        self._resources = ExitStack()
        self._crashes: Sequence[NodeCrash] = ()
        self._running = False
        self._watches: Sequence[Watch] = ()
        self._journal: Journal | None = None
        self._instances: LocalInstances | None = None

    @property
    def clock(self) -> RealClock:
        """The run's clock, which ``open`` sets to 0."""
        return self._clock

    @property
    @override
    def clients(self) -> RealClients:
        return self._open_cluster().clients

    def clients_of(self, library: ClientLibrary, servers: Sequence[str] = ()) -> RealClients:
        """Clients of another library, which the caller has to close; they begin at ``servers``, or at all brokers."""
        return library.clients(self._clock, self._spec.chosen(), servers or self.clients.bootstrap)

    @property
    @override
    def target(self) -> Target:
        return self._open_cluster().target

    @property
    @override
    def direct(self) -> DirectClient | None:
        return self._open_cluster().direct

    @property
    @override
    def replicas(self) -> Replicas | None:
        return self._open_cluster().replicas

    @property
    @override
    def instances(self) -> LocalInstances | None:
        plan = self._spec.workload.application
        if plan is None:
            return None
        if self._instances is None:
            inputs = self._spec.workload.topic_names
            topics, settings, journal = topics_of(self._spec.workload), self._spec.chosen(), self._journal
            if journal is None:
                raise HarnessError("this world has not been opened; call open() first")
            words = {
                "bootstrap": ",".join(self.clients.bootstrap),
                "input": ",".join(inputs),
                "output": ",".join(topics[len(inputs) :]),
                "group": topics[0],
                "session_timeout_ms": str(settings.session_timeout_ms),
                "transaction_timeout_ms": str(settings.transaction_timeout_ms),
            }
            directory = self._directory / "application"
            directory.mkdir(exist_ok=True)
            self._instances = LocalInstances(plan, words, directory, journal, topics)
            self._resources.callback(self._instances.close)
            if InstanceCut.family in self._spec.faults.families:
                self._instances.learn_brokers()
        return self._instances

    def open(self) -> None:
        """Start or reach the cluster, and create the run's topic; tried again when a port was taken.

        Raises:
            StartError: a node died at its start, or the cluster was not ready in time.
            PortError: addresses were taken in every try.
            HostError: this machine lacks what the host needs, or the cluster cannot be reached.
            PlanError: this cluster cannot do what the run asks for.
        """
        self._cluster.check()
        self._clock = RealClock()
        keep_begin(self._directory, self._clock.wall_begin_us)
        for choice in range(PORT_CHOICES):
            try:
                self._opened = self._cluster.open(self._opening())
                self._running = True
            except BaseException as error:
                self.close()
                if isinstance(error, PortError) and choice < PORT_CHOICES - 1:
                    self._cluster.remove_files()
                    continue
                raise
            return

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Let time pass until ``finished()`` or ``limit_us``; an exception, Ctrl-C too, closes the world first."""
        try:
            return self._clock.run(finished, limit_us)
        except BaseException:
            self.close()
            raise

    @override
    def hindrance(self) -> str:
        processor_s = self._open_cluster().processor_s
        if processor_s is None:
            return ""
        if not self._watches:
            self._watches = (DiskWatch(self._directory), ProcessorWatch(processor_s))
            for watch in self._watches:
                self._resources.callback(watch.close)
        return next((watch.hindrance for watch in self._watches if not watch.serves), "")

    def observations(self) -> Sequence[Observation]:
        """All observations so far, read from files, so also after :meth:`close` and in another process."""
        begin_us = kept_begin_us(self._directory)
        return with_crashes([] if begin_us is None else self._cluster.observations(begin_us), self._crashes)

    @override
    def refused_attempts(self) -> RefusedAttempts | None:
        begin_us = kept_begin_us(self._directory)
        return None if begin_us is None else self._cluster.refused_attempts(begin_us)

    def crashes(self) -> Sequence[NodeCrash]:
        """Every node that ended by itself until now, or until :meth:`close`."""
        if self._running:
            self._crashes = self._cluster.crashes(self._clock.now_us())
        return self._crashes

    @property
    def broken_invariant(self) -> None:
        """None always: no observer sees all replicas of real nodes at one moment."""

    @override
    def out_of_sync(self, healed_us: int) -> Mapping[str, str]:
        return {}

    def replica_logs(self) -> ReplicaLogs | None:
        """The logs on the brokers' disks, after :meth:`close` only: files of a running broker still change."""
        return self._cluster.replica_logs()

    @override
    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        opened = self._open_cluster()
        return opened.clients.effective_configuration() | dict(opened.configuration())

    def close(self) -> None:
        """End every process and remove every rule; logs and data stay."""
        self.crashes()
        self._running = False
        self._resources.close()

    def _open_cluster(self) -> Opened:
        if self._opened is None:
            raise HarnessError("this world has not been opened; call open() first")
        return self._opened

    def _opening(self) -> Opening:
        self._resources.enter_context(logs_diverted(self._directory / "logs" / "clients.log"))
        journal = self._journal = Journal(self._directory / FILE_NAME)
        self._resources.callback(journal.close)
        # Before the cluster: what the library lacks is said at once.
        library = self._libraries(require_kind(self._spec.world, RealTime), self._directory, self._resources)
        refuse_unable(library, self._spec)
        return Opening(self._clock, journal, self._resources, partial(self._make_clients, library))

    def _make_clients(self, library: ClientLibrary, bootstrap: Sequence[str], security: Security = OPEN) -> RealClients:
        settings = self._spec.chosen()
        racks = self._spec.racks_of_brokers if settings.follower_fetching else ()
        clients = library.clients(self._clock, settings, bootstrap, security, racks=racks)
        self._resources.callback(clients.close, CLIENTS_LIMIT_S)
        return clients


def refuse_unable(library: ClientLibrary, spec: RunSpec) -> None:
    """Refuse a workload that needs what a client library of the run lacks, by its own word (PlanError)."""
    needs, protocol = kind_of(spec.workload).needs, spec.chosen().group_protocol
    for each in (library, *library.beside):
        if lacking := next((each.lacks[need] for need in needs if need in each.lacks), ""):
            raise PlanError(f'the workload "{spec.workload.name}" is not for this client: {lacking}')
        if ClientCapability.SUBSCRIPTION in needs and protocol not in each.protocols:
            raise PlanError(f'{each.name} does not know group.protocol = "{protocol}"; write another under [settings]')


class _SecretFree(logging.Formatter):
    """Formats log records without passwords, which libraries and brokers may write into them."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


@contextmanager
def logs_diverted(path: Path) -> Iterator[None]:
    """Send the logs of the client libraries to the file ``path``: under faults they are long and say nothing new."""
    path.parent.mkdir(exist_ok=True)
    handler = logging.FileHandler(path, delay=True)
    handler.setLevel(logging.INFO)  # below this level kafka-python logs passwords
    handler.setFormatter(_SecretFree("%(asctime)s %(levelname)s %(threadName)s %(name)s %(message)s"))
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    propagated = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, propagate in zip(loggers, propagated, strict=True):
            logger.removeHandler(handler)
            logger.propagate = propagate
        handler.close()

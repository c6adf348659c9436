"""One run with real clients: the run's directory and clock, an opened cluster, the end of it all.

What the cluster is, and how it is opened, is the business of a :class:`RealCluster`: one that is started for the run
(:mod:`harness.worlds.real.started`), or one that exists already (:mod:`harness.worlds.existing`).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.clients import CLIENTS, RealClients, without_secrets
from harness.errors import HarnessError, PortError
from harness.hosts import PORT_CHOICES
from harness.observations import Observation
from harness.plan import OPEN, RealTime, RunSpec, Security, require_kind
from harness.records.journal import FILE_NAME, Journal
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.contract import DirectClient, NodeCrash, Replicas
from harness.worlds.real.clock import RealClock
from harness.worlds.real.observation_times import keep_begin, kept_begin_us, with_crashes
from nemesis.cluster import Target

#: Clients give up at once; this is for their threads to notice.
CLIENTS_LIMIT_S: Final = 10.0
#: Libraries that would log every injected fault to standard error.
_LOGGERS: Final = ("kafka", "harness.clients", "kazoo", "paramiko")


class Opening(NamedTuple):
    """What a cluster is opened with: the run's clock and journal, and what makes clients for its bootstrap servers.

    Whatever is needed on the way has its end pushed to ``resources`` before it can fail; ends run in reverse order.
    """

    clock: RealClock
    journal: Journal
    resources: ExitStack
    make_clients: Callable[[Sequence[str], Security], RealClients]


class Opened(NamedTuple):
    """A cluster that can be worked with; ``configuration`` says what its side of the settings is, by role.

    ``direct`` and ``replicas`` are for scripted stories, see :class:`harness.worlds.contract.World`.
    """

    target: Target
    clients: RealClients
    configuration: Callable[[], Mapping[str, dict[str, Any]]]
    direct: DirectClient | None = None
    replicas: Replicas | None = None


class RealCluster(ABC):
    """A real cluster of one run, opened once (or again, after a port was taken)."""

    def check(self) -> None:  # noqa: B027 - of somebody else's nothing can be said before it was asked
        """Refuse what this cluster cannot do, before anything is touched, and see to what takes long.

        Raises:
            HarnessError: with what to change.
        """

    @abstractmethod
    def open(self, opening: Opening) -> Opened:
        """Start or reach the cluster and make the run's topic.

        Raises:
            HarnessError: with what to do.
        """

    def remove_files(self) -> None:  # noqa: B027 - of nodes that exist already there are none
        """Remove the nodes' files that an opening left when it failed: the next one begins with none."""

    @abstractmethod
    def observations(self, wall_begin_us: int) -> list[Observation]:
        """What was observed, from the run's files; time 0 is ``wall_begin_us``, in microseconds since the epoch."""

    def crashes(self, now_us: int) -> Sequence[NodeCrash]:  # noqa: ARG002
        """See :meth:`harness.worlds.contract.World.crashes`; none of processes that are somebody else's."""
        return ()

    def replica_logs(self) -> ReplicaLogs | None:
        """See :meth:`harness.worlds.contract.World.replica_logs`."""
        return None


class RealWorld:
    """Implements :class:`harness.worlds.contract.World`. The run's files are in ``directory``, which must exist.

    ``close`` raises a HostError if something of the run could not be undone; it stays in the journal then.
    """

    def __init__(self, spec: RunSpec, directory: Path, cluster: RealCluster) -> None:
        self._spec = spec
        self._directory = directory.absolute()
        self._cluster = cluster
        self._clock = RealClock()
        self._opened: Opened | None = None
        self._resources = ExitStack()
        self._crashes: Sequence[NodeCrash] = ()
        self._running = False

    @property
    def clock(self) -> RealClock:
        """See :meth:`World.clock`. Set to 0 by ``open``."""
        return self._clock

    @property
    def clients(self) -> RealClients:
        """See :meth:`World.clients`."""
        return self._open_cluster().clients

    @property
    def target(self) -> Target:
        """See :meth:`World.target`."""
        return self._open_cluster().target

    @property
    def direct(self) -> DirectClient | None:
        """See :attr:`World.direct`."""
        return self._open_cluster().direct

    @property
    def replicas(self) -> Replicas | None:
        """See :attr:`World.replicas`."""
        return self._open_cluster().replicas

    def open(self) -> None:
        """See :meth:`World.open`.

        Raises:
            StartError: a node died at its start, or the cluster was not ready in time.
            PortError: addresses were taken, again and again.
            HostError: the host is not to be had here, or the cluster cannot be reached.
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
        """See :meth:`World.drive`. An exception out of a callback, and Ctrl-C, close the world before they go on."""
        try:
            return self._clock.run(finished, limit_us)
        except BaseException:
            self.close()
            raise

    def observations(self) -> Sequence[Observation]:
        """See :meth:`World.observations`. From files, so also after :meth:`close` and in another process."""
        begin_us = kept_begin_us(self._directory)
        return with_crashes([] if begin_us is None else self._cluster.observations(begin_us), self._crashes)

    def crashes(self) -> Sequence[NodeCrash]:
        """See :meth:`World.crashes`. After :meth:`close`, what was found before it."""
        if self._running:
            self._crashes = self._cluster.crashes(self._clock.now_us())
        return self._crashes

    @property
    def broken_invariant(self) -> None:
        """See :attr:`World.broken_invariant`: nobody sees all replicas of real nodes at one moment."""

    def replica_logs(self) -> ReplicaLogs | None:
        """See :meth:`World.replica_logs`. After :meth:`close` only: files of a running broker still change."""
        return self._cluster.replica_logs()

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """See :meth:`World.effective_configuration`."""
        opened = self._open_cluster()
        return opened.clients.effective_configuration() | dict(opened.configuration())

    def close(self) -> None:
        """See :meth:`World.close`. Logs and data stay."""
        self.crashes()
        self._running = False
        self._resources.close()

    def _open_cluster(self) -> Opened:
        if self._opened is None:
            raise HarnessError("this world has not been opened; call open() first")
        return self._opened

    def _opening(self) -> Opening:
        self._resources.enter_context(logs_diverted(self._directory / "logs" / "clients.log"))
        journal = Journal(self._directory / FILE_NAME)
        self._resources.callback(journal.close)
        return Opening(self._clock, journal, self._resources, self._make_clients)

    def _make_clients(self, bootstrap: Sequence[str], security: Security = OPEN) -> RealClients:
        library = CLIENTS[require_kind(self._spec.world, RealTime).client]
        clients = library.clients(self._clock, self._spec.chosen(), bootstrap, security)
        self._resources.callback(clients.close, CLIENTS_LIMIT_S)
        return clients


class _SecretFree(logging.Formatter):
    """Writes no password, whatever libraries and brokers say."""

    def format(self, record: logging.LogRecord) -> str:
        """See :meth:`logging.Formatter.format`."""
        return without_secrets(super().format(record))


@contextmanager
def logs_diverted(path: Path) -> Iterator[None]:
    """What the client libraries log goes to a file of the run: under faults it is much, and no news."""
    path.parent.mkdir(exist_ok=True)
    handler = logging.FileHandler(path, delay=True)
    handler.setLevel(logging.INFO)  # what kafka-python logs below it contains passwords
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

"""What every world with real clients shares: the run's directory and clock, the opened cluster, the end of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from harness.clients import CLIENTS, RealClients
from harness.errors import HarnessError
from harness.plan import OPEN, RealTime, RunSpec, Security, require_kind
from harness.records.journal import FILE_NAME, Journal
from harness.worlds.processes.client_logs import logs_diverted
from harness.worlds.processes.clock import RealClock, keep_begin
from nemesis.cluster import Target

#: Clients give up at once; this is for their threads to notice.
CLIENTS_LIMIT_S: Final = 10.0


class Opened(NamedTuple):
    """A cluster that can be worked with; ``configuration`` says what its side of the settings is, by role."""

    target: Target
    clients: RealClients
    configuration: Callable[[], Mapping[str, dict[str, Any]]]


class RealWorld:
    """The common part of :class:`harness.worlds.contract.World`. The run's files are in ``directory``, which exists.

    A world sets ``_cluster`` when it is open. Whatever it needs on the way there has its end pushed to
    ``_resources`` before it can fail; ends run in reverse order.
    """

    def __init__(self, spec: RunSpec, directory: Path) -> None:
        self._spec = spec
        self._directory = directory.absolute()
        self._settings = spec.chosen()
        self._clock = RealClock()
        self._cluster: Opened | None = None
        self._resources = ExitStack()

    @property
    def clock(self) -> RealClock:
        """See :meth:`World.clock`. Set to 0 by ``open``."""
        return self._clock

    @property
    def clients(self) -> RealClients:
        """See :meth:`World.clients`."""
        return self._opened().clients

    @property
    def target(self) -> Target:
        """See :meth:`World.target`."""
        return self._opened().target

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """See :meth:`World.drive`. An exception out of a callback, and Ctrl-C, close the world before they go on."""
        try:
            return self._clock.run(finished, limit_us)
        except BaseException:
            self.close()
            raise

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """See :meth:`World.effective_configuration`."""
        cluster = self._opened()
        return cluster.clients.effective_configuration() | dict(cluster.configuration())

    def close(self) -> None:
        """See :meth:`World.close`."""
        self._resources.close()

    def _opened(self) -> Opened:
        if self._cluster is None:
            raise HarnessError("this world has not been opened; call open() first")
        return self._cluster

    def _begin(self) -> None:
        """The clock reads 0 now; that is written down."""
        self._clock = RealClock()
        keep_begin(self._directory, self._clock)

    def _make_journal(self) -> Journal:
        """The run's journal; from now on the client libraries' words go to a file."""
        self._resources.enter_context(logs_diverted(self._directory / "logs" / "clients.log"))
        journal = Journal(self._directory / FILE_NAME)
        self._resources.callback(journal.close)
        return journal

    def _make_clients(self, bootstrap: Sequence[str], security: Security = OPEN) -> RealClients:
        library = CLIENTS[require_kind(self._spec.world, RealTime).client]
        clients = library.clients(self._clock, self._settings, bootstrap, security)
        self._resources.callback(clients.close, CLIENTS_LIMIT_S)
        return clients

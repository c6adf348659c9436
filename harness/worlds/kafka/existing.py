"""One run on a Kafka cluster that exists already: spoken to as its clients do, from its bootstrap servers on.

The run makes a topic of its own and deletes it. What can be broken is what the cluster's administration offers: leaders
move, replicas are reassigned. Every other fault is skipped, with the reason in its receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

import msgspec

from harness.clients.choice import CLIENTS
from harness.clients.contract import RealClients
from harness.errors import HarnessError, PlanError
from harness.kafka.admin import Administration
from harness.kafka.properties import possible
from harness.kafka.topics import OwnTopic, require_ids
from harness.plan import RunSpec
from harness.worlds.contract import NodeDeath, Observation
from harness.worlds.kafka.watch import Watch
from harness.worlds.lacking import LEADERSHIP_KINDS, NoNodes, NoStorage, lacking
from harness.worlds.processes.client_logs import logs_diverted
from harness.worlds.processes.clock import RealClock, keep_begin, kept_begin_us
from harness.worlds.processes.leadership import ConfirmedLeadership
from harness.worlds.processes.nodes import trace_files
from harness.worlds.processes.topic import topic_configs
from harness.worlds.processes.traces import observations_in
from harness.worlds.replica_logs import ReplicaLogs
from nemesis.contract import CONTROLLER, ClusterView, Storage
from nemesis.families import AnyFault
from nemesis.journal import FILE_NAME, Journal

#: Clients give up at once; this is for their threads to notice.
CLIENTS_LIMIT_S: Final = 10.0
#: For a cluster far away to answer at all.
REACH_LIMIT_S: Final = 10.0
_KINDS: Final = [str(kind.__struct_config__.tag) for kind in get_args(AnyFault)]
_LACKING: Final = lacking(
    [kind for kind in _KINDS if kind not in LEADERSHIP_KINDS],
    "the machines of a cluster that exists already are out of reach; what can be asked of it is to move leaders and "
    "to reassign replicas (the families move and reassign)",
)


class ExistingTarget(NoNodes):
    """Implements :class:`nemesis.contract.Target` for a cluster that is only asked."""

    def __init__(self, watch: Watch, leadership: ConfirmedLeadership) -> None:
        self._watch = watch
        self.leadership: Final = leadership
        self.storage: Storage = NoStorage()

    def view(self) -> ClusterView:
        """See :meth:`nemesis.contract.Target.view`; at most as old as the last look of :class:`Watch`."""
        return msgspec.structs.replace(self._watch.view(), unavailable=_LACKING)


class _Cluster(NamedTuple):
    target: ExistingTarget
    clients: RealClients
    configuration: Mapping[str, dict[str, Any]]


class ExistingWorld:
    """Implements :class:`harness.worlds.contract.World`. The run's files stand in ``directory``, which must exist."""

    def __init__(self, spec: RunSpec, directory: Path) -> None:
        self._spec = spec
        self._directory = directory.absolute()
        self._settings = spec.chosen()
        self._clock = RealClock()
        self._cluster: _Cluster | None = None
        self._resources = ExitStack()

    @property
    def clock(self) -> RealClock:
        """See :meth:`World.clock`."""
        return self._clock

    @property
    def clients(self) -> RealClients:
        """See :meth:`World.clients`."""
        return self._opened().clients

    @property
    def target(self) -> ExistingTarget:
        """See :meth:`World.target`."""
        return self._opened().target

    def open(self) -> None:
        """See :meth:`World.open`.

        Raises:
            HostError: no bootstrap server answered, or the run's topic cannot be had.
            PlanError: the cluster is too small for the plan, or of a release that works otherwise.
        """
        self._clock = RealClock()
        keep_begin(self._directory, self._clock)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """See :meth:`World.drive`. An exception out of a callback, and Ctrl-C, close the world before they go on."""
        try:
            return self._clock.run(finished, limit_us)
        except BaseException:
            self.close()
            raise

    def observations(self) -> Sequence[Observation]:
        """See :meth:`World.observations`: what was seen of leaders and replicas, from a file of the run."""
        begin_us = kept_begin_us(self._directory)
        return [] if begin_us is None else observations_in(trace_files(self._directory), begin_us)

    def deaths(self) -> Sequence[NodeDeath]:
        """See :meth:`World.deaths`. The processes are somebody else's."""
        return ()

    def replica_logs(self) -> ReplicaLogs | None:
        """See :meth:`World.replica_logs`. No disk is in reach."""
        return None

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """See :meth:`World.effective_configuration`; besides, what the run's topic sets (``topic``)."""
        cluster = self._opened()
        return cluster.clients.effective_configuration() | dict(cluster.configuration)

    def close(self) -> None:
        """See :meth:`World.close`.

        Raises:
            HostError: the run's topic could not be deleted; it stays in the journal.
        """
        self._resources.close()

    def _opened(self) -> _Cluster:
        if self._cluster is None:
            raise HarnessError("this world has not been opened; call open() first")
        return self._cluster

    def _open(self) -> None:
        """Reach everything, each thing with its end pushed before it can fail; ends run in reverse order."""
        logs = self._directory / "logs"
        self._resources.enter_context(logs_diverted(logs / "clients.log"))
        journal = Journal(self._directory / FILE_NAME)
        self._resources.callback(journal.close)
        administration = self._administration()
        brokers = self._large_enough(administration)
        release = administration.release(brokers[0])
        require_ids(release)
        possible(self._settings, release)
        topic = OwnTopic(administration, journal, self._spec.workload.topic, self._spec.bootstrap)
        self._resources.callback(topic.delete)
        topic.create(self._spec.workload.partitions, self._settings.replication_factor, topic_configs(self._settings))
        configuration = {
            "broker": {"version": f"{release.major}.{release.minor}"} | administration.broker_configuration(brokers[0]),
            "topic": administration.topic_configuration(topic.name),
        }
        watch = Watch(self._administration(), topic.name, logs / f"trace-{CONTROLLER}.jsonl")
        self._resources.callback(watch.end)
        watch.begin()
        clients = CLIENTS[self._spec.client](self._clock, self._settings, self._spec.bootstrap)
        self._resources.callback(clients.close, CLIENTS_LIMIT_S)
        leadership = ConfirmedLeadership(administration, lambda: watch.view().partitions)
        self._cluster = _Cluster(ExistingTarget(watch, leadership), clients, configuration)

    def _administration(self) -> Administration:
        administration = Administration(lambda: self._spec.bootstrap, limit_s=REACH_LIMIT_S)
        self._resources.callback(administration.close)
        return administration

    def _large_enough(self, administration: Administration) -> tuple[int, ...]:
        """The brokers of the cluster."""
        brokers = administration.running()
        if len(brokers) < self._settings.replication_factor:
            raise PlanError(
                f"replication.factor={self._settings.replication_factor} needs that many brokers and the cluster has "
                f"{len(brokers)}; lower it"
            )
        return brokers

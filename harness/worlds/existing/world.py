"""One run on a Kafka cluster that exists already: spoken to as its clients do, from its bootstrap servers on.

The run makes a topic of its own and deletes it. What can be broken is what the cluster's administration offers: leaders
move, replicas are reassigned. Every other fault is skipped, with the reason in its receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kafka.errors import KafkaError

from harness.clients.credentials import at_home, require_credentials
from harness.clients.kafka_python import named
from harness.errors import HostError, PlanError
from harness.observations import Observation
from harness.plan import Existing, RunSpec, require_kind
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.contract import NodeDeath
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration
from harness.worlds.kafka.metadata_poller import Watch
from harness.worlds.kafka.own_topic import OwnTopic, require_ids
from harness.worlds.kafka.properties import possible
from harness.worlds.processes.clock import kept_begin_us
from harness.worlds.processes.leadership import ConfirmedReassignment
from harness.worlds.processes.nodes import trace_files
from harness.worlds.processes.real import Opened, RealWorld
from harness.worlds.processes.topic import topic_configs
from harness.worlds.processes.traces import observations_in
from nemesis.cluster import CONTROLLER, Capability, Target

#: What the cluster's administration does, and what the workload does to itself.
_WITHIN_REACH: Final = {Capability.LEADERSHIP, Capability.REASSIGNMENT, Capability.CLIENTS}
_OUT_OF_REACH: Final = (
    "the machines of a cluster that exists already are out of reach; what can be asked of it is to move leaders and "
    "to reassign replicas (the families move and reassign)"
)


class ExistingWorld(RealWorld):
    """Implements :class:`harness.worlds.contract.World`. The run's files stand in ``directory``, which must exist.

    ``close`` raises a HostError if the run's topic could not be deleted; it stays in the journal then.
    """

    def __init__(self, spec: RunSpec, directory: Path) -> None:
        super().__init__(spec, directory)
        self._bootstrap = require_kind(spec.world, Existing).bootstrap
        self._security = at_home(require_kind(spec.world, Existing).security)

    def open(self) -> None:
        """See :meth:`World.open`.

        Raises:
            HostError: no bootstrap server answered or lets us in, the run's topic cannot be had, or a right is missing.
            PlanError: the cluster is too small for the plan, or of a release that works otherwise.
        """
        self._begin()
        try:
            self._open()
        except KafkaError as error:
            self.close()
            raise HostError(
                f"the cluster refuses what a run needs ({named(error)}); docs/kafka.md lists the rights of its user"
            ) from error
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

    def _open(self) -> None:
        """Reach everything."""
        require_credentials(self._security)
        journal = self._make_journal()
        administration = self._administration()
        brokers = self._large_enough(administration)
        release = administration.release(brokers[0])
        require_ids(release)
        possible(self._settings, release)
        topic = OwnTopic(administration, journal, self._spec.workload.topic, self._bootstrap, self._security)
        self._resources.callback(topic.delete)
        topic.create(self._spec.workload.partitions, self._settings.replication_factor, topic_configs(self._settings))
        # Besides what is the brokers', what the run's topic sets.
        configuration = {
            "broker": {"version": f"{release.major}.{release.minor}"} | administration.broker_configuration(brokers[0]),
            "topic": administration.topic_configuration(topic.name),
        }
        watch = Watch(self._administration(), topic.name, self._directory / "logs" / f"trace-{CONTROLLER}.jsonl")
        self._resources.callback(watch.end)
        watch.begin()
        clients = self._make_clients(self._bootstrap, self._security)
        confirmed = ConfirmedReassignment(administration, lambda: watch.view().partitions)
        target = Target(
            view=watch.view,
            leadership=confirmed,
            reassignment=confirmed,
            lacks=dict.fromkeys(set(Capability) - _WITHIN_REACH, _OUT_OF_REACH),
        )
        self._cluster = Opened(target, clients, lambda: configuration)

    def _administration(self) -> Administration:
        administration = Administration(lambda: self._bootstrap, limit_s=FAR_ASK_LIMIT_S, security=self._security)
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

"""A Kafka cluster that exists already: spoken to as its clients do, from its bootstrap servers on.

The run makes a topic of its own and deletes it. What can be broken is what the cluster's administration offers: leaders
move, replicas are reassigned. Every other fault is skipped, with the reason in its receipt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka.errors import KafkaError

from harness.clients import at_home, named, require_credentials
from harness.errors import HostError, PlanError
from harness.observations import Observation
from harness.plan import Existing, RunSpec, require_kind
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration
from harness.worlds.kafka.metadata_poller import MetadataPoller
from harness.worlds.kafka.own_topic import OwnTopic, require_ids
from harness.worlds.kafka.properties import possible
from harness.worlds.real import Cluster, Opened, Opening, RealWorld
from harness.worlds.real.leadership import ConfirmedReassignment
from harness.worlds.real.observing import trace_path, traced
from harness.worlds.real.topic import topic_configs
from nemesis.cluster import CONTROLLER, Capability, Target
from nemesis.scenarios import FAMILIES, needs_of

#: What the cluster's administration does, and what the workload does to itself.
_WITHIN_REACH: Final = {Capability.LEADERSHIP, Capability.REASSIGNMENT, Capability.CLIENTS}
_OUT_OF_REACH: Final = (
    "the machines of a cluster that exists already are out of reach; of these families stories can be played: "
    + ", ".join(name for name in FAMILIES if needs_of(name) & _WITHIN_REACH)
)


def existing_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    return RealWorld(spec, directory, ExistingCluster(spec, directory.absolute()))


class ExistingCluster(Cluster):
    """The cluster. Its end raises a HostError if the run's topic could not be deleted; the journal keeps it then."""

    def __init__(self, spec: RunSpec, directory: Path) -> None:
        self._spec = spec
        self._settings = spec.chosen()
        self._directory = directory
        world = require_kind(spec.world, Existing)
        self._bootstrap = world.bootstrap
        self._security = at_home(world.security)

    def open(self, opening: Opening) -> Opened:
        """See :meth:`Cluster.open`.

        Raises:
            HostError: no bootstrap server answered or lets us in, the run's topic cannot be had, or a right is missing.
            PlanError: the cluster is too small for the plan, or of a release that works otherwise.
        """
        require_credentials(self._security)
        try:
            return self._open(opening)
        except KafkaError as error:
            raise HostError(
                f"the cluster refuses what a run needs ({named(error)}); docs/kafka.md lists the rights of its user"
            ) from error

    def observations(self, wall_begin_us: int) -> list[Observation]:
        """See :meth:`Cluster.observations`: what was seen of leaders and replicas."""
        return traced(self._directory, wall_begin_us)

    def _open(self, opening: Opening) -> Opened:
        administration = self._administration(opening)
        brokers = self._large_enough(administration)
        release = administration.release(brokers[0])
        require_ids(release)
        possible(self._settings, release)
        workload = self._spec.workload
        topic = OwnTopic(administration, opening.journal, workload.topic, self._bootstrap, self._security)
        opening.resources.callback(topic.delete)
        topic.create(workload.partitions, self._settings.replication_factor, topic_configs(self._settings))
        # Besides what is the brokers', what the run's topic sets.
        configuration = {
            "broker": {"version": f"{release.major}.{release.minor}"}
            | administration.configuration("broker", str(brokers[0])),
            "topic": administration.configuration("topic", topic.name),
        }
        trace = trace_path(self._directory, CONTROLLER)
        poller = MetadataPoller(self._administration(opening), topic.name, trace)
        opening.resources.callback(poller.end)
        poller.begin()
        clients = opening.make_clients(self._bootstrap, self._security)
        confirmed = ConfirmedReassignment(administration, lambda: poller.view().partitions)
        target = Target(
            view=poller.view,
            leadership=confirmed,
            reassignment=confirmed,
            lacks=dict.fromkeys(set(Capability) - _WITHIN_REACH, _OUT_OF_REACH),
        )
        return Opened(target, clients, lambda: configuration)

    def _administration(self, opening: Opening) -> Administration:
        administration = Administration(lambda: self._bootstrap, limit_s=FAR_ASK_LIMIT_S, security=self._security)
        opening.resources.callback(administration.close)
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

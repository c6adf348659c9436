"""Runs on a Kafka cluster that exists already, through its bootstrap servers, as any client does.

The run makes a topic of its own and deletes it. Its faults are those that the cluster's administration offers: leaders
move, replicas are reassigned. Every other fault is skipped, with the reason in its receipt.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from kafka.errors import KafkaError

from harness.ground.errors import AccessError, HostError, PlanError
from harness.ground.observations import (
    BrokerFenced,
    BrokerRegistered,
    Fact,
    IsrChanged,
    LeaderElected,
    Observation,
    to_line,
)
from harness.plan import Existing, RunSpec, require_kind
from harness.worlds.clients import at_home, named, require_credentials
from harness.worlds.hosts import CommandedNodes
from harness.worlds.kafka import client_library
from harness.worlds.kafka.administration import FAR_ASK_LIMIT_S, Administration
from harness.worlds.kafka.formatting import TRANSACTIONS_FEATURE
from harness.worlds.kafka.own_topic import OwnTopic, require_ids
from harness.worlds.kafka.properties import possible, transactions_possible
from harness.worlds.real import Opened, Opening, RealCluster, RealWorld
from harness.worlds.real.leadership import ConfirmedReassignment
from harness.worlds.real.observation_times import trace_path, traced
from harness.worlds.real.topic import topic_configs
from nemesis.cluster import CONTROLLER, Capability, ClusterView, PartitionView, Target
from nemesis.faults import FAULTS
from nemesis.scenarios import FAMILIES, strikes_of
from workloads import kind_of, topics_of

#: The faults that the cluster's administration and the workload itself can make.
_WITHIN_REACH: Final = {Capability.LEADERSHIP, Capability.REASSIGNMENT, Capability.CLIENTS}
_NEEDS: Final = {fault.kind: frozenset(fault.needs) for fault in FAULTS}
_WHY_NOT: Final = "the machines of an existing cluster are out of reach; families that it can have: " + ", ".join(
    name for name in FAMILIES if all(_NEEDS.get(kind) and _NEEDS[kind] <= _WITHIN_REACH for kind in strikes_of(name))
)
#: The capabilities that such a cluster lacks, and why. Instances of an application run on this machine.
OUT_OF_REACH: Final = dict.fromkeys(sorted(set(Capability) - _WITHIN_REACH - {Capability.INSTANCES}), _WHY_NOT)
#: The act that a fault on processes takes, by its kind.
_ACTS: Final = {"kill": "kill", "stop": "stop", "pause": "pause"}
LOOK_EVERY_S: Final = 0.25
_LOG: Final = logging.getLogger(__name__)
#: The time that a look at the cluster may take to end: it may wait for a broker that is gone.
_END_LIMIT_S: Final = 10.0
#: "No leader" in the controller's records.
_NO_LEADER: Final = -1


def existing_lacks(spec: RunSpec) -> Mapping[Capability, str]:
    """The capabilities that the cluster of ``spec`` lacks, and why: of those that are out of reach without commands,
    the operator's own bring back what they are for.
    """
    commands = require_kind(spec.world, Existing).commands
    if commands is None:
        return OUT_OF_REACH
    lacks = dict.fromkeys(OUT_OF_REACH, "the plan's commands cannot do it, and the cluster's machines are out of reach")
    if "cut" in commands.acts:
        del lacks[Capability.LINKS]
    struck = {kind for family in spec.faults.families for kind in strikes_of(family)}
    missing = [act for kind, act in _ACTS.items() if kind in struck and act not in commands.acts]
    lacks[Capability.PROCESSES] = f"the plan has no command {' and '.join(missing)} ([worlds.kafka.commands])"
    if not missing:
        del lacks[Capability.PROCESSES]
    return lacks


def existing_world(spec: RunSpec, directory: Path) -> RealWorld:
    """The world of the run ``spec``, whose files are in ``directory``; not yet opened."""
    return RealWorld(spec, directory, ExistingCluster(spec, directory.absolute()), client_library)


class ExistingCluster(RealCluster):
    """The cluster. Closing it raises a HostError if the run's topic could not be deleted; the journal then keeps it."""

    def __init__(self, spec: RunSpec, directory: Path) -> None:
        self._spec = spec
        self._settings = spec.chosen()
        self._directory = directory
        world = require_kind(spec.world, Existing)
        self._bootstrap, self._commands = world.bootstrap, world.commands
        self._security = at_home(world.security)

    def open(self, opening: Opening) -> Opened:
        """Check the cluster, make the run's topic, and begin to follow its metadata.

        Raises:
            HostError: no bootstrap server answered or accepts us, the run's topic cannot be had, or a right is missing.
            PlanError: the cluster is too small for the plan, or of a release that works otherwise.
        """
        require_credentials(self._security)
        if self._settings.follower_fetching:
            raise PlanError(
                "follower.fetching=true puts brokers and consumers into racks, and an existing cluster has its own; "
                "leave it out"
            )
        try:
            return self._open(opening)
        except KafkaError as error:
            raise AccessError(
                f"the cluster refuses a request that a run needs ({named(error)}); give its user the rights that "
                "docs/start/your-cluster.md lists"
            ) from error

    def observations(self, wall_begin_us: int) -> list[Observation]:
        """The changes of leaders and replicas that were seen."""
        return traced(self._directory, wall_begin_us)

    def _open(self, opening: Opening) -> Opened:
        administration = self._administration(opening)
        brokers = self._large_enough(administration)
        release = administration.release(brokers[0])
        require_ids(release)
        possible(self._settings, release)
        if kind_of(self._spec.workload).transactional:
            transactions_possible(self._settings, release, administration.features().get(TRANSACTIONS_FEATURE, 0))
        workload = self._spec.workload
        for name in topics_of(workload):
            topic = OwnTopic(administration, opening.journal, name, self._bootstrap, self._security)
            opening.resources.callback(topic.delete)
            topic.create(workload.partitions, self._settings.replication_factor, topic_configs(self._settings))
        # The run's topics have settings of its own, beside those of the brokers.
        configuration = {
            "broker": {"version": f"{release.major}.{release.minor}"}
            | administration.configuration("broker", str(brokers[0])),
            "topic": administration.configuration("topic", workload.topic),
        }
        trace = trace_path(self._directory, CONTROLLER)
        poller = MetadataPoller(self._administration(opening), topics_of(workload), trace)
        opening.resources.callback(poller.end)
        poller.begin()
        clients = opening.make_clients(self._bootstrap, self._security)
        confirmed = ConfirmedReassignment(
            administration.move_leader, administration.reassign, lambda: poller.view().partitions
        )
        nodes = None if self._commands is None else CommandedNodes(self._commands, opening.journal)
        if nodes is not None:
            opening.resources.callback(nodes.close)
        lacks = existing_lacks(self._spec)
        target = Target(
            view=poller.view,
            processes=None if Capability.PROCESSES in lacks else nodes,
            links=None if Capability.LINKS in lacks else nodes,
            leadership=confirmed,
            reassignment=confirmed,
            lacks=lacks,
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
                f"replication.factor={self._settings.replication_factor} needs as many brokers, and the cluster has "
                f"{len(brokers)}; lower it"
            )
        return brokers


class MetadataPoller:
    """Asks the cluster for the metadata of ``topics`` a few times a second, from :meth:`begin` to :meth:`end`.

    Changes are written to ``trace``, a new file, in the form that the reference broker's nodes use. The time of a
    change is that of the look that saw it; a change that is undone between two looks is not seen. ``administration``
    is used by this object only.
    """

    def __init__(self, administration: Administration, topics: Sequence[str], trace: Path) -> None:
        self._administration = administration
        self._topics = topics
        self._trace = trace
        self._view = ClusterView({}, (), (), controllers=(), running_controllers=())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ackproof-metadata", daemon=True)

    def begin(self) -> None:
        """Look once, and go on in a thread.

        Raises:
            HostError: no broker answered.
        """
        self.look()
        self._thread.start()

    def end(self) -> None:
        """Stop looking. Idempotent."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(_END_LIMIT_S)
        self._administration.close()

    def view(self) -> ClusterView:
        """The view that was seen last."""
        return self._view

    def look(self) -> None:
        """Ask the cluster now, and write down what changed.

        Raises:
            HostError: no broker answered.
        """
        images = [image for topic in self._topics if (image := self._administration.topic(topic)) is not None]
        running = self._administration.running()
        before = self._view
        partitions = {**before.partitions}
        for image in images:
            partitions |= image.partitions
        brokers = tuple(sorted({*before.brokers, *running}))
        self._view = msgspec.structs.replace(before, partitions=partitions, running=running, brokers=brokers)
        self._write(changes(before, self._view))

    def _run(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            try:
                self.look()
            except (HostError, KafkaError):
                continue  # no broker answered, or one refused; the last view holds
            except Exception:  # the library is asked while brokers vanish; a thread that ends would freeze the view
                _LOG.exception("a look at the cluster failed; the last view holds")

    def _write(self, facts: list[Fact]) -> None:
        wall_us = time.time_ns() // 1_000
        with self._trace.open("ab") as file:
            file.write(b"".join(to_line(Observation(wall_us, CONTROLLER, fact)) for fact in facts))


def changes(before: ClusterView, after: ClusterView) -> list[Fact]:
    """The decisions that the controller must have made between two looks."""
    facts: list[Fact] = [BrokerRegistered(broker=node) for node in after.running if node not in before.running]
    facts += [BrokerFenced(broker=node) for node in before.running if node not in after.running]
    for name, state in after.partitions.items():
        was = before.partitions.get(name)
        if was is None or (was.leader, was.leader_epoch) != (state.leader, state.leader_epoch):
            facts.append(_state(LeaderElected, name, state))
        elif was != state:
            facts.append(_state(IsrChanged, name, state))
    return facts


def _state(kind: type[LeaderElected | IsrChanged], partition: str, state: PartitionView) -> LeaderElected | IsrChanged:
    return kind(
        partition=partition,
        leader=_NO_LEADER if state.leader is None else state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=state.replicas,
        elr=state.elr,
    )

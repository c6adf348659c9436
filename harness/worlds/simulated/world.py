"""The simulated world: reference brokers, network and clients in virtual time, in one process, exactly repeatable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from harness.broker.core.coordinator import log_config
from harness.broker.core.messages import CreateTopic, TopicResponse
from harness.broker.core.types import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ErrorCode, NodeId
from harness.ground.choices import Choices
from harness.ground.errors import HarnessError
from harness.ground.observations import Fact, IsrChanged, NotEnoughReplicas, Observation
from harness.plan import RunSpec
from harness.records.replica_dump import ReplicaLogs
from harness.worlds.contract import NodeCrash
from harness.worlds.reference_settings import broker_config, refuse_what_it_lacks, topic_config
from harness.worlds.refused_attempts import RefusalCounter
from harness.worlds.simulated.clients import SimulatedClients
from harness.worlds.simulated.cluster import SimulatedCluster
from harness.worlds.simulated.direct_client import SimulatedDirectClient
from harness.worlds.simulated.invariants import FirstBroken
from harness.worlds.simulated.leaders_and_messages import ADMINISTRATOR
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.out_of_sync import out_of_sync, patience_us
from harness.worlds.simulated.replica_logs import is_damaged, logs_of
from harness.worlds.simulated.replica_view import SimulatedReplicas
from nemesis.cluster import CONTROLLER, Target
from workloads import BrokenInvariant, LogPartition, RefusedAttempts, WorkloadPlan, kind_of, topics_of

#: Virtual time to register, create the topic and fill the ISRs: three network round trips each, and slack for sessions.
OPEN_LIMIT_US: Final = 30_000_000


def _internal_topics(workload: WorkloadPlan, *, scripted: bool) -> tuple[str, ...]:
    """The logs of the coordinators that this workload needs; a script may have a group and transactions."""
    kind = kind_of(workload)
    needed = {TRANSACTIONS_TOPIC: kind.transactional or (scripted and kind.grouped), OFFSETS_TOPIC: kind.grouped}
    return tuple(topic for topic, wanted in needed.items() if wanted)


class Administrator:
    """Waits for the answers to the requests that the harness itself sends."""

    def __init__(self) -> None:
        self.answers: list[TopicResponse] = []
        self.receive: Callable[[int, Any], None] = self._on_message

    def _on_message(self, _source: int, message: Any) -> None:
        if type(message) is TopicResponse:
            self.answers.append(message)

    def disconnected(self, _peer: int) -> None:
        """Nothing is asked while a process may die."""


class SimulatedWorld:
    """``harness.worlds.contract.World`` in virtual time. The same ``spec`` and the same choices give the same run.

    With ``observe`` the core observes its own steps (``observations``), with ``invariants`` what must hold in the whole
    cluster is looked at with each step (``broken_invariant``); both cost time and change nothing else.
    The clock begins at 0 with ``open`` and has moved a little, by the time that the cluster takes to start, when it
    returns.
    """

    def __init__(self, spec: RunSpec, choices: Choices, *, observe: bool = False, invariants: bool = True) -> None:
        self._settings = spec.chosen()
        self._workload = spec.workload
        self._assignment = spec.assignment
        self._topics = topics_of(spec.workload)
        numbers = range(spec.workload.partitions)
        self._log_partitions = [LogPartition(topic, number) for topic in self._topics for number in numbers]
        self._internal_topics = _internal_topics(spec.workload, scripted=bool(spec.story))
        self._loop = Loop()
        self._network = Network(self._loop, choices)
        self._observing = observe
        self._observations: list[Observation] = []
        self._refusals = RefusalCounter(spec.workload.log_partitions)
        brokers = range(spec.brokers)
        self._cluster = SimulatedCluster(
            brokers,
            broker_config(self._settings),
            self._loop,
            self._network,
            self._witness,
            observing=observe,
            draw=choices.draw,
            racks=spec.racks,
            log_dirs=spec.log_dirs,
        )
        self._invariants = FirstBroken(self._cluster, broker_config(self._settings), self._loop) if invariants else None
        self._clients = SimulatedClients(brokers, self._topics, self._settings, self._loop, self._network)
        self._administrator = Administrator()
        #: For scripted stories.
        self.direct: Final = SimulatedDirectClient(self._loop, self._network)
        self.replicas: Final = SimulatedReplicas(self._cluster, spec.workload.topic)

    @property
    def clock(self) -> Loop:
        """The clock of virtual time."""
        return self._loop

    @property
    def clients(self) -> SimulatedClients:
        """Makes models of clients."""
        return self._clients

    @property
    def cluster(self) -> SimulatedCluster:
        """The processes, disks and links."""
        return self._cluster

    @property
    def target(self) -> Target:
        """The cluster under attack."""
        return self._cluster.target

    @property
    def instances(self) -> None:
        """None always: a user's program runs in real time."""

    def open(self) -> None:
        """Start the cluster and create the topic; return when every log partition has a leader and a full ISR.

        Raises:
            PlanError: the settings ask for what the reference broker lacks.
            HarnessError: the cluster did not get there.
        """
        refuse_what_it_lacks(self._settings, "simulated")
        self._cluster.start()
        self._reach(self._registered, "every broker to register")
        self._ask_for_topics()
        answers, topics = self._administrator.answers, (*self._topics, *self._internal_topics)
        self._reach(lambda: len(answers) == len(topics), "the topic to be created")
        for answer in answers:
            if answer.error != ErrorCode.NONE:
                raise HarnessError(
                    f"the topic {answer.topic} could not be created ({answer.error.name}): {answer.reason}"
                )
        self._reach(self._complete, "every log partition to have a leader and a full ISR")

    def drive(self, finished: Callable[[], bool], limit_us: int) -> bool:
        """Let virtual time pass."""
        return self._loop.run(finished, limit_us)

    def hindrance(self) -> str:
        """Say nothing: virtual time waits for everybody."""
        return ""

    def observations(self) -> Sequence[Observation]:
        """Give what the core observed, in order of time; empty without ``observe``."""
        return self._observations

    def refused_attempts(self) -> RefusedAttempts:
        """Give what the brokers counted; they do so in every run."""
        return self._refusals.attempts()

    def crashes(self) -> Sequence[NodeCrash]:
        """See :meth:`World.crashes`. A simulated node does not end by itself: what a core raises ends the run."""
        return ()

    @property
    def broken_invariant(self) -> BrokenInvariant | None:
        """The first invariant that the cluster broke, if invariants are looked at."""
        return self._invariants.broken if self._invariants is not None else None

    def out_of_sync(self, healed_us: int) -> Mapping[str, str]:
        """See :meth:`World.out_of_sync`; too little time is less than :func:`patience_us`."""
        if self._loop.time_us - healed_us < patience_us(broker_config(self._settings)):
            return {}
        return out_of_sync(self._cluster.view(), partial(is_damaged, self._cluster))

    def replica_logs(self) -> ReplicaLogs:
        """Read the brokers' disks, which are in memory."""
        compacted = topic_config(self._settings).compacted
        return logs_of(self._cluster, self._log_partitions, keyed=compacted)

    def effective_configuration(self) -> dict[str, dict[str, Any]]:
        """See :meth:`World.effective_configuration`: what the models and the core go by."""
        broker = msgspec.to_builtins(broker_config(self._settings))
        return self._clients.effective_configuration() | {"broker": broker}

    def close(self) -> None:
        """Forget what was still to happen. Nothing outside this process was touched."""
        self._loop.heap.clear()

    def _reach(self, state: Callable[[], bool], meant: str) -> None:
        if not self._loop.run(state, OPEN_LIMIT_US):
            raise HarnessError(
                f"the simulated cluster waited for {meant}, which did not come; check the timeouts among the settings"
            )

    def _registered(self) -> bool:
        brokers = self._cluster.image().brokers
        return len(brokers) == len(self._cluster.brokers) and not any(state.fenced for state in brokers.values())

    def _complete(self) -> bool:
        partitions = self._cluster.view().partitions.values()
        complete = len(partitions) == len(self._log_partitions)
        return complete and all(p.leader is not None and len(p.isr) == len(p.replicas) for p in partitions)

    def _ask_for_topics(self) -> None:
        settings = self._settings
        self._network.started(ADMINISTRATOR, self._administrator)
        wire = self._network.wire(ADMINISTRATOR, CONTROLLER)
        if wire is None:
            return
        for number, topic in enumerate(self._topics):
            wire.send(
                CreateTopic(
                    number,
                    topic,
                    self._workload.partitions,
                    settings.replication_factor,
                    topic_config(settings),
                    tuple(tuple(map(NodeId, replicas)) for replicas in self._assignment),
                )
            )
        for number, topic in enumerate(self._internal_topics, len(self._topics)):
            config = log_config(topic, topic_config(settings), settings.replication_factor)
            # As Kafka's, whatever topics have; a cleaner begins once a segment ends.
            config = msgspec.structs.replace(config, cleanup_policy="compact")
            wire.send(CreateTopic(number, topic, 1, settings.replication_factor, config))

    def _witness(self, node: int, fact: Fact) -> None:
        if isinstance(fact, NotEnoughReplicas | IsrChanged):
            self._refusals.add(fact)
        if self._observing:
            self._observations.append(Observation(self._loop.time_us, node, fact))

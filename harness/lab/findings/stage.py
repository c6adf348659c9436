"""The stage of a finding: releases, client library and directory of one play, and the cluster that it is played on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from typing_extensions import override

from harness.ground.errors import HarnessError
from harness.ground.progress import Progress
from harness.plan import ClientName, Kafka, Namespaces, Processes, RealTime, RunSpec
from harness.worlds.clients import ClientLibrary, RealClients
from harness.worlds.kafka import client_library
from harness.worlds.kafka.administration import Administration
from harness.worlds.kafka.distribution import KafkaDistribution, host_for
from harness.worlds.kafka.installation import Installation, find
from harness.worlds.kafka.patches import patched
from harness.worlds.kafka.releases import parse_version
from harness.worlds.processes import processes_world
from harness.worlds.real import RealWorld, StartedCluster
from harness.worlds.real.nodes import Nodes
from nemesis.plan import FaultPlan
from workloads import Settings, WorkloadPlan

#: The log partitions of the cluster's topic.
PARTITIONS: Final = ("ackproof-0", "ackproof-1", "ackproof-2")
#: The limit of every wait. A machine may be busy.
LIMIT_US: Final = 120_000_000
#: Releases before it differ from the reference broker's rule 7.
_STRICT_SINCE: Final = (3, 7)
_CLOSE_S: Final = 10.0


class NotObservedError(HarnessError):
    """A state that a finding needs did not come about, so nothing was observed: play it again on a quiet machine."""


@dataclass(frozen=True, kw_only=True)
class FindingStage:
    """One play. ``version`` is that of Kafka, ``client_version`` that of the Java client if it is another one.

    Classes in the directory ``patch`` come before those of this version; empty: none.
    """

    version: str
    client: ClientName
    client_version: str = ""
    patch: str = ""
    directory: Path
    progress: Progress

    @property
    def release(self) -> Installation:
        """The installed release, with the patch before it."""
        return patched(find(self.version), Kafka(version=self.version, patch=self.patch))

    def does(self, text: str) -> None:
        """Tell what is done now, or waited for."""
        self.progress.advance(text)

    @contextmanager
    def kafka(
        self,
        settings: Mapping[str, Any],
        of_brokers: Mapping[str, object] | None = None,
        *,
        namespaces: bool = False,
        **of_run: Any,
    ) -> Iterator[OpenCluster]:
        """A new cluster of Kafka; brokers have these properties beside the settings, and the run these fields.

        Its own clients are of librdkafka; those of the play's library are :meth:`OpenCluster.clients`.
        """
        world = Kafka(version=self.version, client="confluent-kafka", patch=self.patch)
        if namespaces:
            world = msgspec.structs.replace(world, host=Namespaces())
        spec = _spec(world, {**settings, **rules_of(self.version)}, of_run)
        distribution = _Tuned(spec, of_brokers or {})
        host = host_for(world, self.directory.absolute(), distribution)
        cluster = StartedCluster(spec, self.directory, distribution, host)
        with self._opened(RealWorld(spec, self.directory, cluster, client_library)) as opened:
            yield opened

    @contextmanager
    def reference(self, settings: Mapping[str, Any]) -> Iterator[OpenCluster]:
        """A new cluster of the reference broker, as processes."""
        world = Processes(client="confluent-kafka")
        with self._opened(processes_world(_spec(world, settings, {}), self.directory)) as opened:
            yield opened

    @contextmanager
    def _opened(self, world: RealWorld) -> Iterator[OpenCluster]:
        self.does("starting a cluster")
        try:
            world.open()
            yield OpenCluster(world, self.directory, self.does)
        finally:
            world.close()

    def library(self, resources: ExitStack, client: ClientName | None = None) -> ClientLibrary:
        """The client library of the play, or another one; ``resources`` end its JVM."""
        version = self.client_version if client in {None, self.client} else ""
        world = Kafka(version=self.version, client=client or self.client, client_version=version, patch=self.patch)
        return client_library(world, self.directory, resources)


class OpenCluster:
    """A world that is open, and short words for what is waited for.

    ``does`` tells what is done now.
    """

    def __init__(self, world: RealWorld, directory: Path, does: Callable[[str], None] = lambda _: None) -> None:
        self.world = world
        self.directory = directory
        self.does = does
        self.target = world.target
        self._processes = itertools.count()

    def clients(self, library: ClientLibrary, servers: Sequence[str] = ()) -> RealClients:
        """Clients of this library, which the caller has to close; they begin at ``servers``, or at all."""
        return self.world.clients_of(library, servers)

    @contextmanager
    def clients_until_closed(self, library: ClientLibrary, servers: Sequence[str] = ()) -> Iterator[RealClients]:
        """Clients of this library, which are closed at the end."""
        clients = self.clients(library, servers)
        try:
            yield clients
        finally:
            clients.close(_CLOSE_S)

    @contextmanager
    def operator(self, *brokers: int) -> Iterator[Administration]:
        """An operator who asks these brokers of Kafka."""
        servers = [self.world.clients.bootstrap[broker] for broker in brokers]
        with closing(Administration(lambda: servers)) as operator:
            yield operator

    def next_process(self) -> int:
        """The number of the next client."""
        return next(self._processes)

    def until(self, condition: Callable[[], bool], limit_us: int = LIMIT_US) -> bool:
        """Let time pass until ``condition()``, at most ``limit_us``; the answer is ``condition()``."""
        return self.world.drive(condition, self.world.clock.now_us() + limit_us)

    def wait(self, awaited: str, condition: Callable[[], bool], limit_us: int = LIMIT_US) -> None:
        """Let time pass until ``condition()``.

        Raises:
            NotObservedError: it did not hold within ``limit_us``; the text says what was ``awaited``.
        """
        self.does(awaited)
        if not self.until(condition, limit_us):
            raise NotObservedError(f"waited for {limit_us // 1_000_000} s, and not so: {awaited}")

    def let_pass(self, time_us: int) -> None:
        """Let time pass."""
        self.until(lambda: False, time_us)

    def leader(self, partition: str = PARTITIONS[0]) -> int | None:
        """The leader, by the controller's word."""
        return self.target.view().partitions[partition].leader

    def leads(self, partition: str = PARTITIONS[0]) -> int:
        """The leader, once there is one: on a machine that stands still for a second every broker loses its session."""
        self.wait(f"{partition} has a leader", lambda: self.leader(partition) is not None)
        leader = self.leader(partition)
        if leader is None:
            raise NotObservedError(f"{partition} lost its leader")
        return leader

    def is_well(self) -> bool:
        """True if all brokers run, and each log partition has a leader and all of its replicas in sync."""
        view = self.target.view()
        led = all(
            partition.leader is not None and set(partition.isr) == set(partition.replicas)
            for partition in view.partitions.values()
        )
        return led and view.running == view.brokers


class _Tuned(KafkaDistribution):
    """Kafka whose brokers have more properties than a run's settings."""

    def __init__(self, run: RunSpec, more: Mapping[str, object]) -> None:
        super().__init__(run)
        self._more = {name: str(value) for name, value in more.items()}

    @override
    def properties(self, nodes: Nodes, node: int) -> dict[str, str]:
        return super().properties(nodes, node) | self._more


def rules_of(version: str) -> dict[str, bool]:
    """The settings that say how this release differs from the reference broker."""
    return {"strict.min.isr": False} if parse_version(version) < _STRICT_SINCE else {}


def _spec(world: RealTime, settings: Mapping[str, Any], of_run: Mapping[str, Any]) -> RunSpec:
    usual = {"workload": WorkloadPlan(), "faults": FaultPlan()}
    return RunSpec(
        **{
            **usual,
            **of_run,
            "world": world,
            "cell": "finding",
            "family": "kill",
            "settings": Settings.from_mapping(settings).to_mapping(),
            "seed": 1,
        }
    )

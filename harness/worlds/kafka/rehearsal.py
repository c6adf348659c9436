"""Shows a run on machines over SSH without doing it: every command, copy and topic operation, in their order.

No connection is opened. Answers are imagined: machines do what they are told, brokers stay in sync, and the first
replica of a partition that runs leads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from typing_extensions import override

from harness.broker.core.placement import alternate
from harness.broker.core.types import NO_NODE, NodeId, PartitionState
from harness.ground.errors import PlanError
from harness.plan import Kafka, RunSpec, require_kind
from harness.records.journal import FILE_NAME, Journal
from harness.worlds.hosts import PLACEHOLDERS, DryShell, NodeState, Show, SshHost
from harness.worlds.kafka.distribution import KafkaDistribution, host_for
from harness.worlds.real.attacked_nodes import AttackedNodes
from harness.worlds.real.lacks import out_of_reach
from harness.worlds.real.leadership import ConfirmedReassignment
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.target import Preparation, assemble
from harness.worlds.real.topic import topic_configs
from harness.worlds.real.view import ClusterImage, ControllerMetadata, Viewer
from harness.worlds.simulated.loop import Loop
from nemesis.cluster import Target
from nemesis.player import Player
from nemesis.receipts import Receipt
from nemesis.schedule import Schedule
from workloads import LogPartition, topics_of

PREFACE: Final = (
    "Nothing is done, and no connection is opened.",
    PLACEHOLDERS,
    (
        "The targets of a fault are chosen when it fires. Here the first replica of a partition that runs is imagined "
        "to lead it; in a run the cluster decides."
    ),
)


def require_machines(specs: Iterable[RunSpec]) -> None:
    """Refuse runs that are not on machines over SSH, before anything is shown.

    Raises:
        PlanError: one of them is on another host.
    """
    for spec in specs:
        world = spec.world
        if not world.machines:
            host = world.host_name or "loopback"
            raise PlanError(
                f"--dry-run is for machines over SSH, and {spec.cell} in the {world.name} world has "
                f'host = "{host}"; leave --dry-run out'
            )


def rehearse(spec: RunSpec, schedule: Schedule, say: Show) -> None:
    """Show what the run ``spec``, on machines over SSH, with this schedule would do.

    Raises:
        PlanError: the release cannot do what the run asks for.
        HostError: the release is not installed on this machine, from which it would be copied.
    """
    with TemporaryDirectory(prefix="ackproof-dry-") as name:
        directory, distribution, loop = Path(name), KafkaDistribution(spec), Loop()
        distribution.check()
        journal = Journal(directory / FILE_NAME)
        dry_host = partial(SshHost, connect=lambda machine: DryShell(machine, say))
        host = host_for(require_kind(spec.world, Kafka), directory, distribution, dry_host)(journal)
        nodes = Nodes(host, directory, spec.brokers, distribution.controllers, distribution.launch)
        say("# the machines are looked at and prepared")
        host.open(nodes.all)
        for node in nodes.all:
            say(f"# node {node} is started")
            nodes.start(node)
        say("# the topic is made")
        _topic(spec, ",".join(f"{address.host}:{address.port}" for address in map(host.address, nodes.brokers)), say)
        cluster = _ImaginedCluster(nodes, spec, say)
        viewer = Viewer(cluster, nodes, spec.workload, spec.racks)
        administration = ConfirmedReassignment(cluster.move_leader, cluster.reassign, viewer.partitions)
        attacked = AttackedNodes(nodes, viewer, journal, loop, lambda _: "refused")
        preparation = Preparation(spec.faults.families, out_of_reach(distribution.lacks(type(host)), type(host)))
        _play(spec, schedule, assemble(attacked, preparation, None, None, (administration, administration)), loop, say)
        say("# the run ends: what the nodes left is brought home, and everything is removed but the release")
        host.close()
        journal.close()


def _topic(spec: RunSpec, servers: str, say: Show) -> None:
    workload, settings = spec.workload, spec.chosen()
    for topic in topics_of(workload):
        say(
            f"at {servers}: create topic {topic} with {workload.partitions} partitions, replication factor "
            f"{settings.replication_factor}, {topic_configs(settings)}; the run ends here if it exists already"
        )
    say(f"at {servers}: write to and read from topic {' and '.join(topics_of(workload))}, and no other")


def _play(spec: RunSpec, schedule: Schedule, target: Target, loop: Loop, say: Show) -> None:
    """The schedule in virtual time."""

    def heading_at(time_ms: int, words: str) -> None:
        loop.call_at(time_ms * 1_000, lambda: say(f"# at {time_ms / 1_000:.2f} s, {words}"))

    def skipped(receipt: Receipt) -> None:
        if receipt.mark == "skipped":
            say(f"skipped: {receipt.reason}")

    for step in schedule.steps:
        title = f"{step.family}/{step.scenario}: {type(step.fault).__name__.lower()} of {step.fault.role}"
        heading_at(step.begin_ms, f"{title} begins")
        heading_at(step.end_ms, f"{title} ends")
    player = Player(schedule, target, loop, dead_brokers_max=spec.faults.dead_brokers_max, witness=skipped)
    player.start()
    loop.run(lambda: False, spec.workload.duration_ms * 1_000)
    say("# everything is healed")
    player.heal_all()


class _ImaginedCluster(ControllerMetadata):
    """A cluster in which every running broker is in sync: its metadata, and its operator, who shows each request."""

    def __init__(self, nodes: Nodes, spec: RunSpec, say: Show) -> None:
        self._nodes = nodes
        self._say = say
        racks = {NodeId(node): "" for node in nodes.brokers}
        racks |= {NodeId(node): rack for node, rack in enumerate(spec.racks)}
        places = spec.assignment or alternate(racks, spec.workload.partitions, spec.chosen().replication_factor)
        self._places = {
            str(LogPartition(topic, number)): tuple(map(NodeId, replicas))
            for topic in topics_of(spec.workload)
            for number, replicas in enumerate(places)
        }
        self._moved: dict[str, int] = {}

    @override
    def image(self) -> ClusterImage:
        running = self._nodes.in_state(NodeState.RUNNING, self._nodes.brokers)
        return ClusterImage(partitions={name: self._partition(name, running) for name in self._places})

    def move_leader(self, partition: str, broker: int, replicas: Sequence[int]) -> str:  # noqa: ARG002
        """Show the move (:data:`harness.worlds.real.leadership.Move`)."""
        self._say(f"by the cluster's administration: let broker {broker} lead {partition}")
        self._moved[partition] = broker
        return ""

    def reassign(self, partition: str, replicas: Sequence[int]) -> str:
        """Show the reassignment (:data:`harness.worlds.real.leadership.Reassign`)."""
        self._say(f"by the cluster's administration: let brokers {', '.join(map(str, replicas))} replicate {partition}")
        self._places[partition] = tuple(map(NodeId, replicas))
        return ""

    def _partition(self, name: str, running: Sequence[int]) -> PartitionState:
        replicas = self._places[name]
        isr = tuple(node for node in replicas if node in running)
        first = self._moved.get(name)
        leader = first if first in isr else next(iter(isr), None)
        leads = NO_NODE if leader is None else NodeId(leader)
        return PartitionState(
            replicas=replicas, isr=isr or replicas[:1], leader=leads, leader_epoch=0, partition_epoch=0
        )

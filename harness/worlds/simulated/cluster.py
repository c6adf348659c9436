"""The simulated cluster: which process runs on which node, over which disk, and how it is attacked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from harness.broker.core import transaction_coordinator
from harness.broker.core.broker import Broker
from harness.broker.core.controller import Controller
from harness.broker.core.effects import Core
from harness.broker.core.groups import coordinator as group_coordinator
from harness.broker.core.log import MemoryLog
from harness.broker.core.planted import with_bug
from harness.broker.core.types import (
    NONE,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerConfig,
    Image,
    NodeId,
    TopicPartition,
)
from harness.worlds.reference_settings import LACKS
from harness.worlds.simulated.disks import NO_DISKS, Disk, Disks
from harness.worlds.simulated.leaders_and_messages import SimulatedLeadership, SimulatedMessages
from harness.worlds.simulated.loop import Loop
from harness.worlds.simulated.network import Network
from harness.worlds.simulated.nodes import Observer, Process, SimulatedShutdown, Watcher
from nemesis.cluster import (
    CONTROLLER,
    Capability,
    ClusterView,
    Link,
    PartitionView,
    Target,
)
from nemesis.evidence import DirectoryFailed, Killed, LinksCut, LinksSlowed, PowerLost, ProcessSeen
from workloads import LogPartition

#: The operating system's words for a process that was killed.
SIGKILLED: Final = "signal 9"
#: And for a broker that ended because none of its log directories works any more.
NO_DIRECTORY: Final = "status 1"
#: Capabilities that nodes in virtual time lack, and why.
OUT_OF_REACH: Final = {
    **LACKS,
    Capability.INSTANCES: "a user's program runs in real time, not in virtual time",
    Capability.PACKETS: "links in virtual time carry messages in their order, and no packets; slow links are there",
    Capability.CONNECTIONS: "links in virtual time carry messages, which can be held one by one, and no connections",
    Capability.CLOCKS: "the reference broker's core has no wall clock, so virtual time has no clock to set",
    Capability.DISK_SPACE: NO_DISKS,
    Capability.DISK_SPEED: NO_DISKS,
}


class SimulatedCluster:
    """Processes, power and links of a :class:`nemesis.cluster.Target` in virtual time.

    Nodes are brokers from 0, and CONTROLLER; ``racks`` are those of the brokers, in order, if they have any, and
    ``log_dirs`` is how many log directories each has. ``draw`` decides, by label, when timers of a node ring first.
    ``observe`` gets the facts that nodes tell: all that there are if ``observing``, else those of every run.
    """

    def __init__(
        self,
        brokers: Sequence[int],
        config: BrokerConfig,
        loop: Loop,
        network: Network,
        observe: Observer,
        *,
        observing: bool,
        draw: Callable[[str, int], int],
        racks: Sequence[str] = (),
        log_dirs: int = 1,
    ) -> None:
        self.brokers = tuple(map(NodeId, brokers))
        self._racks = dict(zip(brokers, racks, strict=False))
        self._config = config
        self._loop = loop
        self._network = network
        self._observe = observe
        self._observing = observing
        self._draw = draw
        self._watchers: list[Watcher] = []
        self._starts = 0
        make_log = with_bug(MemoryLog, config.planted_bug)
        self._disks = {broker: Disk(log_dirs, make_log) for broker in brokers}
        self._processes: dict[int, Process] = {}
        #: Brokers whose disks a fault has taken records from, again with each fault that did.
        self.damaged: list[NodeId] = []
        #: First offsets of batches that were damaged while their broker was down after a clean stop: no start looks at
        #: them (rule 25).
        self.unread: dict[tuple[NodeId, TopicPartition], set[int]] = {}
        self._make_controller = with_bug(Controller, config.planted_bug)
        self._controller = self._make_controller(config, observe=self._observing)
        self._shutdown = SimulatedShutdown(loop, self._end_cleanly, self.restart)
        disks = Disks(self._disks, self._is_dead, self.damaged, self.unread)
        self._seen: Image | None = None
        self._partitions: Mapping[str, PartitionView] = {}
        self._coordinators: tuple[int, ...] = ()
        self._transaction_coordinators: tuple[int, ...] = ()
        self._internal: Mapping[str, PartitionView] = {}
        #: This cluster, for the nemesis.
        self.target: Final = Target(
            view=self.view,
            processes=self,
            power=self,
            links=self,
            link_speed=self,
            messages=SimulatedMessages(network),
            files=disks,
            write_caches=disks,
            log_directories=self,
            leadership=SimulatedLeadership(self._controlling),
            lacks=OUT_OF_REACH,
        )

    def watch(self, watcher: Watcher) -> None:
        """Show ``watcher`` every step of every node from now on."""
        self._watchers.append(watcher)

    def start(self) -> None:
        """Start the controller, then every broker."""
        self._run(CONTROLLER, self._controller)
        for broker in self.brokers:
            self._run(broker, self._broker(broker))

    def now_us(self) -> int:
        """The time of the run's clock."""
        return self._loop.time_us

    def image(self) -> Image:
        """The controller's newest image."""
        return self._controller.image

    def log(self, node: int, partition: TopicPartition) -> MemoryLog | None:
        """Give what the disk of a broker holds of a log partition, None where it never hosted it."""
        return self._disks[node].log(partition)

    def broker(self, node: int) -> Broker | None:
        """The core that runs on a broker, None while its process is dead."""
        process = self._processes[node]
        return process.core if process.alive and isinstance(process.core, Broker) else None

    def process(self, node: int) -> Process:
        """The newest process of a node."""
        return self._processes[node]

    def _is_dead(self, node: int) -> bool:
        return not self._processes[node].alive

    def _controlling(self) -> tuple[Process, Controller]:
        return self._processes[CONTROLLER], self._controller

    def _broker(self, node: int) -> Broker:
        disk = self._disks[node]
        return Broker(
            NodeId(node),
            self._config,
            disk.open,
            self._starts + 1,
            rack=self._racks.get(node, ""),
            previous_epoch=disk.take_clean_shutdown(),
            offline=disk.offline,
            observe=self._observing,
        )

    def _run(self, node: int, core: Core) -> Process:
        self._starts += 1
        process = Process(
            (NodeId(node), self._starts), core, self._loop, self._network, self._observe, watchers=self._watchers
        )
        self._processes[node] = process
        self._network.started(node, process)
        process.start(partial(self._draw, f"timers {node} at {self._loop.time_us} us"))
        return process

    # --- Target ------------------------------------------------------------------------------------------------------

    def view(self) -> ClusterView:
        """The newest view."""
        image = self._controller.image
        if image is not self._seen:
            self._seen = image
            self._partitions = _partitions_of(image, internal=False)
            self._internal = _partitions_of(image, internal=True)
            self._coordinators = _leader_of(image, group_coordinator.LOG)
            self._transaction_coordinators = _leader_of(image, transaction_coordinator.LOG)
        processes = self._processes
        running = tuple(
            node
            for node in self.brokers
            if processes[node].alive and not processes[node].frozen and node not in self._shutdown
        )
        control = processes[CONTROLLER]
        return ClusterView(
            self._partitions,
            running,
            self.brokers,
            running_controllers=(CONTROLLER,) if control.alive and not control.frozen else (),
            racks=self._racks,
            coordinators=self._coordinators,
            transaction_coordinators=self._transaction_coordinators,
            internal=self._internal,
        )

    def kill(self, node: int) -> Killed:
        """The core's object is gone; its logs keep what was appended."""
        process = self._processes[node]
        if not process.alive:
            return {}
        process.kill()
        self._network.died(node)
        return {"exit": SIGKILLED, "incarnation": process.incarnation}

    def _end_cleanly(self, node: int) -> None:
        """Everything is on the disk, and the mark that says so; a process that is dead by now leaves none."""
        broker = self.broker(node)
        if broker is not None:
            for replica in broker.replicas.values():
                replica.log.checkpoint_high_watermark(replica.high_watermark)
                replica.log.close()
            self._disks[node].clean_shutdown = broker.broker_epoch
        self.kill(node)

    def cut_power(self, node: int) -> PowerLost:
        """Every log of the node ends where its disk last flushed it."""
        evidence = self.kill(node)
        if not evidence:
            return {}
        taken = self._disks[node].lose_power()
        if any(taken["lost"].values()):
            self.damaged.append(NodeId(node))
        return {**evidence, **taken}

    def fail(self, node: int, partition: str) -> DirectoryFailed:
        """See :meth:`nemesis.disk_parts.LogDirectories.fail`: the core is told, or ends as Kafka does."""
        process, disk = self._processes[node], self._disks[node]
        failed = disk.fail(partition) if process.alive else ()
        if not failed:
            return {}
        evidence: DirectoryFailed = {
            "failed": [str(log_partition) for log_partition in failed],
            "incarnation": process.incarnation,
        }
        if disk.works:
            process.on_directory_failure(failed)
            return evidence
        return {**evidence, **self.kill(node), "exit": NO_DIRECTORY}

    def replace(self, node: int) -> DirectoryFailed:
        """See :meth:`nemesis.disk_parts.LogDirectories.replace`. ``replaced`` are the records that are gone."""
        gone = {} if self._processes[node].alive else self._disks[node].replace()
        if any(gone.values()):
            self.damaged.append(NodeId(node))
        return {"replaced": gone} if gone else {}

    def stop(self, node: int) -> ProcessSeen:
        """It leaves as soon as its leaderships are handed over; its disk then has everything."""
        return self._shutdown.ask(node, self._processes[node])

    def restart(self, node: int) -> ProcessSeen:
        """A new incarnation over the old disk."""
        if node in self._shutdown:
            return self._shutdown.bring_back(node)
        if self._processes[node].alive or (node in self._disks and not self._disks[node].works):
            return {}
        if node == CONTROLLER:
            last = self._controller
            self._controller = self._make_controller(
                self._config, image=last.image, next_producer_id=last.next_producer_id, observe=self._observing
            )
        process = self._run(node, self._controller if node == CONTROLLER else self._broker(node))
        return {"state": "running", "incarnation": process.incarnation}

    def pause(self, node: int) -> ProcessSeen:
        """Let everything wait that reaches the process."""
        process = self._processes[node]
        if not process.alive:
            return {}
        process.freeze()
        return {"state": "frozen", "incarnation": process.incarnation}

    def resume(self, node: int) -> ProcessSeen:
        """Handle now what waited, in order."""
        process = self._processes[node]
        if not process.frozen:
            return {}
        waited = process.resume()
        return {"state": "running", "incarnation": process.incarnation, "waited": waited}

    def cut(self, links: Collection[Link]) -> LinksCut:
        """Deliver nothing over these links."""
        cut = self._network.cut(links)
        if cut is None:
            return {}
        return {"cut": cut.links, "under_way": "retransmitted" if cut.retransmits else "lost"}

    def heal(self, links: Collection[Link]) -> LinksCut:
        """Deliver again; the evidence is what the cuts did to messages until now."""
        ended = self._network.heal(links)
        if not ended:
            return {}
        return {"dropped": sum(cut.dropped for cut in ended), "delayed": sum(cut.delayed for cut in ended)}

    def slow(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver late over these links."""
        fresh = self._network.slow(links)
        return {"slow": [f"{source}>{target}" for source, target in fresh]} if fresh else {}

    def restore(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver as before."""
        slow = self._network.restore_link_speed(links)
        return {"quick": [f"{source}>{target}" for source, target in slow]} if slow else {}


def _partitions_of(image: Image, *, internal: bool) -> dict[str, PartitionView]:
    """The log partitions of the run, or ``internal`` ones: those of coordinators are the cluster's own."""
    return {
        str(LogPartition(name, number)): PartitionView(
            leader=None if state.leader == NONE else state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            replicas=state.replicas,
            elr=state.elr,
            partition_epoch=state.partition_epoch,
        )
        for name, topic in image.topics.items()
        if (name in {TRANSACTIONS_TOPIC, OFFSETS_TOPIC}) is internal
        for number, state in enumerate(topic.partitions)
    }


def _leader_of(image: Image, log: TopicPartition) -> tuple[int, ...]:
    """The broker that leads the log of a coordinator, if it exists and is led."""
    state = image.partition(log)
    return () if state is None or state.leader == NONE else (state.leader,)

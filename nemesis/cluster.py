"""The contract of a world that is attacked: a view of its cluster, and parts that do things to it.

A node is a number: brokers count from 0, controllers from :data:`CONTROLLER`, and all clients together are
:data:`CLIENTS`. In links CONTROLLER means every controller. A link is a directed pair (source, target): a cut link
delivers nothing from source to target, so a one-way cut is one link and a symmetric cut two.

A :class:`Target` is a bundle of small parts, one for each :class:`Capability`; those of disks are in
:mod:`nemesis.disk_parts`. A world fills in those that it has, and says of every other one why it lacks it; a fault
names those that it needs. Pinned semantics of every part:

* Every call takes effect before it returns and is safe to repeat: killing a dead node, healing a whole link.
* What is done to a process is journalled by the world before it is done.
* Evidence is what was observed, never what was intended; an empty mapping means nothing was observed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from nemesis.disk_parts import DiskSpace, DiskSpeed, Files, LogDirectories, WriteCaches
from nemesis.evidence import (
    ClockSet,
    ConnectionsHeld,
    InstanceSeen,
    Killed,
    LeaderMoved,
    LinksCut,
    LinksSlowed,
    PacketsLost,
    PowerLost,
    ProcessSeen,
    ProducerDied,
    Reassigned,
)
from nemesis.succession import Succession

CONTROLLER: Final = 100
CLIENTS: Final = 1000


def node_name(node: int) -> str:
    """A node as people call it."""
    if node >= CONTROLLER:
        return "the clients" if node >= CLIENTS else f"controller {node}"
    return f"broker {node}"


class Link(NamedTuple):
    """A directed connection between two nodes."""

    source: int
    target: int


def link_name(link: tuple[int, int]) -> str:
    """A link as evidence names it: ``0>1``."""
    source, target = link
    return f"{source}>{target}"


class PartitionView(msgspec.Struct, frozen=True):
    """The controller's word about one log partition. ``leader`` is None while no broker leads.

    ``elr`` are the eligible leader replicas outside the ISR (KIP-966), where the cluster reports them: see
    :class:`harness.worlds.kafka.administration.Administration`. ``partition_epoch`` is -1 where it does
    not report that.
    """

    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    elr: tuple[int, ...] = ()
    partition_epoch: int = -1


class ClusterView(msgspec.Struct, frozen=True):
    """A view of the cluster as it is now. ``running`` are brokers whose process lives and is not paused.

    ``racks`` are the brokers' racks, of those that have one.
    ``coordinators`` are the brokers that serve the run's consumer group (the leader of its partition of
    `__consumer_offsets`); none where there is no such group.
    ``transaction_coordinators`` are the brokers that serve the run's transactional ids, each the leader of the id's
    partition of `__transaction_state`, in the order of the ids.
    ``internal`` are the log partitions of these two topics, where the cluster has them.
    ``controllers`` are all controllers, first the one that was last known to be active; ``running_controllers`` as
    ``running``. ``controller_active`` is false while it is known that no controller is active: no leader is elected
    then.
    """

    partitions: Mapping[str, PartitionView]
    running: tuple[int, ...]
    brokers: tuple[int, ...]
    controllers: tuple[int, ...] = (CONTROLLER,)
    running_controllers: tuple[int, ...] = (CONTROLLER,)
    controller_active: bool = True
    racks: Mapping[int, str] = {}
    coordinators: tuple[int, ...] = ()
    transaction_coordinators: tuple[int, ...] = ()
    internal: Mapping[str, PartitionView] = {}


class NodeProcesses(Protocol):
    """The processes of the nodes, brokers and controllers."""

    def kill(self, node: int) -> Killed:
        """End the process at once (SIGKILL). What the operating system holds survives; memory does not."""

    def stop(self, node: int) -> ProcessSeen:
        """Ask the process to end, as an operator does (SIGTERM): it hands over what it leads and writes all to disk.

        Clients go on meanwhile, so this returns when the node was asked; from then on it does not count as running.
        :meth:`restart` starts it when it has ended.
        """

    def restart(self, node: int) -> ProcessSeen:
        """Start a dead node again on its old disk; nothing if it runs."""

    def pause(self, node: int) -> ProcessSeen:
        """Freeze the process (SIGSTOP); its sockets stay open."""

    def resume(self, node: int) -> ProcessSeen:
        """Let a frozen process run (SIGCONT)."""


class Power(Protocol):
    """The power supply of the nodes' machines. :meth:`NodeProcesses.restart` brings a node back."""

    def cut_power(self, node: int) -> PowerLost:
        """End the process at once, and lose what was not yet forced to its disk (fsync)."""


class Links(Protocol):
    """The connections between nodes, and between nodes and clients."""

    def cut(self, links: Collection[Link]) -> LinksCut:
        """Deliver nothing over these links until they are healed."""

    def heal(self, links: Collection[Link]) -> LinksCut:
        """Deliver again over these links."""


class LinkSpeed(Protocol):
    """The speed at which links deliver."""

    def slow(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver over these links late, or little at a time, until :meth:`restore`."""

    def restore(self, links: Collection[Link]) -> LinksSlowed:
        """Deliver over these links as fast as before."""


class Connections(Protocol):
    """The TCP connections that are open over a link: those that its source opened to its target."""

    def hold(self, links: Collection[Link]) -> ConnectionsHeld:
        """Hold what is sent from now on over the ``connections`` that are open now, until :meth:`deliver`.

        Connections that are opened later work. Nothing tells either end: a source that gives up and closes has still
        sent what it sent.
        """

    def deliver(self, links: Collection[Link]) -> LinksCut:
        """Let TCP send again what was held on these links, also what an end that has closed meanwhile had sent."""


class Packets(Protocol):
    """The packets on their way over links. TCP sends again what was lost, so all arrives, some of it late."""

    def lose(self, links: Collection[Link]) -> PacketsLost:
        """Lose a share of the packets on these links, each by chance, until :meth:`spare`."""

    def spare(self, links: Collection[Link]) -> LinksCut:
        """Lose no more packets on these links."""


class Messages(Protocol):
    """Single messages on their way over a link.

    A message is a request of the Kafka API ``api`` ("AlterPartition", "Fetch", "Produce") that goes from the link's
    source to its target, or the response to one that went the other way; an empty ``api`` means every message. A world
    that cannot tell messages apart may hold back the whole connection instead, which its evidence states
    (``"whole_connection": True``). Several may last on one link; a message is taken by the one that began first.
    """

    def hold(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Keep what is sent over these links from now on, until :meth:`release`."""

    def delay(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Keep the first message that each of these links is sent from now on; what follows it overtakes it."""

    def drop(self, links: Collection[Link], api: str = "") -> LinksCut:
        """Throw away what is sent over these links from now on, until :meth:`release`."""

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> LinksCut:
        """End an ``action`` ("hold", "delay", "drop") on the messages of ``api`` on these links; an empty one: all.

        What it held is delivered, in the order in which it was sent, unless another that lasts holds or drops it.
        """

    def release_one(self, link: Link, *, newest: bool) -> LinksCut:
        """Deliver the oldest or the ``newest`` message that is held on ``link``; all that holds it lasts."""


class Leadership(Protocol):
    """Leadership, as operators change it on purpose, through the cluster's own administration.

    Where the cluster would not, the evidence is ``refused`` with its reason, and what is so now; where no answer came,
    ``unconfirmed`` likewise.
    """

    def move_leader(self, partition: str, broker: int) -> LeaderMoved:
        """Make ``broker``, which must be in sync, the leader."""


class Reassignment(Protocol):
    """Replicas, changed on purpose. Refusals as with :class:`Leadership`."""

    def reassign(self, partition: str, replicas: Sequence[int]) -> Reassigned:
        """Let these brokers replicate ``partition``, the first of them preferred as leader; it may go on afterwards."""


class WallClocks(Protocol):
    """The nodes' wall clocks."""

    def set(self, node: int, offset_ms: int) -> ClockSet:
        """Let the node's wall clock be wrong by so much from now on; 0 sets it right."""


class ClientProcesses(Protocol):
    """The workload's own producers; the workload offers them in every world."""

    def crash_producer(self, pick: int) -> ProducerDied:
        """End a producer and its connections without closing it, and let a new instance take its place.

        ``pick``, modulo their number, says which one. What it had sent and not been answered stays without an outcome.
        On real machines an answer may be on its way to the history already, so fewer may end without an outcome.
        """


class ApplicationInstances(Protocol):
    """The instances of an application under test; the workload that has one offers them.

    ``pick``, modulo their number in the plan, says which one. Where it does not run, nothing is observed.
    """

    def kill_instance(self, pick: int) -> InstanceSeen:
        """End it, and every process that it started, at once (SIGKILL); it is not started before it is restored."""

    def stop_instance(self, pick: int) -> InstanceSeen:
        """Ask it to end in order (SIGTERM), and kill it after its time. This returns when it was asked."""

    def freeze_instance(self, pick: int) -> InstanceSeen:
        """Let it stand still (SIGSTOP), with all that it started."""

    def cut_instance(self, pick: int, broker: int) -> InstanceSeen:
        """Let nothing that it sends arrive at ``broker``."""

    def mend_instance(self, pick: int) -> InstanceSeen:
        """Let it reach every broker again."""

    def restore_instance(self, pick: int) -> InstanceSeen:
        """Let it run as before: thaw it, or start it again."""

    def add_instance(self) -> InstanceSeen:
        """Start one instance more."""

    def take_added_away(self) -> InstanceSeen:
        """Ask the newest that was added to end, for good."""

    def restore_all(self) -> InstanceSeen:
        """Let the instances of the plan run, and no others; the last act's evidence."""


class Capability(StrEnum):
    """The capabilities of targets; each value is the name of a part in :class:`Target`."""

    PROCESSES = "processes"
    POWER = "power"
    LINKS = "links"
    LINK_SPEED = "link_speed"
    CONNECTIONS = "connections"
    PACKETS = "packets"
    MESSAGES = "messages"
    FILES = "files"
    WRITE_CACHES = "write_caches"
    LOG_DIRECTORIES = "log_directories"
    DISK_SPACE = "disk_space"
    DISK_SPEED = "disk_speed"
    LEADERSHIP = "leadership"
    REASSIGNMENT = "reassignment"
    CLOCKS = "clocks"
    CLIENTS = "clients"
    INSTANCES = "instances"
    SUCCESSION = "succession"


#: The lacks of every target, where its world does not say more.
_LACKS: Final = {
    Capability.INSTANCES: 'there is no application: write [application], and name = "application" under [workload]'
}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster under attack.

    ``view`` gives the newest view; an unreachable controller leaves the last one standing. Every other part is None
    where this world lacks it, and ``lacks`` says why. ``unplanned`` are lacks that mean no more than that the part
    was not asked for: with a family of faults that need it, it is made ready.
    """

    view: Callable[[], ClusterView]
    processes: NodeProcesses | None = None
    power: Power | None = None
    links: Links | None = None
    link_speed: LinkSpeed | None = None
    connections: Connections | None = None
    packets: Packets | None = None
    messages: Messages | None = None
    files: Files | None = None
    write_caches: WriteCaches | None = None
    log_directories: LogDirectories | None = None
    disk_space: DiskSpace | None = None
    disk_speed: DiskSpeed | None = None
    leadership: Leadership | None = None
    reassignment: Reassignment | None = None
    clocks: WallClocks | None = None
    clients: ClientProcesses | None = None
    instances: ApplicationInstances | None = None
    succession: Succession | None = None
    lacks: Mapping[Capability, str] = {}
    unplanned: frozenset[Capability] = frozenset()

    def why_not(self, needs: Iterable[Capability]) -> str:
        """Say why these capabilities cannot be used here; empty if they can."""
        missing = (need for need in needs if getattr(self, need) is None)
        return next((self.lacks.get(need) or _LACKS.get(need) or f"nothing here offers {need}" for need in missing), "")


Part = TypeVar("Part")


def require(part: Part | None) -> Part:
    """A part of a target that is known to be there: its user has asked :meth:`Target.why_not` before.

    Raises:
        LookupError: it is not, which is a mistake of the caller.
    """
    if part is None:
        raise LookupError("the target lacks this part; ask why_not() before using it")
    return part

"""What a world must offer to be attacked.

A node is a number: brokers count from 0, controllers from :data:`CONTROLLER`, and all clients together are
:data:`CLIENTS`. In links CONTROLLER stands for every controller. A link is a directed pair (source, target): a cut link
delivers nothing from source to target, so a one-way cut is one link and a symmetric cut two. Pinned semantics:

* Every call takes effect before it returns and is safe to repeat: killing a dead node, healing a whole link.
* What is done to a process is journalled by the world before it is done.
* Evidence is what was observed, never what was intended; an empty mapping means nothing was observed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

CONTROLLER: Final = 100
CLIENTS: Final = 1000
#: In how many parts a log is counted where a record is chosen in it.
LOG_PARTS: Final = 1000


def node_name(node: int) -> str:
    """A node as people call it."""
    if node >= CONTROLLER:
        return "the clients" if node >= CLIENTS else f"controller {node}"
    return f"broker {node}"


class Link(NamedTuple):
    """A directed connection between two nodes."""

    source: int
    target: int


class PartitionView(msgspec.Struct, frozen=True):
    """The controller's word about one log partition. ``leader`` is None while there is none.

    ``elr`` are the eligible leader replicas outside the ISR (KIP-966), where somebody tells them: see
    :class:`harness.worlds.kafka.administration.Administration`.
    """

    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    elr: tuple[int, ...] = ()


class ClusterView(msgspec.Struct, frozen=True):
    """What is known of the cluster now. ``running`` are brokers whose process lives and is not paused.

    ``unavailable`` says which kinds of fault (their tags) cannot be done here, and why. ``controllers`` are all
    controllers, first the one that was last known to be active; ``running_controllers`` as ``running``.
    ``controller_active`` is false while it is known that no controller is active: nobody elects leaders then.
    """

    partitions: Mapping[str, PartitionView]
    running: tuple[int, ...]
    brokers: tuple[int, ...]
    unavailable: Mapping[str, str] = {}
    controllers: tuple[int, ...] = (CONTROLLER,)
    running_controllers: tuple[int, ...] = (CONTROLLER,)
    controller_active: bool = True


Evidence = Mapping[str, object]


class Storage(Protocol):
    """What the nodes have on their disks."""

    def wipe(self, node: int) -> Evidence:
        """Empty the disk of a dead node; its next start finds nothing, as after a new machine.

        Evidence: ``wiped``, which says what is gone.
        """
        ...

    def corrupt(self, node: int, partition: str, pick: int) -> Evidence:
        """Change one byte of a record that a dead node keeps of ``partition``.

        ``pick``, from 0 up to LOG_PARTS, is how far into the log the record is.
        """
        ...

    def fill(self, node: int) -> Evidence:
        """Leave no room on the node's disk."""
        ...

    def free(self, node: int) -> Evidence:
        """Give back what :meth:`fill` took."""
        ...

    def slow(self, node: int) -> Evidence:
        """Let the node's disk write slowly."""
        ...

    def restore_disk_speed(self, node: int) -> Evidence:
        """Let it write as fast as it can again."""
        ...


class Leadership(Protocol):
    """Who leads and who replicates: what operators change on purpose, through the cluster's own administration.

    Where the cluster would not, the evidence is ``refused`` with its reason, and what stands; where nobody said whether
    it will, ``unconfirmed`` likewise.
    """

    def move_leader(self, partition: str, broker: int) -> Evidence:
        """Make ``broker``, which must be in sync, the leader. Evidence: ``leader`` and ``leader_epoch`` afterwards."""
        ...

    def reassign(self, partition: str, replicas: Sequence[int]) -> Evidence:
        """Let these brokers replicate ``partition``, the first of them preferred as leader; it may go on afterwards.

        Evidence: ``replicas`` afterwards, which begin with the wanted ones and hold those that still have to leave.
        """
        ...


class Target(Protocol):
    """A cluster under attack. What a world cannot do stands in :attr:`ClusterView.unavailable` and is never called."""

    @property
    def storage(self) -> Storage:
        """The nodes' disks."""
        ...

    @property
    def leadership(self) -> Leadership:
        """The partitions' leaders and replicas."""
        ...

    def view(self) -> ClusterView:
        """The newest view; an unreachable controller leaves the last one standing."""
        ...

    def kill(self, node: int) -> Evidence:
        """End the process at once (SIGKILL). What the operating system holds survives; memory does not."""
        ...

    def power_off(self, node: int) -> Evidence:
        """End the process at once, and lose what its disk had not yet been told to keep (fsync)."""
        ...

    def stop(self, node: int) -> Evidence:
        """Ask the process to end, as an operator does (SIGTERM): it hands over what it leads and writes all to disk.

        Clients go on meanwhile, so this returns when the node was asked; from then on it does not count as running.
        :meth:`restart` starts it when it has ended.
        """
        ...

    def restart(self, node: int) -> Evidence:
        """Start a dead node again on its old disk; nothing if it runs."""
        ...

    def pause(self, node: int) -> Evidence:
        """Freeze the process (SIGSTOP); its sockets stay open."""
        ...

    def resume(self, node: int) -> Evidence:
        """Let a frozen process run (SIGCONT)."""
        ...

    def cut(self, links: Collection[Link]) -> Evidence:
        """Deliver nothing over these links until they are healed."""
        ...

    def heal(self, links: Collection[Link]) -> Evidence:
        """Deliver again over these links."""
        ...

    def slow_links(self, links: Collection[Link]) -> Evidence:
        """Deliver over these links late, or little at a time, until :meth:`restore_link_speed`."""
        ...

    def restore_link_speed(self, links: Collection[Link]) -> Evidence:
        """Deliver over these links as fast as before."""
        ...

    def set_clock(self, node: int, offset_ms: int) -> Evidence:
        """Let the node's wall clock be wrong by so much from now on; 0 sets it right."""
        ...

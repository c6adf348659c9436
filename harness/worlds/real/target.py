"""The cluster under attack, assembled: every capability that host, machine and administration offer, or why not.

Whether a fault can be done to a started cluster is decided in three places, each next to the part that does it: what
the distribution lacks (:meth:`harness.worlds.real.started.Distribution.lacks`), what the host lacks
(:meth:`harness.hosts.contract.Host.lacks`), and here what this machine cannot make ready. What is known before
anything is started (:func:`out_of_reach`, :func:`machine_lacks`) is asked of plans too: :mod:`harness.worlds.limits`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from harness.errors import HostError
from harness.hosts import (
    Clocks,
    Disk,
    Host,
    LocalHost,
    NamespaceHost,
    NodeState,
    choose_throttle,
    find_limit,
    log_bytes,
    probe_disks,
    probe_slow_links,
)
from harness.worlds.real.attacked_nodes import AttackedNodes
from harness.worlds.real.storage import FileStorage, SlowDisks
from nemesis.cluster import Capability, Evidence, Leadership, Link, Links, Reassignment, Target, require
from nemesis.scenarios import FAMILIES, needs_of

Made = TypeVar("Made")
#: What needs a disk of each broker's own.
ON_DISKS: Final = (Capability.POWER, Capability.WRITE_CACHES, Capability.DISK_SPACE, Capability.DISK_SPEED)
_NO_INTERFACES: Final = 'links are slowed down with host = "namespaces" only, which needs root'
_CLOCKS_ELSEWHERE: Final = "clocks are set on this machine only"
_DISKS_ELSEWHERE: Final = "disks of machines that are reached over SSH are left alone"


def out_of_reach(distribution_lacks: Mapping[Capability, str], host: type[Host]) -> dict[Capability, str]:
    """What is not done to nodes of a distribution with these lacks on such a host, however this machine is."""
    lacks = dict(distribution_lacks)
    if not issubclass(host, NamespaceHost):
        lacks[Capability.LINK_SPEED] = _NO_INTERFACES
    if not issubclass(host, LocalHost):
        lacks |= dict.fromkeys((Capability.FILES, *ON_DISKS), _DISKS_ELSEWHERE) | {Capability.CLOCKS: _CLOCKS_ELSEWHERE}
    if Capability.LINKS in lacks:
        lacks[Capability.MESSAGES] = lacks[Capability.LINKS]
    return lacks


def machine_lacks(capabilities: Iterable[Capability]) -> dict[Capability, str]:
    """Which of these this machine cannot make ready for nodes on it, and what to do; nothing is left behind.

    Disks and slow links may still turn out to be impossible when a run makes them: what is known before is found.
    """
    found = ((one, _complaint(_PROBES[one])) for one in capabilities if one in _PROBES)
    return {one: why for one, why in found if why}


def _complaint(probes: Iterable[Callable[[], object]]) -> str:
    try:
        for probe in probes:
            probe()
    except HostError as error:
        return str(error)
    return ""


def _probe_clocks() -> None:
    with TemporaryDirectory(prefix="ackproof-clocks-") as directory:
        Clocks(Path(directory))


#: What finds out, as a run does, whether this machine has what faults of a capability need.
_PROBES: Final[Mapping[Capability, tuple[Callable[[], object], ...]]] = {
    **dict.fromkeys(ON_DISKS, (probe_disks,)),
    Capability.DISK_SPEED: (probe_disks, find_limit),
    Capability.LINK_SPEED: (probe_slow_links,),
    Capability.CLOCKS: (_probe_clocks,),
}


class Preparation:
    """What is made ready on this machine for the faults of a run's ``families``; ``lacks`` says why the rest is not.

    ``unplanned`` are the lacks whose reason is only that no family needs them.
    """

    def __init__(self, families: Iterable[str], lacks: Mapping[Capability, str]) -> None:
        self._needs = frozenset[Capability]().union(*map(needs_of, families))
        self.lacks = dict(lacks)
        self.unplanned: set[Capability] = set()

    def prepare(self, make: Callable[[], Made], *capabilities: Capability) -> Made | None:
        """What ``make`` gives, for capabilities of which one is needed; None where the machine cannot offer it."""
        if self.lacks.keys() & set(capabilities):
            return None
        if not self._needs & set(capabilities):
            self.unplanned |= set(capabilities)
            for one in capabilities:
                families = " or ".join(name for name in FAMILIES if one in needs_of(name))
                self.lacks[one] = f"no {families} fault was planned"
            return None
        try:
            return make()
        except HostError as error:
            self.lacks.update(dict.fromkeys(capabilities, str(error)))
            return None


class OwnDisks:
    """Implements Power, WriteCaches and DiskSpace of :mod:`nemesis.cluster` with disks of the nodes' own."""

    def __init__(self, attacked: AttackedNodes, disks: Mapping[int, Disk]) -> None:
        self._attacked = attacked
        self._disks = disks

    def cut_power(self, node: int) -> Evidence:
        """See :meth:`Power.cut_power`. Evidence: as of a kill, and bytes of log segments before and after.

        ``lost_flushed`` are the bytes that a disk lost which lied: how many of them were flushed is not known, so all
        count. Restarting finds the disk mounted again, with what the node had forced to it.
        """
        attacked, disk = self._attacked, self._disks[node]
        if attacked.nodes.process(node).state() is NodeState.DEAD:
            return {}
        attacked.nodes.crashes.ordered(node, attacked.clock.now_us())
        before = log_bytes(disk.place)
        disk.power_off()
        evidence = {**attacked.kill(node), "log_bytes_before": before, **disk.power_on()}
        return {**evidence, "lost_flushed": before - log_bytes(disk.place)} if disk.lies else evidence

    def lie(self, node: int) -> Evidence:
        """See :meth:`WriteCaches.lie`. Evidence: ``durable_log_bytes``, of log segments that a loss of power leaves."""
        return self._disks[node].lie()

    def obey(self, node: int) -> Evidence:
        """See :meth:`WriteCaches.obey`. Evidence: ``log_bytes``."""
        return self._disks[node].obey()

    def fill(self, node: int) -> Evidence:
        """See :meth:`DiskSpace.fill`. Evidence: as of :meth:`harness.hosts.disks.Disk.fill`."""
        return self._disks[node].fill()

    def free(self, node: int) -> Evidence:
        """See :meth:`DiskSpace.free`. Evidence: ``freed_bytes``, and ``exit`` of a process that ended meanwhile."""
        ended = self._attacked.nodes.process(node).exit()
        freed = self._disks[node].free()
        return {**freed, "exit": ended} if freed and ended is not None else freed


class HeldConnections:
    """Implements :class:`nemesis.cluster.Messages` over connections that cannot be looked into: all of a link is held.

    What is under way is sent again by TCP once the link is healed, unless somebody closed the connection meanwhile, so
    dropping is holding too. It implements :class:`nemesis.cluster.Links` as well: both cut the same ``links``, and one
    that either still wants cut is not healed.
    """

    def __init__(self, links: Links) -> None:
        self._links = links
        self._cut: set[Link] = set()
        self._held: set[tuple[str, str, Link]] = set()

    def cut(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.cut`. Evidence: as of ``links``."""
        self._cut.update(links)
        return self._links.cut(links)

    def heal(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.heal`; what is held stays so. Evidence: as of ``links``."""
        self._cut.difference_update(links)
        held = {link for _, _, link in self._held}
        return self._links.heal([link for link in links if link not in held])

    def hold(self, links: Collection[Link], api: str = "") -> Evidence:
        """See :meth:`Messages.hold`. Evidence: as of the cut, and ``whole_connection``."""
        return self._hold(links, "hold", api)

    def drop(self, links: Collection[Link], api: str = "") -> Evidence:
        """See :meth:`Messages.drop`. Evidence: as of :meth:`hold`."""
        return self._hold(links, "drop", api)

    def release(self, links: Collection[Link], action: str = "", api: str = "") -> Evidence:
        """See :meth:`Messages.release`; what is cut stays so. Evidence: as of healing."""
        ended = {held for held in self._held if held[2] in links and (not action or held[:2] == (action, api))}
        self._held -= ended
        lasting = self._cut | {link for _, _, link in self._held}
        return self._links.heal(sorted({link for _, _, link in ended} - lasting))

    def release_one(self, link: Link, *, newest: bool) -> Evidence:  # noqa: ARG002 - a connection is held whole
        """See :meth:`Messages.release_one`: nothing."""
        return {}

    def _hold(self, links: Collection[Link], action: str, api: str) -> Evidence:
        self._held.update((action, api, link) for link in links)
        evidence = self._links.cut(links)
        return {**evidence, "whole_connection": True} if evidence else {}


def assemble(
    attacked: AttackedNodes,
    preparation: Preparation,
    disks: Mapping[int, Disk] | None,
    clocks: Clocks | None,
    administration: tuple[Leadership, Reassignment | None],
) -> Target:
    """The target with everything that its host, its machine and its administration offer."""
    nodes, host, lacks = attacked.nodes, attacked.nodes.host, preparation.lacks
    links = None if Capability.LINKS in lacks else HeldConnections(attacked)
    own_disks = None if disks is None else OwnDisks(attacked, disks)
    slow_disks = preparation.prepare(
        lambda: SlowDisks(nodes, require(disks), choose_throttle(attacked.journal)), Capability.DISK_SPEED
    )
    if slow_disks is not None:
        attacked.after_start.append(slow_disks.started)
    link_speed = None
    if isinstance(host, NamespaceHost):
        link_speed = preparation.prepare(lambda: host.shaper(nodes.single_links), Capability.LINK_SPEED)
    if links is None:
        lacks[Capability.MESSAGES] = lacks[Capability.LINKS]
    return Target(
        view=attacked.view,
        processes=attacked,
        power=own_disks,
        write_caches=own_disks,
        links=links,
        link_speed=link_speed,
        messages=links,
        files=None if Capability.FILES in lacks else FileStorage(nodes),
        disk_space=own_disks,
        disk_speed=slow_disks,
        leadership=administration[0],
        reassignment=administration[1],
        clocks=clocks,
        lacks=lacks,
        unplanned=frozenset(preparation.unplanned),
    )

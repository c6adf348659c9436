"""The cluster under attack, assembled: every capability that host, machine and administration offer, or why not.

Whether a fault can be done to a started cluster is decided in three places, each next to the part that does it: what
the distribution lacks (:meth:`harness.worlds.real.started.Distribution.lacks`), what the host lacks
(:meth:`harness.hosts.contract.Host.lacks`), and here what this machine cannot make ready.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from harness.errors import HostError
from harness.hosts import (
    Clocks,
    Disks,
    Host,
    LocalHost,
    NamespaceHost,
    NodeState,
    Shaper,
    choose_throttle,
    log_bytes,
    probe_slow_links,
)
from harness.worlds.real.control import NodeControl
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.storage import FileStorage, OwnDisks, SlowDisks
from nemesis.cluster import Capability, Evidence, Leadership, Link, Links, Reassignment, Target, present
from nemesis.scenarios import FAMILIES, needs_of

Made = TypeVar("Made")
#: What needs a disk of each broker's own.
ON_DISKS: Final = (Capability.POWER, Capability.DISK_SPACE, Capability.DISK_SPEED)
_NO_INTERFACES: Final = 'links are slowed down with host = "namespaces" only, which needs root'
_CLOCKS_ELSEWHERE: Final = "clocks are set on this machine only"
_DISKS_ELSEWHERE: Final = "disks of machines that are reached over SSH are left alone"


def elsewhere(host: Host) -> Mapping[Capability, str]:
    """What is not done to nodes that do not live on this machine."""
    return {} if isinstance(host, LocalHost) else dict.fromkeys((Capability.FILES, *ON_DISKS), _DISKS_ELSEWHERE)


class Preparation:
    """What is made ready on this machine for the faults of a run's ``families``; ``lacks`` says why the rest is not."""

    def __init__(self, families: Iterable[str], lacks: Mapping[Capability, str]) -> None:
        self._needs = frozenset[Capability]().union(*map(needs_of, families))
        self.lacks = dict(lacks)

    def prepare(self, make: Callable[[], Made], *capabilities: Capability) -> Made | None:
        """What ``make`` gives, for capabilities of which one is needed; None where the machine cannot offer it."""
        if self.lacks.keys() & set(capabilities):
            return None
        if not self._needs & set(capabilities):
            self.lacks.update({one: _not_planned(one) for one in capabilities})
            return None
        try:
            return make()
        except HostError as error:
            self.lacks.update(dict.fromkeys(capabilities, str(error)))
            return None


def _not_planned(capability: Capability) -> str:
    return f"no {' or '.join(name for name in FAMILIES if capability in needs_of(name))} fault was planned"


class PowerSupply:
    """Implements :class:`nemesis.cluster.Power` for nodes with disks of their own."""

    def __init__(self, control: NodeControl, disks: Disks) -> None:
        self._control = control
        self._disks = disks

    def cut_power(self, node: int) -> Evidence:
        """See :meth:`Power.cut_power`. Evidence: as of a kill, and bytes of log segments before and after.

        Restarting finds the disk mounted again, with what the node had forced to it.
        """
        control, disk = self._control, self._disks.of(node)
        if control.nodes.process(node).state() is NodeState.DEAD:
            return {}
        control.nodes.crashes.ordered(node, control.clock.now_us())
        before = {"log_bytes_before": log_bytes(disk.place)}
        disk.power_off()
        return {**control.kill(node), **before, **disk.power_on()}


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

    def _hold(self, links: Collection[Link], action: str, api: str) -> Evidence:
        self._held.update((action, api, link) for link in links)
        evidence = self._links.cut(links)
        return {**evidence, "whole_connection": True} if evidence else {}


def assemble(
    control: NodeControl,
    preparation: Preparation,
    disks: Disks | None,
    clocks: Clocks | None,
    administration: tuple[Leadership, Reassignment | None],
) -> Target:
    """The target with everything that its host, its machine and its administration offer."""
    nodes, lacks = control.nodes, preparation.lacks
    links = None if Capability.LINKS in lacks else HeldConnections(control)
    slow_disks = preparation.prepare(
        lambda: SlowDisks(nodes, present(disks), choose_throttle(control.journal)), Capability.DISK_SPEED
    )
    if slow_disks is not None:
        control.after_start.append(slow_disks.started)
    if links is None:
        lacks[Capability.MESSAGES] = lacks[Capability.LINKS]
    return Target(
        view=control.view,
        processes=control,
        power=None if disks is None else PowerSupply(control, disks),
        links=links,
        link_speed=preparation.prepare(lambda: slow_links(nodes), Capability.LINK_SPEED),
        messages=links,
        files=None if Capability.FILES in lacks else FileStorage(nodes),
        disk_space=None if disks is None else OwnDisks(nodes, disks),
        disk_speed=slow_disks,
        leadership=administration[0],
        reassignment=administration[1],
        clocks=clocks,
        lacks=lacks,
    )


class SlowLinks:
    """Implements :class:`nemesis.cluster.LinkSpeed` for ``nodes``, of which every controller has links of its own."""

    def __init__(self, shaper: Shaper, nodes: Nodes) -> None:
        self._shaper = shaper
        self._nodes = nodes

    def slow(self, links: Collection[Link]) -> Evidence:
        """See :meth:`LinkSpeed.slow`. Evidence: ``kbit`` and, where the kernel has it, ``delay_ms`` by link."""
        return self._shaper.slow(self._nodes.single_links(links))

    def restore(self, links: Collection[Link]) -> Evidence:
        """See :meth:`LinkSpeed.restore`. Evidence: bytes that ``passed``, and how often packets waited."""
        return self._shaper.restore(self._nodes.single_links(links))


def slow_links(nodes: Nodes) -> SlowLinks:
    """The speed of the links between ``nodes``.

    Raises:
        HostError: links cannot be slowed down here.
    """
    host = nodes.host
    if not isinstance(host, NamespaceHost):
        raise HostError(_NO_INTERFACES)
    leaf = probe_slow_links()
    return SlowLinks(Shaper(host.interfaces(), host.addresses(), leaf), nodes)


def wall_clocks(host: Host, directory: Path) -> Clocks:
    """Wall clocks that can be wrong; their files stand in ``directory``.

    Raises:
        HostError: clocks cannot be set here.
    """
    if not isinstance(host, LocalHost):
        raise HostError(_CLOCKS_ELSEWHERE)
    made = Clocks(directory)
    made.make()
    return made

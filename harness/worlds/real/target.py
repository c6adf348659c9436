"""Assembles the target of faults: every capability that host, machine and administration offer, or why not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from harness.ground.errors import HostError
from harness.worlds.hosts import Clocks, MountedDisk, NamespaceHost, choose_throttle
from harness.worlds.real.attacked_nodes import AttackedNodes
from harness.worlds.real.held_connections import HeldConnections
from harness.worlds.real.own_disks import OwnDisks
from harness.worlds.real.storage import FileStorage, SlowDisks
from nemesis.cluster import Capability, Leadership, Reassignment, Target, require
from nemesis.scenarios import FAMILIES, needs_of
from nemesis.succession import Succession

Made = TypeVar("Made")


class Preparation:
    """Prepares this machine for the faults of a run's ``families``.

    ``lacks`` says which capabilities are missing, and why; ``unplanned`` are those that are missing only because no
    family needs them.
    """

    def __init__(self, families: Iterable[str], lacks: Mapping[Capability, str]) -> None:
        self._needs = frozenset[Capability]().union(*map(needs_of, families))
        self.lacks = dict(lacks)
        self.unplanned: set[Capability] = set()

    def prepare(self, make: Callable[[], Made], *capabilities: Capability) -> Made | None:
        """The result of ``make``, if a family needs one of the capabilities and the machine can offer it; else None."""
        if self.lacks.keys() & set(capabilities):
            return None
        if not self._needs & set(capabilities):
            self.unplanned |= set(capabilities)
            for capability in capabilities:
                families = " or ".join(name for name in FAMILIES if capability in needs_of(name))
                self.lacks[capability] = f"no {families} fault was planned"
            return None
        try:
            return make()
        except HostError as error:
            self.lacks.update(dict.fromkeys(capabilities, str(error)))
            return None


def assemble(
    attacked: AttackedNodes,
    preparation: Preparation,
    disks: Mapping[int, MountedDisk] | None,
    clocks: Clocks | None,
    administration: tuple[Leadership, Reassignment | None],
    *,
    succession: Succession | None = None,
) -> Target:
    """The target with everything that its host, its machine, its administration and its releases offer."""
    nodes, host, lacks = attacked.nodes, attacked.nodes.host, preparation.lacks
    links = None if Capability.LINKS in lacks else HeldConnections(attacked)
    own_disks = None if disks is None else OwnDisks(attacked, disks)
    slow_disks = preparation.prepare(
        lambda: SlowDisks(nodes, require(disks), choose_throttle(attacked.journal)), Capability.DISK_SPEED
    )
    if slow_disks is not None:
        attacked.after_start.append(slow_disks.started)
    link_speed = connections = packets = None
    if isinstance(host, NamespaceHost):
        connections = host.connection_holds(nodes.single_links)
        packets = host.packet_loss(nodes.single_links)
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
        connections=connections,
        packets=packets,
        messages=links,
        files=None if Capability.FILES in lacks else FileStorage(nodes),
        disk_space=own_disks,
        disk_speed=slow_disks,
        leadership=administration[0],
        reassignment=administration[1],
        clocks=clocks,
        succession=succession,
        lacks=lacks,
        unplanned=frozenset(preparation.unplanned),
    )

"""The cluster under attack: faults on real processes and links, with what was seen of them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from harness.errors import HostError
from harness.hosts import Address, Clocks, Disks, Host, NodeState, choose_brake, log_bytes
from harness.records.journal import Journal
from harness.worlds.processes.controlled_shutdown import Leaving
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.shaping import slow_links
from harness.worlds.processes.storage import FileStorage, OwnDisks, SlowDisks
from harness.worlds.processes.view import Viewer
from nemesis.cluster import (
    Capability,
    ClusterView,
    Evidence,
    Leadership,
    Link,
    Links,
    Reassignment,
    Target,
    present,
)
from nemesis.scenarios import FAMILIES, needs_of
from workloads.client import Clock

Made = TypeVar("Made")

#: A refusal on this machine takes microseconds; a dropped packet is taken for one after this.
PROBE_LIMIT_S: Final = 0.1
#: How often a restarted node is told its cuts until it listens, and for how long.
TELL_EVERY_US: Final = 5_000
TELL_LIMIT_US: Final = 30_000_000


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


class NodeControl:
    """Implements :class:`nemesis.cluster.Processes` and :class:`nemesis.cluster.Links`.

    ``after_start`` are called with every node that was started again.
    """

    def __init__(self, host: Host, nodes: Nodes, viewer: Viewer, journal: Journal, clock: Clock) -> None:
        self.host = host
        self.nodes = nodes
        self._viewer = viewer
        self.journal = journal
        self.clock = clock
        self._cuts: dict[Link, int] = {}
        self._leaving = Leaving(nodes.process, self._start, clock)
        self.after_start: Final[list[Callable[[int], None]]] = []

    def view(self) -> ClusterView:
        """See :attr:`Target.view`."""
        view = self._viewer.view()
        running = tuple(node for node in view.running if node not in self._leaving)
        return msgspec.structs.replace(view, running=running)

    def kill(self, node: int) -> Evidence:
        """See :meth:`Processes.kill`. Evidence: ``exit``, ``pid``, and what a client meets there (``connect``)."""
        self.nodes.deaths.ordered(node, self.clock.now_us())
        evidence = self.nodes.process(node).kill()
        return {**evidence, "connect": connect(self.host.address(node))}

    def stop(self, node: int) -> Evidence:
        """See :meth:`Processes.stop`. Evidence: ``pid`` and ``signal``."""
        self.nodes.deaths.ordered(node, self.clock.now_us())
        return self._leaving.ask(node)

    def restart(self, node: int) -> Evidence:
        """See :meth:`Processes.restart`. The process runs when this returns; it is ready some tenths of a second later.

        A node that was asked to end, and has not yet, is started as soon as it has.
        """
        if node in self._leaving:
            return self._leaving.bring_back(node)
        return self._start(node) if self.nodes.process(node).state() is NodeState.DEAD else {}

    def pause(self, node: int) -> Evidence:
        """See :meth:`Processes.pause`. Evidence: ``state`` ("T") and ``pid``."""
        return self.nodes.process(node).pause()

    def resume(self, node: int) -> Evidence:
        """See :meth:`Processes.resume`. The node finds the cuts and heals that it missed before anything else."""
        if self.nodes.process(node).state() is not NodeState.PAUSED:
            return {}
        told = self.host.update(node)
        evidence = self.nodes.process(node).resume()
        return {**evidence, "links_told": told()}

    def cut(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.cut`. Evidence: what each end holds back, or packets dropped by link."""
        links = self.nodes.single_links(links)
        for link in set(links) - set(self._cuts):
            self._cuts[link] = self.journal.intend("cut", {"link": list(link)})
        return self.host.cut(links, self._listening())

    def heal(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Links.heal`. Evidence: as of :meth:`cut`, counted until now."""
        links = self.nodes.single_links(links)
        evidence = self.host.heal(links, self._listening())
        for link in links:
            if link in self._cuts:
                self.journal.done(self._cuts.pop(link))
        return evidence

    def _start(self, node: int) -> Evidence:
        self.nodes.deaths.look(self.clock.now_us())  # the new process takes the place of one that may have crashed
        self.nodes.start(node)
        for tell in self.after_start:
            tell(node)
        self._tell_cuts(node, self.clock.now_us() + TELL_LIMIT_US)
        return {"state": self.nodes.process(node).state().value}

    def _listening(self) -> tuple[int, ...]:
        return self.nodes.in_state(NodeState.RUNNING, self.nodes.all)

    def _tell_cuts(self, node: int, until_us: int) -> None:
        """A restarted node knows the cuts of the moment of its start; it is told the newest as soon as it listens."""
        told = self.host.update(node)()
        now_us = self.clock.now_us()
        if not told and now_us < until_us and self.nodes.process(node).state() is NodeState.RUNNING:
            self.clock.call_at(now_us + TELL_EVERY_US, lambda: self._tell_cuts(node, until_us))


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
        control.nodes.deaths.ordered(node, control.clock.now_us())
        before = {"log_bytes_before": log_bytes(disk.place)}
        disk.power_off()
        return {**control.kill(node), **before, **disk.power_on()}


class HeldConnections:
    """Implements :class:`nemesis.cluster.Messages` over connections that cannot be looked into: all of a link is held.

    What is under way is sent again by TCP once the link is healed, unless somebody closed the connection meanwhile, so
    dropping is holding too.
    """

    def __init__(self, links: Links) -> None:
        self._links = links

    def hold(self, links: Collection[Link], api: str = "") -> Evidence:  # noqa: ARG002
        """See :meth:`Messages.hold`. Evidence: as of the cut, and ``whole_connection``."""
        evidence = self._links.cut(links)
        return {**evidence, "whole_connection": True} if evidence else {}

    def drop(self, links: Collection[Link], api: str = "") -> Evidence:
        """See :meth:`Messages.drop`. Evidence: as of :meth:`hold`."""
        return self.hold(links, api)

    def release(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Messages.release`. Evidence: as of healing."""
        return self._links.heal(links)


def assemble(
    control: NodeControl,
    preparation: Preparation,
    disks: Disks | None,
    clocks: Clocks | None,
    administration: tuple[Leadership, Reassignment | None],
) -> Target:
    """The target with everything that its host, its machine and its administration offer."""
    nodes, lacks = control.nodes, preparation.lacks
    links = None if Capability.LINKS in lacks else control
    slow_disks = preparation.prepare(
        lambda: SlowDisks(nodes, present(disks), choose_brake(control.journal)), Capability.DISK_SPEED
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
        link_speed=preparation.prepare(lambda: slow_links(control.host, nodes), Capability.LINK_SPEED),
        messages=None if links is None else HeldConnections(links),
        files=None if Capability.FILES in lacks else FileStorage(nodes),
        disk_space=None if disks is None else OwnDisks(nodes, disks),
        disk_speed=slow_disks,
        leadership=administration[0],
        reassignment=administration[1],
        clocks=clocks,
        lacks=lacks,
    )


def connect(address: Address, limit_s: float = PROBE_LIMIT_S) -> str:
    """What a client meets there within ``limit_s`` seconds: ``accepted``, ``refused`` or ``silence``."""
    try:
        socket.create_connection(address, limit_s).close()
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silence"
    return "accepted"

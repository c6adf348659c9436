"""The cluster under attack: faults on real processes and links, with what was seen of them."""

from __future__ import annotations

import socket
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from harness.hosts.contract import Address, Host, NodeState
from harness.hosts.disks import Disks, log_bytes
from harness.hosts.slow_disk import Brake
from harness.records.journal import Journal
from harness.worlds.processes.controlled_shutdown import Leaving
from harness.worlds.processes.leadership import ConfirmedLeadership
from harness.worlds.processes.nodes import Nodes
from harness.worlds.processes.shaping import NO_SHAPING, Shaping
from harness.worlds.processes.storage import DiskStorage, FileStorage
from harness.worlds.processes.view import Viewer
from nemesis.cluster import CONTROLLER, ClusterView, Evidence, Link, Storage
from workloads.client import Clock

#: A refusal on this machine takes microseconds; a dropped packet is taken for one after this.
PROBE_LIMIT_S: Final = 0.1
#: How often a restarted node is told its cuts until it listens, and for how long.
TELL_EVERY_US: Final = 5_000
TELL_LIMIT_US: Final = 30_000_000


class Limits(NamedTuple):
    """What can be done to the cluster of this run: ``disks`` of the brokers' own, and a ``brake`` for them; slow links
    and wrong clocks; kinds of fault that are not to be had here, and why.
    """

    disks: Disks | None = None
    brake: Brake | None = None
    shaping: Shaping = NO_SHAPING
    unavailable: Mapping[str, str] = {}


WITHOUT_LIMITS: Final = Limits()


class ProcessesTarget:
    """Implements :class:`nemesis.cluster.Target`."""

    def __init__(
        self,
        host: Host,
        nodes: Nodes,
        viewer: Viewer,
        journal: Journal,
        clock: Clock,
        *,
        leadership: ConfirmedLeadership,
        limits: Limits = WITHOUT_LIMITS,
    ) -> None:
        self._host = host
        self._nodes = nodes
        self._viewer = viewer
        self._journal = journal
        self._clock = clock
        self._limits = limits
        self._cuts: dict[Link, int] = {}
        self._leaving = Leaving(nodes.process, self._start, clock)
        self._files = FileStorage(nodes) if limits.disks is None else DiskStorage(nodes, limits.disks, limits.brake)
        self.storage: Storage = self._files
        self.leadership: Final = leadership

    def view(self) -> ClusterView:
        """See :meth:`Target.view`."""
        view = self._viewer.view()
        running = tuple(node for node in view.running if node not in self._leaving)
        unavailable = {**self._limits.unavailable, **self._limits.shaping.lacks, **self.leadership.lacks}
        return msgspec.structs.replace(view, running=running, unavailable=unavailable)

    def kill(self, node: int) -> Evidence:
        """See :meth:`Target.kill`. Evidence: ``exit``, ``pid``, and what a client meets there (``connect``)."""
        self._nodes.deaths.ordered(node, self._clock.now_us())
        evidence = self._nodes.process(node).kill()
        return {**evidence, "connect": connect(self._host.address(node))}

    def power_off(self, node: int) -> Evidence:
        """See :meth:`Target.power_off`. Evidence: as of :meth:`kill`, and bytes of log segments before and after.

        Restarting finds the disk mounted again, with what the node had forced to it.
        """
        disks = self._limits.disks
        if disks is None or self._nodes.process(node).state() is NodeState.DEAD:
            return {}
        self._nodes.deaths.ordered(node, self._clock.now_us())
        disk = disks.of(node)
        before = {"log_bytes_before": log_bytes(disk.place)}
        disk.power_off()
        evidence = self._nodes.process(node).kill()
        return {**evidence, **before, **disk.power_on(), "connect": connect(self._host.address(node))}

    def stop(self, node: int) -> Evidence:
        """See :meth:`Target.stop`. Evidence: ``pid`` and ``signal``."""
        self._nodes.deaths.ordered(node, self._clock.now_us())
        return self._leaving.ask(node)

    def restart(self, node: int) -> Evidence:
        """See :meth:`Target.restart`. The process runs when this returns; it is ready some tenths of a second later.

        A node that was asked to end, and has not yet, is started as soon as it has.
        """
        if node in self._leaving:
            return self._leaving.bring_back(node)
        return self._start(node) if self._nodes.process(node).state() is NodeState.DEAD else {}

    def pause(self, node: int) -> Evidence:
        """See :meth:`Target.pause`. Evidence: ``state`` ("T") and ``pid``."""
        return self._nodes.process(node).pause()

    def resume(self, node: int) -> Evidence:
        """See :meth:`Target.resume`. The node finds the cuts and heals that it missed before anything else."""
        if self._nodes.process(node).state() is not NodeState.PAUSED:
            return {}
        told = self._host.update(node)
        evidence = self._nodes.process(node).resume()
        return {**evidence, "links_told": told()}

    def cut(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.cut`. Evidence: what each end holds back, or packets dropped by link."""
        links = self._of_every_controller(links)
        for link in set(links) - set(self._cuts):
            self._cuts[link] = self._journal.intend("cut", {"link": list(link)})
        return self._host.cut(links, self._listening())

    def heal(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.heal`. Evidence: as of :meth:`cut`, counted until now."""
        links = self._of_every_controller(links)
        evidence = self._host.heal(links, self._listening())
        for link in links:
            if link in self._cuts:
                self._journal.done(self._cuts.pop(link))
        return evidence

    def _start(self, node: int) -> Evidence:
        self._nodes.deaths.look(self._clock.now_us())  # the new process takes the place of one that may have crashed
        self._nodes.start(node)
        self._files.started(node)
        self._tell_cuts(node, self._clock.now_us() + TELL_LIMIT_US)
        return {"state": self._nodes.process(node).state().value}

    def slow_links(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.slow_links`."""
        return self._limits.shaping.slow_links(self._of_every_controller(links))

    def restore_link_speed(self, links: Collection[Link]) -> Evidence:
        """See :meth:`Target.restore_link_speed`."""
        return self._limits.shaping.restore_link_speed(self._of_every_controller(links))

    def set_clock(self, node: int, offset_ms: int) -> Evidence:
        """See :meth:`Target.set_clock`."""
        return self._limits.shaping.set_clock(node, offset_ms)

    def _of_every_controller(self, links: Collection[Link]) -> list[Link]:
        """The links between single nodes that are meant: CONTROLLER stands for every controller."""
        these = {CONTROLLER: self._nodes.controllers}
        return sorted(
            Link(source, target)
            for link in set(links)
            for source in these.get(link.source, (link.source,))
            for target in these.get(link.target, (link.target,))
        )

    def _listening(self) -> tuple[int, ...]:
        return self._nodes.in_state(NodeState.RUNNING, self._nodes.all)

    def _tell_cuts(self, node: int, until_us: int) -> None:
        """A restarted node knows the cuts of the moment of its start; it is told the newest as soon as it listens."""
        told = self._host.update(node)()
        now_us = self._clock.now_us()
        if not told and now_us < until_us and self._nodes.process(node).state() is NodeState.RUNNING:
            self._clock.call_at(now_us + TELL_EVERY_US, lambda: self._tell_cuts(node, until_us))


def connect(address: Address, limit_s: float = PROBE_LIMIT_S) -> str:
    """What a client meets there within ``limit_s`` seconds: ``accepted``, ``refused`` or ``silence``."""
    try:
        socket.create_connection(address, limit_s).close()
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silence"
    return "accepted"

"""Makes faults on the nodes' processes and on the links between them, and reports what was seen.

A node that was asked to end may take long, and clients go on meanwhile, so no call here waits for its end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from harness.records.journal import Journal
from harness.worlds.hosts import Address, NodeState
from harness.worlds.real.nodes import Nodes
from harness.worlds.real.view import Viewer
from nemesis.cluster import ClusterView, Link, Links, NodeProcesses
from nemesis.evidence import Killed, LinksCut, ProcessSeen
from workloads import Clock

#: The time that a node may take to end by itself, and the time between looks at it.
SHUTDOWN_LIMIT_US: Final = 30_000_000
LOOK_EVERY_US: Final = 20_000
#: A refusal on this machine takes microseconds; after this time a packet counts as dropped.
PROBE_LIMIT_S: Final = 0.1
#: Pause between tries to send a restarted node its cuts, and the longest time for them.
UPDATE_EVERY_US: Final = 5_000
UPDATE_LIMIT_US: Final = 30_000_000


class AttackedNodes(NodeProcesses, Links):
    """Makes faults on nodes and their links.

    ``probe`` says what a client meets at an address; ``after_start`` are called with every node that is started again.
    """

    def __init__(
        self,
        nodes: Nodes,
        viewer: Viewer,
        journal: Journal,
        clock: Clock,
        probe: Callable[[Address], str],
    ) -> None:
        self.nodes = nodes
        self._probe = probe
        self._viewer = viewer
        self.journal = journal
        self.clock = clock
        self._ending: set[int] = set()
        self._returning: set[int] = set()
        self.after_start: Final[list[Callable[[int], None]]] = []

    def view(self) -> ClusterView:
        """The view of the cluster, in which nodes that were asked to end do not count as running."""
        view = self._viewer.view()
        running = tuple(node for node in view.running if node not in self._ending)
        return msgspec.structs.replace(view, running=running)

    def kill(self, node: int) -> Killed:
        """End the process at once."""
        self.nodes.crashes.ordered(node, self.clock.now_us())
        evidence = self.nodes.process(node).kill()
        return {**evidence, "connect": self._probe(self.nodes.host.address(node))}

    def stop(self, node: int) -> ProcessSeen:
        """Ask the process to end."""
        self.nodes.crashes.ordered(node, self.clock.now_us())
        if node in self._ending or self.nodes.process(node).state() is not NodeState.RUNNING:
            return {}
        self._ending.add(node)
        return self.nodes.process(node).terminate()

    def restart(self, node: int) -> ProcessSeen:
        """Start a dead node again. The process runs when this returns, and is ready some tenths of a second later.

        A node that was asked to end is started now, or as soon as it has ended.
        """
        if node in self._returning:
            return {}
        if node in self._ending:
            self._returning.add(node)
            return self._return(node, self.clock.now_us() + SHUTDOWN_LIMIT_US)
        return self._start(node) if self.nodes.process(node).state() is NodeState.DEAD else {}

    def pause(self, node: int) -> ProcessSeen:
        """Freeze the process."""
        return self.nodes.process(node).pause()

    def resume(self, node: int) -> ProcessSeen:
        """Let a frozen process run. It first reads the cuts and heals that it missed."""
        if self.nodes.process(node).state() is not NodeState.PAUSED:
            return {}
        updated = self.nodes.host.links.update(node)
        evidence = self.nodes.process(node).resume()
        return {**evidence, "links_updated": updated()}

    def cut(self, links: Collection[Link]) -> LinksCut:
        """Cut these links."""
        return self.nodes.host.links.cut(self.nodes.single_links(links), self._listening())

    def heal(self, links: Collection[Link]) -> LinksCut:
        """Heal these links."""
        return self.nodes.host.links.heal(self.nodes.single_links(links), self._listening())

    def _return(self, node: int, until_us: int) -> ProcessSeen:
        """Look until the node has ended, then start it; one that does not end is killed, as operators' tools do."""
        now_us, process = self.clock.now_us(), self.nodes.process(node)
        if now_us > until_us:
            process.kill()
        ended = process.exit()
        if ended is None:

            def again() -> None:
                self._return(node, until_us)

            self.clock.call_at(now_us + LOOK_EVERY_US, again)
            return {"state": "ending"}
        self._ending.discard(node)
        self._returning.discard(node)
        return {"exit": ended, **self._start(node)}

    def _start(self, node: int) -> ProcessSeen:
        self.nodes.crashes.look(self.clock.now_us())  # the old process may have crashed before
        self.nodes.start(node)
        for started in self.after_start:
            started(node)
        self._update_cuts(node, self.clock.now_us() + UPDATE_LIMIT_US)
        return {"state": self.nodes.process(node).state().value}

    def _listening(self) -> tuple[int, ...]:
        return self.nodes.in_state(NodeState.RUNNING, self.nodes.all)

    def _update_cuts(self, node: int, until_us: int) -> None:
        """Send a restarted node the newest cuts as soon as it listens; it knows those of its start only."""
        updated = self.nodes.host.links.update(node)()
        now_us = self.clock.now_us()
        if not updated and now_us < until_us and self.nodes.process(node).state() is NodeState.RUNNING:
            self.clock.call_at(now_us + UPDATE_EVERY_US, lambda: self._update_cuts(node, until_us))


def connect(address: Address, limit_s: float = PROBE_LIMIT_S) -> str:
    """Connect as a client for at most ``limit_s`` seconds: the answer is ``accepted``, ``refused`` or ``silence``."""
    try:
        socket.create_connection(address, limit_s).close()
    except ConnectionRefusedError:
        return "refused"
    except OSError:
        return "silence"
    return "accepted"

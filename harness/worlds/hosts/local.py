"""The hosts on this machine: their common base, and the loopback host, which needs no rights.

On the loopback host every node is a process, with a port that is held for the whole run, also while the node is dead.
A run has an address of its own in 127.0.0.0/8, made from the harness's process id, so that what a dead harness left
running does not reach the nodes of a later run.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from harness.records.journal import Journal
from harness.worlds.hosts import node_calls
from harness.worlds.hosts.contract import Address, Host, Launch, LinkCuts
from harness.worlds.hosts.cut_links import HeldLinks
from harness.worlds.hosts.ports import Ports
from harness.worlds.hosts.processes import LocalProcess, spawn
from harness.worlds.hosts.undo import undo_here

_runs = itertools.count()


def run_token() -> str:
    """A name for this run that no other run on this machine has: process id and nanoseconds since the epoch."""
    return f"{os.getpid()}-{time.time_ns():x}"


class LocalHost(Host):
    """The base of the hosts on this machine, which add addresses; nodes cut their links themselves.

    ``journal`` records what has to be undone.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._token = run_token()
        self._addresses: dict[int, Address] = {}
        self._paths: dict[int, str] = {}
        self._processes: list[LocalProcess] = []
        self.links: LinkCuts = HeldLinks(self._paths)

    @override
    def address(self, node: int) -> Address:
        return self._addresses[node]

    @override
    def control_path(self, node: int) -> str:
        return self._paths[node]

    @override
    def start(self, launch: Launch) -> LocalProcess:
        process = spawn(launch, self._journal, self._token, self._prefix(launch.node))
        self._processes.append(process)
        return process

    def processor_s(self) -> float:
        """The processor's time that the nodes' processes have used; those that have ended count as none."""
        return sum(process.processor_s() for process in self._processes)

    @override
    def ask(self, nodes: Collection[int], request: Mapping[str, Any], limit_s: float) -> dict[int, dict[str, Any]]:
        return node_calls.ask({node: self._paths[node] for node in nodes}, request, limit_s)

    @override
    def close(self) -> None:
        for process in self._processes:
            process.kill()
        undo_here(self._journal)

    def _prefix(self, node: int) -> tuple[str, ...]:  # noqa: ARG002 - a namespace needs to know whose
        """Words before a node's command, where the host has to put it somewhere."""
        return ()

    def _make_control(self, nodes: Collection[int]) -> None:
        """Make a directory with a short name for the sockets, whose paths may have at most 107 bytes."""
        directory = Path(tempfile.gettempdir()) / f"ackproof-{self._token}"
        self._journal.intend("directory", {"path": str(directory)})
        directory.mkdir(mode=0o700)
        self._paths.update({node: str(directory / f"{node}.sock") for node in nodes})


def loopback_address(pid: int, run: int) -> str:
    """The address of the ``run``-th run of the harness with this process id: 22 bits of id, 2 bits of run."""
    bits = ((pid & 0x3FFFFF) << 2) | (run & 0x3)
    # 127.0.0.0 and 127.255.255.255 are not ordinary addresses; both ends of the range are moved off by one.
    bits = min(max(bits, 2), 0xFFFFFE)
    return f"127.{bits >> 16 & 0xFF}.{bits >> 8 & 0xFF}.{bits & 0xFF}"


class LoopbackHost(LocalHost):
    """Nodes as processes on a loopback address."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(journal)
        self._ports = Ports()

    @override
    def open(self, nodes: Collection[int]) -> None:
        self._make_control(nodes)
        host = loopback_address(os.getpid(), next(_runs))
        self._addresses.update({node: self._ports.take(host) for node in sorted(nodes)})

    @override
    def close(self) -> None:
        try:
            super().close()
        finally:
            self._ports.close()

"""What hosts on this machine share: child processes, control sockets, and the end of both."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from harness.hosts import control
from harness.hosts.contract import Address, Launch, NodeProcess
from harness.hosts.links import ControlledLinks
from harness.hosts.processes import LocalProcess, spawn
from harness.hosts.undo import undo_all
from harness.records.journal import Journal
from nemesis.cluster import Capability


def run_token() -> str:
    """A name for this run that no other run on this machine has: process id and nanoseconds since the epoch."""
    return f"{os.getpid()}-{time.time_ns():x}"


class LocalHost:
    """Base of the hosts on this machine; they add addresses and cuts. ``journal`` takes what has to be undone."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._token = run_token()
        self._addresses: dict[int, Address] = {}
        self._paths: dict[int, str] = {}
        self._processes: list[LocalProcess] = []
        self._controlled = ControlledLinks(self._paths)

    def address(self, node: int) -> Address:
        """See :meth:`Host.address`."""
        return self._addresses[node]

    def control_path(self, node: int) -> str:
        """See :meth:`Host.control_path`."""
        return self._paths[node]

    def place(self, node: int, path: Path) -> str:  # noqa: ARG002 - they all live here
        """See :meth:`Host.place`."""
        return str(path)

    def lacks(self) -> Mapping[Capability, str]:
        """See :meth:`Host.lacks`."""
        return {}

    def start(self, launch: Launch) -> NodeProcess:
        """See :meth:`Host.start`."""
        process = spawn(launch, self._journal, self._token, self._prefix(launch.node))
        self._processes.append(process)
        return process

    def ask(self, nodes: Collection[int], request: Mapping[str, Any], limit_s: float) -> dict[int, dict[str, Any]]:
        """See :meth:`Host.ask`."""
        return control.ask({node: self._paths[node] for node in nodes}, request, limit_s)

    def close(self) -> None:
        """See :meth:`Host.close`."""
        for process in self._processes:
            process.kill()
        undo_all(self._journal)

    def _prefix(self, node: int) -> tuple[str, ...]:  # noqa: ARG002 - a namespace needs to know whose
        """Words before a node's command, where the host has to put it somewhere."""
        return ()

    def _make_control(self, nodes: Collection[int]) -> None:
        """A short-named directory for the sockets: a Unix socket's path has at most 107 bytes, run directories more."""
        directory = Path(tempfile.gettempdir()) / f"ackproof-{self._token}"
        self._journal.intend("directory", {"path": str(directory)})
        directory.mkdir(mode=0o700)
        self._paths.update({node: str(directory / f"{node}.sock") for node in nodes})

"""The contract of a host, on which the nodes of a cluster run.

A host gives every node an address and a way to speak to it from outside (its control socket), starts its process, and
cuts the links between nodes. It announces everything that it makes in the run's undo journal first, and removes it in
``close``.

Nothing here assumes that a node lives on this machine: process ids stay behind :class:`NodeProcess`, conversations
behind :meth:`Host.ask`, and all files of a node are under ``Launch.directory`` or named in ``Launch``, so that a host
elsewhere knows what to copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals
from typing import Any, NamedTuple

import msgspec

from harness.ground.errors import HostError
from nemesis.cluster import Capability, Link
from nemesis.evidence import LinksCut, ProcessSeen


class Address(NamedTuple):
    """The name or IPv4 address, and the port, at which a node listens."""

    host: str
    port: int


class NodeState(StrEnum):
    """The state of a process, from its operating system."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"

    @classmethod
    def of(cls, letter: str | None) -> NodeState:
        """The state that a letter of ``/proc/PID/stat`` means, None where there is no such process."""
        if letter is None:
            return cls.DEAD
        return cls.PAUSED if letter in "Tt" else cls.RUNNING


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a node: ``environment`` is added to the host's own; output is appended to ``log``.

    ``directory``, ``log`` and ``files`` are this machine's names; ``command`` holds the names that :meth:`Host.path_on`
    gave. ``files`` are those that must be there before the start: a host elsewhere copies them, over what is there.
    """

    node: int
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: Path
    log: Path
    files: tuple[Path, ...] = ()


class NodeProcess(ABC):
    """The process of one node. Every call takes effect before it returns and is safe to repeat."""

    def state(self) -> NodeState:
        """The state now, read from the operating system."""
        return NodeState.of(self._letter())

    def kill(self) -> ProcessSeen:
        """Send SIGKILL, and wait for the end."""
        return self._signal(SIGKILL, "")

    def pause(self) -> ProcessSeen:
        """Send SIGSTOP, and wait until the process is stopped."""
        return self._signal(SIGSTOP, "[Tt]")

    def resume(self) -> ProcessSeen:
        """Send SIGCONT, and wait until the process runs."""
        return self._signal(SIGCONT, "[!Tt]")

    def terminate(self) -> ProcessSeen:
        """Send SIGTERM, and do not wait."""
        if self.state() is NodeState.DEAD:
            return {}
        return {"pid": self._signal(SIGTERM, "*")["pid"], "signal": SIGTERM.value}

    @abstractmethod
    def exit(self) -> str | None:
        """The end of the process, ``"status 98"`` or ``"signal 9"``; None while it runs."""

    @abstractmethod
    def _letter(self) -> str | None:
        """The letter of its state in ``/proc/PID/stat``, None where it has ended."""

    @abstractmethod
    def _signal(self, signal: Signals, shows: str) -> ProcessSeen:
        """Send a signal and wait, for a limited time, until the state's letter matches ``shows`` or it has ended.

        ``shows`` is a pattern as of :mod:`fnmatch`, and of ``case`` in a shell.
        """


class LinkCuts:
    """The links of a run that are cut. This one has none and cuts none."""

    def cut(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:  # noqa: ARG002
        """Deliver nothing over these links. ``alive`` are the nodes that can be asked to help."""
        return {}

    def heal(self, links: Collection[Link], alive: Collection[int]) -> LinksCut:  # noqa: ARG002
        """Deliver again over these links."""
        return {}

    def enforced_by(self, node: int) -> list[Link]:  # noqa: ARG002
        """The cut links that ``node`` itself has to enforce, so that a restarted one begins with them."""
        return []

    def update(self, node: int) -> Callable[[], bool]:  # noqa: ARG002
        """Tell a node that was not listening (frozen, restarted) which of its links are cut now.

        The request was sent before this returns; the function returned waits for its answer, and is False if none came.
        """
        return lambda: True


class Host(ABC):
    """A place for the nodes of one run, and the ``links`` between them. ``open`` once, ``close`` always."""

    links: LinkCuts

    @abstractmethod
    def open(self, nodes: Collection[int]) -> None:
        """Make what these nodes need: addresses, namespaces.

        Raises:
            HostError: this machine lacks something; the text says what.
            PortError: this machine has no port left for a node.
        """

    @abstractmethod
    def address(self, node: int) -> Address:
        """The address at which ``node`` listens; the same for the whole run."""

    @abstractmethod
    def start(self, launch: Launch) -> NodeProcess:
        """Start a node's process; it returns before the node is ready.

        Raises:
            HostError: the command cannot be started at all.
        """

    @abstractmethod
    def close(self) -> None:
        """Fetch the files that the nodes left, and undo all that this host made, processes too. Idempotent."""

    def path_on(self, node: int, path: Path) -> str:  # noqa: ARG002
        """The path, on the machine of ``node``, of a file of the run or of the release; ``path`` itself on this one.

        Raises:
            HostError: the file is not copied to that machine.
        """
        return str(path)

    def lacks(self) -> Mapping[Capability, str]:
        """The capabilities that the nodes of this host lack, and why; known once it is open."""
        return {}

    def control_path(self, node: int) -> str:
        """The path of the Unix socket on which ``node`` is to answer :meth:`ask`, as the node sees it.

        Raises:
            HostError: nodes of this host have no control socket.
        """
        raise HostError(f'node {node} is on another machine, and only Apache Kafka can run there (world = "kafka")')

    def ask(self, nodes: Collection[int], request: Mapping[str, Any], limit_s: float) -> dict[int, dict[str, Any]]:  # noqa: ARG002
        """Put one request to the control sockets of these nodes at the same time.

        Nodes that did not answer within ``limit_s`` seconds are left out: silence is ordinary while faults are about.
        """
        return {}

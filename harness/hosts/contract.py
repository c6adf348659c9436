"""The contract of a host: the place where the nodes of a cluster live.

A host gives every node an address and a way to speak to it from outside (its control socket), starts its process, and
cuts the links between nodes. Everything that it makes is announced in the run's undo journal first, and gone after
``close``.

Nothing here assumes that a node lives on this machine: process ids stay behind :class:`NodeProcess`, conversations
behind :meth:`Host.ask`, and all files of a node stand under ``Launch.directory`` or are named in ``Launch``, so that a
host elsewhere knows what to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from nemesis.cluster import Capability, Evidence, Link


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
        """The state that a letter of ``/proc/PID/stat`` stands for, None where there is no such process."""
        if letter is None:
            return cls.DEAD
        return cls.PAUSED if letter in "Tt" else cls.RUNNING


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a node: ``environment`` is added to the host's own; output is appended to ``log``.

    ``directory``, ``log`` and ``files`` are this machine's names; ``command`` holds the names that :meth:`Host.place`
    gave. ``files`` are those that must be there before the start: a host elsewhere copies them, over what is there.
    """

    node: int
    command: tuple[str, ...]
    environment: dict[str, str]
    directory: Path
    log: Path
    files: tuple[Path, ...] = ()


class NodeProcess(Protocol):
    """The process of one node. Every call takes effect before it returns and is safe to repeat."""

    def state(self) -> NodeState:
        """Its state now, asked afresh."""

    def exit(self) -> str | None:
        """Its end, ``"status 98"`` or ``"signal 9"``; None while it lives."""

    def kill(self) -> Evidence:
        """SIGKILL, and wait for the end. Evidence: ``exit`` and ``pid``."""

    def pause(self) -> Evidence:
        """SIGSTOP, and wait until it stands still. Evidence: ``state`` ("T") and ``pid``."""

    def resume(self) -> Evidence:
        """SIGCONT. Evidence: ``state`` (not "T") and ``pid``."""

    def terminate(self) -> Evidence:
        """SIGTERM, without waiting for the end. Evidence: ``pid`` and ``signal``; nothing if it has ended."""

    def stop(self, limit_s: float) -> Evidence:
        """SIGTERM, and SIGKILL if it has not ended within ``limit_s``. Evidence: ``exit`` and ``pid``."""


class Host(Protocol):
    """A place for the nodes of one run. ``open`` once, ``close`` always."""

    def open(self, nodes: Collection[int]) -> None:
        """Make what these nodes need: addresses, namespaces.

        Raises:
            HostError: this machine lacks something; the text says what.
            PortError: a given port is taken.
        """

    def address(self, node: int) -> Address:
        """The address at which ``node`` listens; the same for the whole run."""

    def control_path(self, node: int) -> str:
        """The path of the Unix socket on which ``node`` is to answer :meth:`ask`, as the node sees it."""

    def place(self, node: int, path: Path) -> str:
        """The name of a file of the run, or of what is installed, where ``node`` lives; its own name on this machine.

        Raises:
            HostError: the file has no place there.
        """

    def lacks(self) -> Mapping[Capability, str]:
        """The capabilities that the nodes of this host lack, and why; known once it is open."""

    def start(self, launch: Launch) -> NodeProcess:
        """Start a node's process; it returns before the node is ready.

        Raises:
            HostError: the command cannot be started at all.
        """

    def ask(self, nodes: Collection[int], request: Mapping[str, Any], limit_s: float) -> dict[int, dict[str, Any]]:
        """Put one request to the control sockets of these nodes at the same time.

        Nodes that did not answer within ``limit_s`` seconds are left out: silence is ordinary while faults are about.
        """

    def cut(self, links: Collection[Link], alive: Collection[int]) -> Evidence:
        """Deliver nothing over these links. ``alive`` are the nodes that can be asked to help."""

    def heal(self, links: Collection[Link], alive: Collection[int]) -> Evidence:
        """Deliver again over these links."""

    def cuts_at(self, node: int) -> list[Link]:
        """The cut links that ``node`` itself has to enforce, so that a restarted one begins with them."""

    def update(self, node: int) -> Callable[[], bool]:
        """Inform a node that was not listening (frozen, restarted) of its links as they are now.

        The request was sent before this returns; the function returned waits for its answer, and is False if none came.
        """

    def close(self) -> None:
        """Bring home what the nodes left, and undo what this host made and still stands, processes too. Idempotent."""

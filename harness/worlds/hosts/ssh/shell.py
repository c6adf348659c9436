"""The contract of a shell on a machine. One implementation works over SSH, one only shows what it would do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.ground.errors import HostError
from harness.plan import Machine
from harness.worlds.hosts.ssh import commands


class ShellAnswer(NamedTuple):
    """The end of a command: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The last 300 letters of its error output, on one line."""
        return " ".join((self.err or self.out).split())[-300:]


class Shell(ABC):
    """A shell on ``machine``. Every call has a limit and raises a HostError if the machine is not reached within it."""

    def __init__(self, machine: Machine) -> None:
        self.machine: Final = machine

    @abstractmethod
    def run(self, words: Sequence[str], text: str = "") -> ShellAnswer:
        """Run a command to its end, with ``text`` on its standard input."""

    @abstractmethod
    def read(self, path: str) -> str | None:
        """The text of a small file (such as those in ``/proc``), None if it does not exist."""

    @abstractmethod
    def push(self, source: Path, target: str) -> None:
        """Copy a file of this machine to the other, over an existing one."""

    @abstractmethod
    def push_missing(self, source: Path, target: str) -> None:
        """Copy the files of a directory that are missing on the other machine or have another size there."""

    @abstractmethod
    def fetch(self, source: str, names: Sequence[str], target: Path) -> None:
        """Copy the directories ``names`` below ``source`` into ``target`` on this machine, over existing files."""

    @abstractmethod
    def follow(self, source: str, target: Path) -> None:
        """Append the growth of a file to ``target``, until :meth:`close`."""

    def unfollow(self) -> None:  # noqa: B027 - a shell that follows no file has nothing to do
        """Stop following files. Idempotent."""

    def close(self) -> None:  # noqa: B027 - likewise
        """Close the connection. Idempotent."""


Connect = Callable[[Machine], Shell]


def must(shell: Shell, words: Sequence[str], text: str = "") -> str:
    """The output of a command that has to succeed.

    Raises:
        HostError: it failed; the text quotes the machine, the command and its complaint.
    """
    answer = shell.run(words, text)
    if answer.status != 0:
        raise HostError(
            f'{shell.machine.name}: "{shown(words)}" ended with status {answer.status} '
            f"({answer.complaint or 'it gave no reason'}); correct this on the machine"
        )
    return answer.out


def shown(words: Sequence[str]) -> str:
    """A command for people to read, on one line that is cut after 200 letters."""
    text = " ".join(commands.line(words).split())
    return text if len(text) <= 200 else f"{text[:200]}..."

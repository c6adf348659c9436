"""The contract of a shell on a machine. One implementation speaks over SSH, one only shows what it would do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from harness.errors import HostError
from harness.hosts.ssh import commands
from harness.plan import Machine


class Answer(NamedTuple):
    """The end of a command: its exit status and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The end of what it wrote about a failure, on one line."""
        return " ".join((self.err or self.out).split())[-300:]


class Shell(ABC):
    """A shell on ``machine``. Every call has a limit and raises a HostError if the machine is not reached within it."""

    def __init__(self, machine: Machine) -> None:
        self.machine: Final = machine

    @abstractmethod
    def run(self, words: Sequence[str], text: str = "") -> Answer:
        """Run a command to its end, with ``text`` on its standard input."""

    @abstractmethod
    def read(self, path: str) -> str | None:
        """A small file's text (of ``/proc``, for one), None if there is none."""

    @abstractmethod
    def push(self, source: Path, target: str) -> None:
        """Copy a file of this machine there, over what is there."""

    @abstractmethod
    def push_missing(self, source: Path, target: str) -> None:
        """Copy the files of a directory there which are not there in the same size."""

    @abstractmethod
    def fetch(self, source: str, names: Sequence[str], target: Path) -> None:
        """Copy the directories ``names`` below ``source`` into ``target`` on this machine, over what is there."""

    @abstractmethod
    def follow(self, source: str, target: Path) -> None:
        """Copy what a growing file gains to ``target``, again and again until :meth:`close`."""

    def unfollow(self) -> None:  # noqa: B027 - one that follows none has nothing to do
        """Follow no file any more. Idempotent."""

    def close(self) -> None:  # noqa: B027 - likewise
        """Hang up. Idempotent."""


Connect = Callable[[Machine], Shell]


def must(shell: Shell, words: Sequence[str], text: str = "") -> str:
    """Run a command that has to succeed, and answer what it prints.

    Raises:
        HostError: it did not; the text quotes the machine, the command and its complaint.
    """
    answer = shell.run(words, text)
    if answer.status != 0:
        raise HostError(
            f'{shell.machine.name}: "{shown(words)}" ended with status {answer.status} '
            f"({answer.complaint or 'no word of why'}); see to it there"
        )
    return answer.out


def shown(words: Sequence[str]) -> str:
    """A command for people: on one line of at most some hundred letters."""
    text = " ".join(commands.line(words).split())
    return text if len(text) <= 200 else f"{text[:200]}..."

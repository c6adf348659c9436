"""The process of a node on another machine: its state, its signals, its end."""

from __future__ import annotations

import time
from signal import Signals
from typing import Final, NamedTuple

from harness.hosts.contract import NodeProcess
from harness.hosts.ssh import commands
from harness.hosts.ssh.shell import Shell, must
from nemesis.cluster import Evidence

#: After the death of a node, for the shell around it to write down how it ended.
RECORD_LIMIT_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.02
#: What a shell says of a program that signal N ended: 128 + N. Java answers SIGTERM by ending with this very status.
_SIGNALLED: Final = 128
_TERMINATED: Final = 143
_SIGNAL_MAX: Final = 64


class Identity(NamedTuple):
    """The identity of a process, as its machine wrote it: id, start in clock ticks since boot, the boot's id."""

    pid: str
    ticks: str
    boot: str


class RemoteProcess(NodeProcess):
    """A node's process, which lives on when the connection ends.

    ``script`` is where :data:`commands.SCRIPT` stands there, ``record`` where the shell around it writes how it ended.
    """

    def __init__(self, shell: Shell, script: str, record: str, identity: Identity) -> None:
        self._shell = shell
        self._script = script
        self._record = record
        self._identity = identity
        self._exit: str | None = None

    @property
    def pid(self) -> int | str:
        """Its id on its machine."""
        pid = self._identity.pid
        return int(pid) if pid.isdigit() else pid

    def exit(self) -> str | None:
        """See :meth:`NodeProcess.exit`. A shell around it that was ended too leaves "unseen"."""
        if self._exit is None and self._letter() is None:
            self._exit = self._recorded()
        return self._exit

    def _letter(self) -> str | None:
        if self._exit is not None:
            return None
        stat = self._shell.read(f"/proc/{self._identity.pid}/stat")
        # The command's name stands in brackets and may hold anything, so fields are counted from its end.
        fields = stat.rpartition(")")[2].split() if stat else []
        if len(fields) < 20 or fields[19] != self._identity.ticks or fields[0] in "ZX":
            return None
        return fields[0]

    def _signal(self, signal: Signals, shows: str) -> Evidence:
        if self._exit is None:
            name = signal.name.removeprefix("SIG")
            letter = must(self._shell, commands.signal(self._script, self._identity, name, shows)).strip()
            if letter:
                return {"pid": self.pid, "state": letter}
        return {"exit": self.exit(), "pid": self.pid}

    def _recorded(self) -> str:
        deadline = time.monotonic() + RECORD_LIMIT_S
        while not (text := (self._shell.read(f"{self._record}.ended") or "").strip()).isdigit():
            if time.monotonic() > deadline:
                return "unseen"
            time.sleep(_LOOK_EVERY_S)
        return ended_with(int(text))


def ended_with(status: int) -> str:
    """The end of a process, ``"signal 9"`` or ``"status 1"``, from the status that a shell gives it."""
    signalled = _SIGNALLED < status <= _SIGNALLED + _SIGNAL_MAX and status != _TERMINATED
    return f"signal {status - _SIGNALLED}" if signalled else f"status {status}"

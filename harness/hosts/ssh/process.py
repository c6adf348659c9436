"""The process of a node on another machine: its state, its signals, its end."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from harness.hosts.contract import NodeState
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


class RemoteProcess:
    """A node's process, which lives on when the connection ends. Implements :class:`NodeProcess`.

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

    def state(self) -> NodeState:
        """See :meth:`NodeProcess.state`."""
        return NodeState.of(self._letter())

    def exit(self) -> str | None:
        """See :meth:`NodeProcess.exit`. A shell around it that was ended too leaves "unseen"."""
        if self._exit is None and self._letter() is None:
            self._exit = self._recorded()
        return self._exit

    def kill(self) -> Evidence:
        """See :meth:`NodeProcess.kill`."""
        return self._signalled("KILL", "")

    def pause(self) -> Evidence:
        """See :meth:`NodeProcess.pause`."""
        return self._signalled("STOP", "[Tt]")

    def resume(self) -> Evidence:
        """See :meth:`NodeProcess.resume`."""
        return self._signalled("CONT", "[!Tt]")

    def terminate(self) -> Evidence:
        """See :meth:`NodeProcess.terminate`."""
        if self._exit is not None or self.state() is NodeState.DEAD:
            return {}
        self._signalled("TERM", "*")
        return {"pid": self.pid, "signal": 15}

    def stop(self, limit_s: float) -> Evidence:
        """See :meth:`NodeProcess.stop`."""
        self._signalled("TERM", "*")
        deadline = time.monotonic() + limit_s
        while self.exit() is None:
            if time.monotonic() > deadline:
                return self.kill()
            time.sleep(_LOOK_EVERY_S)
        return {"exit": self._exit, "pid": self.pid}

    def _letter(self) -> str | None:
        if self._exit is not None:
            return None
        stat = self._shell.read(f"/proc/{self._identity.pid}/stat")
        # The command's name stands in brackets and may hold anything, so fields are counted from its end.
        fields = stat.rpartition(")")[2].split() if stat else []
        if len(fields) < 20 or fields[19] != self._identity.ticks or fields[0] in "ZX":
            return None
        return fields[0]

    def _signalled(self, name: str, shows: str) -> Evidence:
        if self._exit is None:
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

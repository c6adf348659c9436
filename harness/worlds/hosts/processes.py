"""Starts, signals and identifies processes on this machine, and runs commands to their end.

A process is identified by its id *and* its start time, both from ``/proc``, so that no signal goes to another process
to which the kernel has given the same id. Start times are counted in clock ticks since boot, so the boot's id is kept
with them.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, Signals
from typing import Any, Final

import msgspec
from typing_extensions import override

from harness.ground.errors import HostError
from harness.records.journal import Journal
from harness.worlds.hosts.contract import Launch, NodeProcess
from nemesis.evidence import ProcessSeen
from workloads import reason_of

#: Marks every process of a run in its environment, which its children inherit; found by heal where no id was written.
TOKEN_VARIABLE: Final = "ACKPROOF_RUN_TOKEN"  # noqa: S105 - a name, not a secret
#: Longest time until a signal shows. Milliseconds are usual; a process in a disk wait ends when the disk answers.
SIGNAL_LIMIT_S: Final = 5.0
_POLL_S: Final = 0.001
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
#: Every name that the harness gives to a namespace, a network link, a disk image, a control group or a directory begins
#: so; nothing of another name is ever removed.
NAME_PREFIX: Final = "ackp"
#: The limit of a command that sets something up: `mkfs` takes a second or two, `ip` and `nft` milliseconds.
COMMAND_LIMIT_S: Final = 20.0


def attempt(
    command: Sequence[str], text: str | None = None, *, limit_s: float = COMMAND_LIMIT_S, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of fixed words and the harness's own names, with ``text`` on its standard input, to its end.

    ``more`` are arguments of :func:`subprocess.run`.

    Raises:
        OSError: there is no such command.
        subprocess.TimeoutExpired: it did not end within ``limit_s``.
    """
    return subprocess.run(  # noqa: S603 - see above
        command, input=text, check=False, capture_output=True, text=True, timeout=limit_s, **more
    )


def run(command: Sequence[str], text: str | None = None, *, failure: str, **more: Any) -> str:
    """The output of a command that has to succeed; otherwise as :func:`attempt`.

    Raises:
        HostError: it failed; the text is ``failure``, the command and its complaint.
    """
    words = f'{failure}: "{" ".join(command)}"'
    try:
        done = attempt(command, text, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostError(f"{words} did not work ({reason_of(error)})") from error
    if done.returncode != 0:
        raise HostError(f"{words} failed ({done.stderr.strip()})")
    return done.stdout


class ProcessStat(msgspec.Struct, frozen=True):
    """Fields of ``/proc/PID/stat``: the state's letter, the start in clock ticks since boot, the processor's time."""

    state: str
    start_ticks: int
    used_ticks: int


class Identity(msgspec.Struct, frozen=True):
    """The identity of a process, also after its id was given to another."""

    pid: int
    start_ticks: int
    boot_id: str

    def is_alive(self) -> bool:
        """True while this very process exists and is more than a zombie."""
        stat = read_stat(self.pid)
        same = stat is not None and stat.start_ticks == self.start_ticks and boot_id() == self.boot_id
        return same and stat is not None and stat.state not in "ZX"


def boot_id() -> str:
    """The kernel's name for this boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read_stat(pid: int) -> ProcessStat | None:
    """The state, the start and the processor's time of a process, or None if no process has this id."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name is in brackets and may hold anything, so fields are counted from its end.
    fields = content[content.rindex(")") + 2 :].split()
    return ProcessStat(state=fields[0], start_ticks=int(fields[19]), used_ticks=int(fields[11]) + int(fields[12]))


def identify(pid: int) -> Identity | None:
    """The identity of a process that runs now."""
    stat = read_stat(pid)
    return None if stat is None else Identity(pid, stat.start_ticks, boot_id())


def marked_with(token: str) -> Iterator[Identity]:
    """Every process of this user whose environment carries this run's token."""
    mark = f"{TOKEN_VARIABLE}={token}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment.split(b"\0") and (identity := identify(int(entry.name))):
            yield identity


def end(identity: Identity) -> bool:
    """Kill exactly this process and wait for its end; True if it was alive."""
    if not identity.is_alive():
        return False
    try:
        os.kill(identity.pid, SIGKILL)
    except ProcessLookupError:
        return False
    _wait(lambda: not identity.is_alive())
    return True


class LocalProcess(NodeProcess):
    """A node's process on this machine; the harness is its parent. ``entry`` is its entry in the journal."""

    def __init__(self, child: subprocess.Popen[bytes], journal: Journal, entry: int) -> None:
        self._child = child
        self._journal = journal
        self._entries = {"process": entry}

    @property
    def pid(self) -> int:
        """The process id, valid until the process was waited for."""
        return self._child.pid

    @override
    def exit(self) -> str | None:
        status = self._child.poll()
        if status is None:
            return None
        return f"signal {-status}" if status < 0 else f"status {status}"

    def processor_s(self) -> float:
        """The processor's time that it has used; none once it has ended."""
        stat = self._stat()
        return stat.used_ticks / _TICKS_PER_S if stat is not None else 0

    def _letter(self) -> str | None:
        stat = self._stat()
        return stat.state if stat is not None else None

    def _stat(self) -> ProcessStat | None:
        return read_stat(self.pid) if self._child.poll() is None else None

    def _signal(self, signal: Signals, shows: str) -> ProcessSeen:
        if signal == SIGSTOP and "frozen" not in self._entries and (who := identify(self.pid)) is not None:
            self._entries["frozen"] = self._journal.intend("frozen", msgspec.structs.asdict(who))
        self._child.send_signal(signal)
        _wait(lambda: (letter := self._letter()) is None or fnmatchcase(letter, shows))
        letter = self._letter()
        if signal == SIGCONT or letter is None:
            self._undone("frozen")
        if letter is not None:
            return {"pid": self.pid, "state": letter}
        self._undone("process")
        return {"exit": self.exit(), "pid": self.pid}

    def _undone(self, kind: str) -> None:
        if kind in self._entries:
            self._journal.done(self._entries.pop(kind))


def spawn(launch: Launch, journal: Journal, token: str, prefix: tuple[str, ...] = ()) -> LocalProcess:
    """Start a node as a child in a session of its own, so that a Ctrl-C at the harness's terminal does not reach it.

    Raises:
        HostError: the command does not exist or may not be executed.
    """
    command = [*prefix, *launch.command]
    entry = journal.intend("process", {"token": token, "node": launch.node, "command": command})
    environment = os.environ | launch.environment | {TOKEN_VARIABLE: token}
    try:
        with launch.log.open("ab") as log:
            child = subprocess.Popen(  # noqa: S603 - the command is the world's own
                command,
                env=environment,
                cwd=launch.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        journal.done(entry)
        raise HostError(f"node {launch.node} cannot be started with {command[0]}: {reason_of(error)}") from error
    if (who := identify(child.pid)) is not None:
        journal.amend(entry, msgspec.structs.asdict(who))
    return LocalProcess(child, journal, entry)


def _wait(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, at most SIGNAL_LIMIT_S; callers check the result."""
    limit = time.monotonic() + SIGNAL_LIMIT_S
    while not condition() and time.monotonic() < limit:
        time.sleep(_POLL_S)

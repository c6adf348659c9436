"""The host "ssh" runs every node on a machine of its own, which it reaches over SSH.

::

    <directory>/kafka/4.3.1/libs/      the release, copied once, kept for the next run
    <directory>/runs/ackproof-<token>/ one run, brought home and removed at its end
        machine.sh                     starts and signals processes
        data/, logs/                   as in the run's directory here
        <node>.pid, <node>.ended       the id and the end of the node's process

A machine carries one run at a time. Links are cut with nftables by the nodes' addresses and broker ports, in a table of
the run's own; the SSH port is in no rule.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import Any, Final, NamedTuple

import msgspec
from typing_extensions import override

from harness.ground.errors import HostError
from harness.plan import Machine
from harness.records.journal import Journal
from harness.worlds.hosts.contract import Address, Host, Launch, NodeProcess
from harness.worlds.hosts.cut_links import DroppedLinks
from harness.worlds.hosts.local import run_token
from harness.worlds.hosts.ssh import commands, undo
from harness.worlds.hosts.ssh.connecting import over_ssh
from harness.worlds.hosts.ssh.shell import Connect, Shell, must
from nemesis.cluster import CLIENTS, Capability
from nemesis.evidence import ProcessSeen

JAVA_MIN: Final = 17
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
#: The time that the shell around a dead node has to write down how the node ended.
RECORD_LIMIT_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.02
#: A shell gives a program that signal N ended the status 128 + N. Java itself ends with 143 on SIGTERM.
_SIGNALLED: Final = 128
_TERMINATED: Final = 143
_SIGNAL_MAX: Final = 64


class LocalFiles(NamedTuple):
    """The paths, on this machine, of files that the other machines need.

    ``run`` is the run's directory, ``release`` the directory of the release that the nodes run (its ``libs`` are
    copied), and ``java`` this machine's Java; every other machine uses its own.
    """

    run: Path
    release: Path
    java: Path


class SshHost(Host):
    """Runs nodes on ``machines``. ``connect`` gives the shell on one of them."""

    def __init__(
        self,
        machines: Collection[Machine],
        journal: Journal,
        local_files: LocalFiles,
        connect: Connect = over_ssh,
    ) -> None:
        self._machines = {machine.node: machine for machine in machines}
        self._journal = journal
        self._local_files = local_files
        self._connect = connect
        self._name = f"{undo.PREFIX}-{run_token()}"
        self._table = self._name.replace("-", "_")
        self._shells: dict[int, Shell] = {}
        self._ips: dict[int, str] = {}
        self._harness: dict[int, str] = {}
        self._boots: dict[int, str] = {}
        self._no_rules: dict[int, str] = {}
        self._entries: dict[int, int] = {}
        self._followed: set[int] = set()
        self._filtered: set[int] = set()
        self.links = DroppedLinks(
            self._machines,
            lambda node: {**self._ips, CLIENTS: self._harness[node]},
            self._nft,
            ports={machine.node: machine.broker_port for machine in machines},
            table=self._table,
        )

    def open(self, nodes: Collection[int]) -> None:
        """Prepare the machines. The first run of a release copies it to each of them, about 60 MB.

        Raises:
            HostError: a machine cannot be reached, has an unexpected host key, lacks Java, or carries another run.
        """
        for node in sorted(nodes):
            self._shells[node] = self._connect(self._machine(node))
            self._learn(node)
        for node in sorted(nodes):
            self._prepare(node)

    @override
    def address(self, node: int) -> Address:
        return Address(self._ips[node], self._machine(node).broker_port)

    @override
    def path_on(self, node: int, path: Path) -> str:
        machine = self._machine(node)
        if path == self._local_files.java:
            return machine.java
        for here, remote in (
            (self._local_files.run, self._directory(node)),
            (self._local_files.release, self._installed(node)),
        ):
            if path.is_relative_to(here):
                return "/".join((remote, *path.relative_to(here).parts))
        raise HostError(f"{path} is not copied to {machine.name}; only files of the run and of the release are")

    @override
    def lacks(self) -> Mapping[Capability, str]:
        return {Capability.LINKS: next(iter(self._no_rules.values()))} if self._no_rules else {}

    @override
    def start(self, launch: Launch) -> NodeProcess:
        node, shell = launch.node, self._shells[launch.node]
        targets = {file: self.path_on(node, file) for file in launch.files}
        directory, log = self.path_on(node, launch.directory), self.path_on(node, launch.log)
        parents = {path.rpartition("/")[0] for path in (*targets.values(), log)}
        must(shell, commands.make_directories(*sorted({directory, *parents})))
        for file, target in targets.items():
            shell.push(file, target)
        token, record = f"{self._name}/{node}", f"{self._directory(node)}/{node}"
        before = self._entries.get(node)
        self._entries[node] = entry = self._intend(node, "ssh-process", {"token": token})
        if before is not None:  # that process is dead, and any rest of it has the same token
            self._journal.done(before)
        words = commands.start(self._script(node), (directory, log, record), token, launch.environment, launch.command)
        pid, ticks = must(shell, words).split()
        identity = RemoteIdentity(pid, ticks, self._boots[node])
        self._journal.amend(entry, identity._asdict())
        if node not in self._followed:  # a node that is started again goes on with its log
            shell.follow(log, launch.log)
            self._followed.add(node)
        return RemoteProcess(shell, self._script(node), record, identity)

    def close(self) -> None:
        """Undo the run on every machine. What cannot be undone now stays in the journal, for heal."""
        for shell in self._shells.values():
            shell.unfollow()
        with contextlib.suppress(HostError):  # the rest is tried once more below, over new connections
            undo.undo_machines(self._journal, lambda machine: self._shells[machine.node])
        for shell in self._shells.values():
            shell.close()
        undo.undo_machines(self._journal)

    def _learn(self, node: int) -> None:
        """Read the machine's addresses and boot, and check that it can run a node. Changes nothing there."""
        shell = self._shells[node]
        seen = must(shell, commands.harness_address()).split()
        self._harness[node], here = _over_ipv4(seen[0], shell.machine), seen[2]
        self._ips[node] = shell.machine.address if _is_ipv4(shell.machine.address) else here
        self._boots[node] = (shell.read(BOOT_ID) or "").strip()
        _check_java(shell)
        rules = shell.run(commands.nft(shell.machine, "list", "tables", "ip"))
        if rules.status != 0:
            self._no_rules[node] = (
                f"links cannot be cut on {shell.machine.name} ({rules.complaint}); let its user run nft, as root or by "
                "sudo"
            )

    def _prepare(self, node: int) -> None:
        """Make the run's directory, and copy the files of the release that are missing."""
        shell = self._shells[node]
        self._require_alone(shell)
        whole = shell.machine.directory
        if shell.run(commands.is_own(whole)).status != 0:  # its owner could replace the files that the nodes execute
            raise HostError(f"{whole} on {shell.machine.name} is another user's; name another directory in the plan")
        directory, libs = self._directory(node), f"{self._installed(node)}/libs"
        self._intend(node, "ssh-directory", {"path": directory})
        must(shell, commands.make_directories(*(f"{directory}/{name}" for name in undo.KEPT), libs))
        # Two runs may both have looked before they made their directories; now at least one of them sees the other.
        self._require_alone(shell)
        shell.push(commands.SCRIPT, self._script(node))
        shell.push_missing(self._local_files.release / "libs", libs)

    def _require_alone(self, shell: Shell) -> None:
        others = [name for name in undo.run_names(shell) if name != self._name]
        if others:
            raise HostError(
                f"{shell.machine.name} carries another run ({others[0]} in {undo.runs_directory(shell.machine)}); wait "
                "until it ends, or end it: give `ackproof heal` its results"
            )

    def _nft(self, node: int, words: Sequence[str], text: str = "") -> str:
        if node not in self._filtered:  # the first request makes the table
            self._intend(node, "ssh-rules", {"table": self._table})
            self._filtered.add(node)
        return must(self._shells[node], commands.nft(self._machine(node), *words), text)

    def _intend(self, node: int, kind: str, facts: dict[str, Any]) -> int:
        return self._journal.intend(kind, {"machine": msgspec.to_builtins(self._machine(node)), "node": node, **facts})

    def _machine(self, node: int) -> Machine:
        if node not in self._machines:
            raise HostError(f"the plan's inventory has no machine for node {node}")
        return self._machines[node]

    def _directory(self, node: int) -> str:
        return f"{undo.runs_directory(self._machine(node))}/{self._name}"

    def _installed(self, node: int) -> str:
        return f"{self._machine(node).directory}/kafka/{self._local_files.release.name}"

    def _script(self, node: int) -> str:
        return f"{self._directory(node)}/{commands.SCRIPT.name}"


def _check_java(shell: Shell) -> None:
    answer, machine = shell.run(commands.java_version(shell.machine)), shell.machine
    version = re.search(r'version "(\d+)', answer.out + answer.err)
    if answer.status != 0 or version is None:
        raise HostError(
            f'{machine.name} has no Java at "{machine.java}" ({answer.complaint}); install openjdk-17-jre-headless '
            "there, or name its Java in the plan (java = ...)"
        )
    if int(version[1]) < JAVA_MIN:
        raise HostError(
            f"{machine.name} has Java {version[1]}, and {JAVA_MIN} or later is needed; name another (java = ...)"
        )


def _is_ipv4(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 4
    except ValueError:
        return False


def _over_ipv4(address: str, machine: Machine) -> str:
    if ":" in address:
        raise HostError(
            f"{machine.name} is reached over {address}, and links can only be cut between IPv4 addresses; name its "
            "IPv4 address in the plan"
        )
    return address


class RemoteIdentity(NamedTuple):
    """The identity of a process, as its machine wrote it: its id, its start in ticks since boot, the boot's id."""

    pid: str
    ticks: str
    boot: str


class RemoteProcess(NodeProcess):
    """A node's process on a machine, which goes on when the connection ends.

    ``script`` is the path of :data:`commands.SCRIPT` there. Beside ``record`` the shell around the process writes how
    it ended.
    """

    def __init__(self, shell: Shell, script: str, record: str, identity: RemoteIdentity) -> None:
        self._shell = shell
        self._script = script
        self._record = record
        self._identity = identity
        self._exit: str | None = None

    @property
    def pid(self) -> int | str:
        """The process id on its machine."""
        pid = self._identity.pid
        return int(pid) if pid.isdigit() else pid

    def exit(self) -> str | None:
        """The end of the process; "unseen" if the shell around it was ended too."""
        if self._exit is None and self._letter() is None:
            self._exit = self._recorded()
        return self._exit

    def _letter(self) -> str | None:
        if self._exit is not None:
            return None
        stat = self._shell.read(f"/proc/{self._identity.pid}/stat")
        # The command's name is in brackets and may hold anything, so fields are counted from its end.
        fields = stat.rpartition(")")[2].split() if stat else []
        if len(fields) < 20 or fields[19] != self._identity.ticks or fields[0] in "ZX":
            return None
        return fields[0]

    def _signal(self, signal: Signals, shows: str) -> ProcessSeen:
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

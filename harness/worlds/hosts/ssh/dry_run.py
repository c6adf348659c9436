"""A shell that opens no connection: it shows every step, and answers as a machine on which all goes well."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from typing_extensions import override

from harness.plan import Machine
from harness.worlds.hosts.ssh import commands
from harness.worlds.hosts.ssh.shell import Shell, ShellAnswer

#: Takes one line of what a dry run shows.
Show = Callable[[str], None]
#: Explains the words that a dry run shows in place of answers that only the machine can give.
PLACEHOLDERS: Final = (
    "HARNESS is this machine's address as the other machine sees it; PID, TICKS and BOOT are the id, the start and the "
    "boot of a node's process. A real run has another name (ackproof-...) and another directory here. Read machine.sh "
    f"in {commands.SCRIPT}. The harness also reads the states of processes (/proc/PID/stat, *.ended) and their logs by "
    "SFTP all the time."
)
_STATES: Final = {"KILL": "", "TERM": "", "STOP": "T", "CONT": "S"}


class DryShell(Shell):
    """Gives every line that it would run to ``show``."""

    def __init__(self, machine: Machine, show: Show) -> None:
        super().__init__(machine)
        self._show = show
        self._state = ""
        self._directories: list[PurePosixPath] = []
        self._tables: list[str] = []

    @override
    def run(self, words: Sequence[str], text: str = "") -> ShellAnswer:
        self._show_here(f"$ {commands.line(words)}")
        if text:
            self._show(textwrap.indent(text.rstrip("\n"), "    < "))
            self._tables = [text.split()[2]]
        return ShellAnswer(0, self._imagined(tuple(words)), "")

    @override
    def read(self, path: str) -> str | None:
        if path == "/proc/sys/kernel/random/boot_id":
            return "BOOT\n"
        if path.endswith(".ended"):
            return "137\n"
        return f"1 (java) {self._state} {'0 ' * 18}TICKS" if self._state else None

    @override
    def push(self, source: Path, target: str) -> None:
        self._show_here(f"copy {source.name} ({source.stat().st_size} bytes) to {target}")

    @override
    def push_missing(self, source: Path, target: str) -> None:
        sizes = [path.stat().st_size for path in source.iterdir() if path.is_file()]
        self._show_here(
            f"copy to {target} each of the {len(sizes)} files in {source} ({sum(sizes) / 1e6:.0f} MB) that is missing "
            "there or has another size there"
        )

    @override
    def fetch(self, source: str, names: Sequence[str], target: Path) -> None:
        self._show_here(f"$ {commands.line(commands.pack(source, names))}")
        self._show(f"    unpacked in {target}")

    @override
    def follow(self, source: str, target: Path) -> None:
        self._show_here(f"follow {source} in {target}")

    def _show_here(self, what: str) -> None:
        self._show(f"{self.machine.name}: {what}")

    def _imagined(self, words: tuple[str, ...]) -> str:
        """The output of a command on a machine on which all goes well."""
        if words == commands.harness_address():
            return f"HARNESS 0 {self.machine.address} {self.machine.port}\n"
        if words == commands.java_version(self.machine):
            return 'openjdk version "17"\n'
        if words[0] in {"env", "sh"}:
            return self._process(words)
        if words[0] in {"mkdir", "ls"}:
            return self._names(words)
        if words == commands.nft(self.machine, "list", "tables", "ip"):
            return "\n".join(self._tables)
        return '{"nftables": []}' if "--json" in words else ""

    def _process(self, words: tuple[str, ...]) -> str:
        """The output of ``machine.sh``."""
        if "signal" in words[:3]:
            self._state = _STATES[words[6]]
            return self._state
        self._state = "S" if words[0] == "env" else ""
        return "PID TICKS\n" if self._state else ""

    def _names(self, words: tuple[str, ...]) -> str:
        """The output of ``mkdir`` and ``ls``; remembers the directories that were made."""
        directory = PurePosixPath(words[-1])
        if words[0] == "mkdir":
            self._directories += map(PurePosixPath, words[words.index("--") + 1 :])
            return ""
        below = [path.relative_to(directory) for path in self._directories if directory in path.parents]
        return "\n".join({path.parts[0] for path in below})

"""Every command that is ever given to a machine, as words. They are quoted in one place, :func:`line`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.hosts.processes import TOKEN_VARIABLE
from harness.plan import Machine

Words = tuple[str, ...]

#: What runs on the machines; it is copied to a run's directory there.
SCRIPT: Final = Path(__file__).with_name("machine.sh")
#: Looks, 20 ms each, that a machine takes for a signal to show: five seconds, as on this machine.
LOOKS: Final = 250
#: As long, where one look takes its time.
END_LIMIT_S: Final = 5

#: Environments are lists that end in NUL. Those of other users' processes cannot be read, and ended ones have none.
#: On a full machine one look through all of them may take seconds, so what is limited is the time (since the boot).
_END: Final = (
    'now() { read -r up _ </proc/uptime; up=${up%.*}; }; now; limit=$((up + $2)) printed=""; '
    'while pids=$(grep -lszxF -e "$1" /proc/[0-9]*/environ | tr -dc "0-9\\n"); [ -n "$pids" ]; do '
    '[ -n "$printed" ] || echo "$pids"; printed=1; now; [ "$up" -le "$limit" ] || exit 1; '
    "kill -s KILL $pids 2>/dev/null; sleep 0.02; done"
)


def line(words: Sequence[str]) -> str:
    """One line for the machine's shell, in which every word is quoted that needs it."""
    return shlex.join(words)


def harness_address() -> Words:
    """Prints the harness's address and port, then the machine's, as the machine sees this connection."""
    return ("printenv", "SSH_CONNECTION")


def java_version(machine: Machine) -> Words:
    """Prints Java's version (on standard error)."""
    return (machine.java, "-version")


def make_directories(*paths: str) -> Words:
    """Makes directories, private ones; what is missing above them too, with the user's usual rights."""
    return ("mkdir", "-p", "-m", "700", "--", *paths)


def is_own(path: str) -> Words:
    """Succeeds where the user owns this directory."""
    return ("test", "-O", path)


def list_directory(path: str) -> Words:
    """Prints the names in a directory, one a line."""
    return ("ls", "-1", "--", path)


def remove_tree(path: str) -> Words:
    """Removes a run's directory."""
    return ("rm", "-rf", "--", path)


def pack(directory: str, names: Sequence[str]) -> Words:
    """Writes these directories below ``directory`` to standard output, as a compressed archive."""
    return ("tar", "-C", directory, "-czf", "-", "--", *names)


def start(
    script: str, places: tuple[str, str, str], token: str, environment: Mapping[str, str], command: Sequence[str]
) -> Words:
    """Starts a node detached; prints its id and start. ``places``: working directory, log, record of how it ended.

    ``token`` marks its processes, for :func:`end_all`.
    """
    assignments = [f"{name}={value}" for name, value in {**environment, TOKEN_VARIABLE: token}.items()]
    return ("env", *assignments, "sh", script, "start", *places, *command)


def signal(script: str, identity: tuple[str, str, str], name: str, shows: str, looks: int = LOOKS) -> Words:
    """Signals exactly the process with this id, start and boot, and waits until its state's letter matches."""
    return ("sh", script, "signal", *identity, name, shows, str(looks))


def end_all(token: str) -> Words:
    """SIGKILL to every process of the node with this token, until there is none; prints their ids. Needs no file."""
    return ("sh", "-c", _END, "end", f"{TOKEN_VARIABLE}={token}", str(END_LIMIT_S))


def nft(machine: Machine, *words: str) -> Words:
    """Speaks to the packet filter, with root's rights where the plan says so; fails where they are not had.

    ``-n``: a sudo that wants a password fails at once instead of waiting for it.
    """
    return (*(("sudo", "-n", "--") if machine.sudo else ()), "nft", *words)

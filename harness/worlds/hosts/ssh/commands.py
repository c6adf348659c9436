"""Builds every command that a machine is given, as words. Only :func:`line` quotes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from harness.plan import Machine
from harness.worlds.hosts.processes import TOKEN_VARIABLE

Words = tuple[str, ...]

#: The script that runs on the machines, copied to a run's directory there.
SCRIPT: Final = Path(__file__).with_name("machine.sh")
#: Looks of a machine, every 20 ms, until a signal shows: five seconds, as on this machine.
LOOKS: Final = 250
#: The same limit for commands that measure the time, because one look may take long.
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
    """One line for the machine's shell; words are quoted where needed."""
    return shlex.join(words)


def harness_address() -> Words:
    """Prints the harness's address and port, then the machine's, as the machine sees this connection."""
    return ("printenv", "SSH_CONNECTION")


def java_version(machine: Machine) -> Words:
    """Prints Java's version (on standard error)."""
    return (machine.java, "-version")


def make_directories(*paths: str) -> Words:
    """Makes private directories; missing ones above them get the user's usual rights."""
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
    """Starts a node detached; prints its id and start. ``places``: its working directory, its log, its exit record.

    ``token`` marks its processes, for :func:`end_all`.
    """
    assignments = [f"{name}={value}" for name, value in {**environment, TOKEN_VARIABLE: token}.items()]
    return ("env", *assignments, "sh", script, "start", *places, *command)


def signal(script: str, identity: tuple[str, str, str], name: str, shows: str, looks: int = LOOKS) -> Words:
    """Signals exactly the process with this id, start and boot, and waits until its state's letter matches."""
    return ("sh", script, "signal", *identity, name, shows, str(looks))


def end_all(token: str) -> Words:
    """Kills every process of the node with this token, until none is left; prints their ids. Needs no file."""
    return ("sh", "-c", _END, "end", f"{TOKEN_VARIABLE}={token}", str(END_LIMIT_S))


def nft(machine: Machine, *words: str) -> Words:
    """Runs ``nft``, with root's rights where the plan says so; fails where the user does not have them.

    ``-n``: a sudo that wants a password fails at once instead of waiting for it.
    """
    return (*(("sudo", "-n", "--") if machine.sudo else ()), "nft", *words)

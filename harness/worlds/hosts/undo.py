"""Undoes the actions of a journal, by kind. An action whose effect is gone already needs no undoing.

================  ==========================================  ==============================================
kind              facts                                       undone by
================  ==========================================  ==============================================
``process``       token, node, command; then pid,             SIGKILL to that very process, else to all that
                  start_ticks, boot_id                        carry the token
``frozen``        pid, start_ticks, boot_id                   SIGCONT to that very process
``cut``           link                                        nothing: it ended with its nodes' processes, or
                                                              their namespaces (in journals until 0.2)
``namespace``     name, boot_id                               ``ip netns delete``
``link``          name, boot_id                               ``ip link delete``
``table``         name, boot_id                               ``nft delete table inet``
``directory``     path                                        removing it
``disk``          place, image                                an ordinary directory with the same files
``ssh-...``       machine, ...                                see :mod:`harness.worlds.hosts.ssh.undo`
``slow-device``   device, file, boot_id                       lifting the limit on writes to the device
``slow-group``    group, boot_id                              moving its processes out, and removing it
``operator-...``  act, node, token, undo, ...                 see :mod:`harness.worlds.hosts.operator_commands`
``topic``         name, bootstrap, security; then topic_id    see :mod:`harness.worlds.kafka.own_topic`; not undone here
================  ==========================================  ==============================================
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from harness.ground.errors import HostError, NotUndoneError
from harness.records.journal import Facts, Journal, PendingUndo, not_undone
from harness.worlds.hosts import disk_speed
from harness.worlds.hosts.cut_links import TABLE
from harness.worlds.hosts.disks import keep_files
from harness.worlds.hosts.operator_commands import KIND as OPERATOR_COMMAND
from harness.worlds.hosts.operator_commands import undo_command
from harness.worlds.hosts.processes import NAME_PREFIX, Identity, attempt, boot_id, end, marked_with
from workloads import in_toml, reason_of


def undo_here(journal: Journal) -> list[str]:
    """Undo what is left on this machine; otherwise as :func:`undo_kinds`."""
    return undo_kinds(journal, _UNDO, lambda action: _UNDO[action.kind](action.facts))


def undo_kinds(journal: Journal, kinds: Collection[str], undo: Callable[[PendingUndo], list[str]]) -> list[str]:
    """Undo the actions of these kinds by ``undo``, newest first; other kinds stay in the journal.

    ``undo`` answers what was still there, and so does this.

    Raises:
        NotUndoneError: an action could not be undone or not be understood, and stays in the journal; all others were
            undone.
    """
    undone: list[str] = []
    left: list[str] = []
    for action in reversed(not_undone(journal.path)):
        if action.kind not in kinds:
            continue
        try:
            undone += [f"{action.kind} {what}" for what in undo(action)]
        except (KeyError, TypeError, ValueError, msgspec.ValidationError):
            left.append(f"{action.kind} {in_toml(action.facts)} is not an action that a harness writes")
        except (OSError, subprocess.TimeoutExpired, HostError) as error:
            left.append(f"{action.kind} {in_toml(action.facts)} is still there ({reason_of(error)})")
        else:
            journal.done(action.entry)
    if left:
        raise NotUndoneError(left, undone)
    return undone


def _end_process(facts: Facts) -> list[str]:
    identity = _identity(facts)
    processes = marked_with(str(facts["token"])) if identity is None else [identity]
    killed = [process for process in processes if end(process)]
    if alive := [process.pid for process in killed if process.is_alive()]:
        raise HostError(f"processes {', '.join(map(str, alive))} are still running after SIGKILL")
    return [f"{process.pid} (node {facts.get('node')})" for process in killed]


def _thaw(facts: Facts) -> list[str]:
    identity = _identity(facts)
    if identity is None or not identity.is_alive():
        return []
    try:
        os.kill(identity.pid, signal.SIGCONT)
    except ProcessLookupError:
        return []
    return [str(identity.pid)]


def _identity(facts: Facts) -> Identity | None:
    if "pid" not in facts:
        return None
    return Identity(int(facts["pid"]), int(facts["start_ticks"]), str(facts["boot_id"]))


def _delete_with_ip(words: list[str], where: Path, facts: Facts) -> list[str]:
    name = str(facts["name"])
    # Nothing of this kind outlives a boot, and after it the name may belong to something else.
    if not name.startswith(NAME_PREFIX) or facts["boot_id"] != boot_id() or not (where / name).exists():
        return []
    done = attempt(["ip", *words, name])
    if (where / name).exists():
        raise HostError(done.stderr.strip() or f"ip {' '.join(words)} did nothing")
    return [name]


def _delete_table(facts: Facts) -> list[str]:
    name = str(facts["name"])
    if not name.startswith(f"{TABLE}_") or facts["boot_id"] != boot_id():
        return []
    return [name] if attempt(["nft", "delete", "table", "inet", name]).returncode == 0 else []


def _remove_directory(facts: Facts) -> list[str]:
    path = Path(str(facts["path"]))
    if not path.name.startswith(NAME_PREFIX) or not path.is_dir():
        return []
    shutil.rmtree(path)
    return [str(path)]


_UNDO: Final[Mapping[str, Callable[[Facts], list[str]]]] = {
    "process": _end_process,
    "frozen": _thaw,
    "cut": lambda _: [],
    "namespace": partial(_delete_with_ip, ["netns", "delete"], Path("/run/netns")),
    "link": partial(_delete_with_ip, ["link", "delete"], Path("/sys/class/net")),
    "table": _delete_table,
    "directory": _remove_directory,
    "disk": keep_files,
    OPERATOR_COMMAND: undo_command,
    **disk_speed.UNDO,
}

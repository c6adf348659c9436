"""Undoing of the actions of a journal, by kind. Undoing something that is gone already is nothing.

================  ==========================================  ==============================================
kind              facts                                       undone by
================  ==========================================  ==============================================
``process``       token, node, command; then pid,             SIGKILL to that very process, else to all that
                  start_ticks, boot_id                        carry the token
``frozen``        pid, start_ticks, boot_id                   SIGCONT to that very process
``cut``           links                                       nothing: a cut ends with its nodes' processes
                                                              or with their namespaces
``namespace``     name, boot_id                               ``ip netns delete``
``link``          name, boot_id                               ``ip link delete``
``directory``     path                                        removing it
``disk``          place, image                                an ordinary directory with the same files
``ssh-...``       machine, ...                                see :mod:`harness.hosts.ssh.undo`
``slow-device``   device, file, boot_id                       lifting the limit on writes to the device
``slow-group``    group, boot_id                              moving its processes out, and removing it
``topic``         name, bootstrap, security; then topic_id    see :mod:`harness.worlds.kafka.own_topic`; not undone here
================  ==========================================  ==============================================
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from harness.errors import HostError, NotUndoneError
from harness.hosts.disk_speed import disband, lift
from harness.hosts.disks import keep_files
from harness.hosts.processes import NAME_PREFIX, Identity, attempt, boot_id, end, marked_with
from harness.records.journal import Journal, Undo, not_undone


def undo_here(journal: Journal) -> list[str]:
    """Undo what stands on this machine; otherwise as :func:`undo_kinds`."""
    return undo_kinds(journal, _UNDO, lambda action: _UNDO[action.kind](action))


def undo_kinds(journal: Journal, kinds: Collection[str], undo: Callable[[Undo], list[str]]) -> list[str]:
    """Undo what stands in this journal of these kinds, newest first, one action after the other by ``undo``.

    ``undo`` answers what really was still there, and so does this. Other kinds stay in the journal.

    Raises:
        NotUndoneError: something is still there, or says what no harness writes, and stays in the journal; everything
            else was undone.
    """
    undone: list[str] = []
    left: list[str] = []
    for action in reversed(not_undone(journal.path)):
        if action.kind not in kinds:
            continue
        try:
            undone += [f"{action.kind} {what}" for what in undo(action)]
        except (KeyError, TypeError, ValueError) as error:
            left.append(f"{action.kind} {action.facts} is nothing that a harness writes ({error!r})")
        except (OSError, subprocess.TimeoutExpired, HostError) as error:
            left.append(f"{action.kind} {action.facts} is still there ({error})")
        else:
            journal.done(action.entry)
    if left:
        raise NotUndoneError(left, undone)
    return undone


def _end_process(action: Undo) -> list[str]:
    identity = _identity(action)
    found = marked_with(str(action.facts["token"])) if identity is None else [identity]
    ended = [who for who in found if end(who)]
    if alive := [who.pid for who in ended if who.is_alive()]:
        raise HostError(f"processes {alive} do not end")
    return [f"{who.pid} (node {action.facts.get('node')})" for who in ended]


def _thaw(action: Undo) -> list[str]:
    identity = _identity(action)
    if identity is None or not identity.is_alive():
        return []
    try:
        os.kill(identity.pid, signal.SIGCONT)
    except ProcessLookupError:
        return []
    return [str(identity.pid)]


def _identity(action: Undo) -> Identity | None:
    if "pid" not in action.facts:
        return None
    return Identity(int(action.facts["pid"]), int(action.facts["start_ticks"]), str(action.facts["boot_id"]))


def _delete_namespace(action: Undo) -> list[str]:
    return _delete_with_ip(action, ["netns", "delete"], Path("/run/netns"))


def _delete_link(action: Undo) -> list[str]:
    return _delete_with_ip(action, ["link", "delete"], Path("/sys/class/net"))


def _delete_with_ip(action: Undo, words: list[str], where: Path) -> list[str]:
    name = str(action.facts["name"])
    # Nothing of this kind outlives a boot, and after it the name may be somebody else's.
    if not name.startswith(NAME_PREFIX) or action.facts["boot_id"] != boot_id() or not (where / name).exists():
        return []
    done = attempt(["ip", *words, name])
    if (where / name).exists():
        raise HostError(done.stderr.strip() or f"ip {' '.join(words)} did nothing")
    return [name]


def _remove_directory(action: Undo) -> list[str]:
    path = Path(str(action.facts["path"]))
    if not path.name.startswith(NAME_PREFIX) or not path.is_dir():
        return []
    shutil.rmtree(path)
    return [str(path)]


def _keep_files(action: Undo) -> list[str]:
    place, image = Path(str(action.facts["place"])), Path(str(action.facts["image"]))
    return [str(place)] if image.name.startswith(NAME_PREFIX) and keep_files(place, image) else []


def _lift_limit(action: Undo) -> list[str]:
    device, file = str(action.facts["device"]), Path(str(action.facts["file"]))
    here = action.facts["boot_id"] == boot_id() and file.is_file()
    return [device] if here and lift(file, device) else []


def _disband_group(action: Undo) -> list[str]:
    group = Path(str(action.facts["group"]))
    here = action.facts["boot_id"] == boot_id() and group.name.startswith(NAME_PREFIX)
    return [str(group)] if here and disband(group) else []


_UNDO: Final[dict[str, Callable[[Undo], list[str]]]] = {
    "process": _end_process,
    "frozen": _thaw,
    "cut": lambda _: [],  # it ended with its nodes
    "namespace": _delete_namespace,
    "link": _delete_link,
    "directory": _remove_directory,
    "disk": _keep_files,
    "slow-device": _lift_limit,
    "slow-group": _disband_group,
}

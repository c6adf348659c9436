"""Undoes what a run left on machines: its host calls it at the end, ``ackproof heal`` after a crash.

=================  ===================================  ===========================================================
kind               facts                                undone by
=================  ===================================  ===========================================================
``ssh-process``    machine, node, token; then pid,      SIGKILL to all whose environment holds the token
                   ticks, boot
``ssh-rules``      machine, node, table                 ``nft delete table``
``ssh-directory``  machine, node, path                  fetching its data and logs, then removing it
=================  ===================================  ===========================================================

``machine`` is a :class:`~harness.plan.Machine`: its address and the path of the key, no secret. Only machines in the
inventory of the run's own ``run.json`` are contacted, and only what has the harness's name is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import msgspec

from harness.ground.errors import HostError, ResultsError
from harness.plan import Machine
from harness.records.files import RUN_FILE
from harness.records.journal import Journal, PendingUndo
from harness.records.run_record import recorded_world
from harness.worlds.hosts.ssh import commands
from harness.worlds.hosts.ssh.connecting import over_ssh
from harness.worlds.hosts.ssh.shell import Connect, Shell, must
from harness.worlds.hosts.undo import undo_kinds

#: Every directory and table of a run on a machine begins so.
PREFIX: Final = "ackproof"
#: The directories of a run that are fetched from a machine.
KEPT: Final = ("data", "logs")


def allowed_machine(run: Path, machine: Machine) -> Machine:
    """``machine``, which a journal names, if it is in the inventory of the run in directory ``run``.

    Raises:
        HostError: it is not, or the run's plan cannot be read: a journal alone opens no connection.
    """
    try:
        inventory = recorded_world(run).machines
    except ResultsError as error:
        raise HostError(f"{run / RUN_FILE} does not name the machines that this run may touch ({error})") from error
    if machine not in inventory:
        raise HostError(
            f"{machine.name} is in the journal but not in the inventory of {run / RUN_FILE}, so it was not contacted"
        )
    return machine


def undo_machines(journal: Journal, connect: Connect | None = None) -> list[str]:
    """Undo what is left on machines, a connection each; otherwise as :func:`harness.worlds.hosts.undo.undo_kinds`.

    ``connect`` gives the shell on the machine that an action names. Without it a connection is made over SSH, if the
    machine is in the run's inventory.
    """
    run = journal.path.parent
    shells: dict[Machine, Shell] = {}

    def undo(action: PendingUndo) -> list[str]:
        machine = msgspec.convert(action.facts["machine"], Machine)
        if machine not in shells:
            shells[machine] = connect(machine) if connect is not None else over_ssh(allowed_machine(run, machine))
        return UNDO[action.kind](shells[machine], action.facts, run)

    try:
        return undo_kinds(journal, UNDO, undo)
    finally:
        for shell in shells.values():
            shell.close()


def end_processes(shell: Shell, facts: Mapping[str, Any], _run: Path) -> list[str]:
    """Kill every process of one node of a run, also those whose parents have ended."""
    ended = must(shell, commands.end_all(str(facts["token"]))).split()
    return [f"{pid} (node {facts['node']}, {shell.machine.name})" for pid in ended]


def remove_rules(shell: Shell, facts: Mapping[str, Any], _run: Path) -> list[str]:
    """Remove a run's table of rules, if it exists."""
    table = str(facts["table"])
    tables = commands.nft(shell.machine, "list", "tables", "ip")
    if not table.startswith(PREFIX) or table not in must(shell, tables).split():
        return []
    must(shell, commands.nft(shell.machine, "delete", "table", "ip", table))
    return [f"{table} (node {facts['node']}, {shell.machine.name})"]


def remove_directory(shell: Shell, facts: Mapping[str, Any], run: Path) -> list[str]:
    """Fetch the data and logs in a run's directory, and remove it, if it exists."""
    path = PurePosixPath(str(facts["path"]))
    if not path.name.startswith(PREFIX) or str(path.parent) != runs_directory(shell.machine):
        return []
    if path.name not in run_names(shell):
        return []
    names = must(shell, commands.list_directory(str(path))).split()
    if kept := [name for name in KEPT if name in names]:  # a run that died early may lack some
        shell.fetch(str(path), kept, run)
    must(shell, commands.remove_tree(str(path)))
    return [f"{path} (node {facts['node']}, {shell.machine.name})"]


def runs_directory(machine: Machine) -> str:
    """The directory on a machine in which every run has its own."""
    return f"{machine.directory}/runs"


def run_names(shell: Shell) -> list[str]:
    """The names of the runs that have a directory on the machine now."""
    runs = runs_directory(shell.machine)
    must(shell, commands.make_directories(shell.machine.directory, runs))
    return must(shell, commands.list_directory(runs)).split()


UNDO: Final[Mapping[str, Callable[[Shell, Mapping[str, Any], Path], list[str]]]] = {
    "ssh-process": end_processes,
    "ssh-rules": remove_rules,
    "ssh-directory": remove_directory,
}

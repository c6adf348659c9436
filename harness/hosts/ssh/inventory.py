"""The machines of a plan, as data. Nothing else is ever spoken to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from harness.errors import HostError

KNOWN_HOSTS: Final = "~/.ssh/known_hosts"
DIRECTORY: Final = "/var/tmp/ackproof"  # noqa: S108 - a place on other machines, where runs get directories of their own


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine, which carries one node.

    Attributes:
        node: the broker's number, or the controller's (:data:`nemesis.cluster.CONTROLLER`).
        address: a name or an IPv4 address, at which the other nodes and the clients reach it too.
        port, user: of its SSH server.
        key: the private key's file; empty: the keys of the SSH agent.
        fingerprint: its host key's, as ``ssh-keygen -l`` writes it (SHA256:...); empty: ``known_hosts`` decides.
        known_hosts: the file in which its host key must stand.
        sudo: whether nftables needs ``sudo -n``.
        directory: where everything of the harness stands on it.
        broker_port: where its node listens.
        java: its Java program.
    """

    node: int
    address: str
    user: str
    port: int = 22
    key: str = ""
    fingerprint: str = ""
    known_hosts: str = KNOWN_HOSTS
    sudo: bool = False
    directory: str = DIRECTORY
    broker_port: int = 9_092
    java: str = "java"

    @property
    def name(self) -> str:
        """How sentences call it: ``ackproof@10.0.0.11``, with the port where it is not the usual one."""
        return f"{self.user}@{self.address}" + ("" if self.port == 22 else f":{self.port}")


class _RunMachines(msgspec.Struct, frozen=True):
    """What this module reads of ``run.json``."""

    machines: tuple[Machine, ...] = ()


def allowed_machine(run: Path, machine: Machine) -> Machine:
    """``machine``, which a journal names, if it is in the inventory of the run in directory ``run``.

    Raises:
        HostError: it is not, or the run's plan cannot be read: a journal alone opens no connection.
    """
    try:
        inventory = msgspec.json.decode((run / "run.json").read_bytes(), type=_RunMachines)
    except (OSError, msgspec.DecodeError) as error:
        raise HostError(f"{run / 'run.json'} does not tell which machines this run may touch ({error})") from error
    if machine not in inventory.machines:
        raise HostError(f"{machine.name} is in the journal but not in the inventory of {run / 'run.json'}")
    return machine

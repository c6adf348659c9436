"""The way to a machine, chosen before the library that goes it is loaded."""

from __future__ import annotations

from harness.hosts.ssh.shell import Shell
from harness.plan import Machine


def over_ssh(machine: Machine) -> Shell:
    """Give a connection, which is made at its first need. Loading paramiko takes a fifth of a second."""
    from harness.hosts.ssh.connection import Connection  # noqa: PLC0415

    return Connection(machine)

"""Gives connections to machines, and loads the SSH library only when one is needed."""

from __future__ import annotations

from harness.plan import Machine
from harness.worlds.hosts.ssh.shell import Shell


def over_ssh(machine: Machine) -> Shell:
    """A connection that is made when it is first used. Loading paramiko takes a fifth of a second."""
    from harness.worlds.hosts.ssh.connection import Connection  # noqa: PLC0415

    return Connection(machine)

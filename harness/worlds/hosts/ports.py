"""Allocates the ports at which the harness, its nodes and its tests listen.

A port is held by a socket that is bound to it and never listens. The kernel then gives it to no other process: not to
another allocator, and not to a program that asks for any free port. The server that it is for may still listen on it,
as often as it is started again, because both sockets set SO_REUSEADDR, as servers do. The kernel ends the hold together
with its process, however that ends.

The ports are outside the kernel's ephemeral range. Outgoing connections get theirs from that range, and so do programs
that let the kernel choose and keep what they got, as Spark's driver does.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from harness.ground.errors import PortError
from harness.worlds.hosts.contract import Address

#: The first port that is tried; above the ports of well-known services.
FIRST_PORT: Final = 19_092
#: A program that asks for exactly this port and sets SO_REUSEADDR takes it before its server; others are tried then.
PORT_CHOICES: Final = 3
#: The words of programs, Java among them, for the error of a port that is taken.
ADDRESS_TAKEN: Final = os.strerror(errno.EADDRINUSE)
_FIRST_UNPRIVILEGED: Final = 1_024
_LAST_PORT: Final = 65_535
_EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class Ports:
    """Ports that no other process is given until :meth:`close`, at the latest until this process ends."""

    def __init__(self) -> None:
        self._holds: list[socket.socket] = []

    def take(self, host: str) -> Address:
        """An address of ``host`` with a port of its own, where a server can listen.

        Raises:
            PortError: the host has none left, or is no address of this machine.
        """
        reason = ""
        for port in candidates():
            hold = socket.socket()
            try:
                # Without SO_REUSEADDR, so that the kernel refuses a port that any other socket has, listening or not.
                hold.bind((host, port))
            except OSError as error:
                hold.close()
                reason = str(error.strerror)
            else:
                hold.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                self._holds.append(hold)
                return Address(host, port)
        raise PortError(f"no port of {host} is free ({reason}); stop the programs that hold them")

    def close(self) -> None:
        """Give all of them back. Idempotent."""
        while self._holds:
            self._holds.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def candidates() -> Iterator[int]:
    """The ports outside the ephemeral range in the order in which they are tried; all ports where none is outside."""
    low, high = map(int, _EPHEMERAL.read_text().split())
    every = (*range(FIRST_PORT, _LAST_PORT + 1), *range(_FIRST_UNPRIVILEGED, FIRST_PORT))
    outside = [port for port in every if not low <= port <= high]
    return iter(outside or every)

"""Connections that a relay has between clients and brokers: pairs of sockets, and the frames that go through them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

HOST: Final = "127.0.0.1"


def relayed(listener: socket.socket, server_address: tuple[str, int]) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Each client's connection with one to the server, until the listener is closed."""
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(server_address)
            except OSError:
                client.close()
                continue
            for connection in (client, server):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield client, server


def frames(source: socket.socket, other: socket.socket) -> Iterator[bytes]:
    """The bytes from ``source``, frame by frame; ``other`` ends with it."""
    try:
        with source.makefile("rb") as stream:
            while len(length := stream.read(4)) == 4:
                yield stream.read(int.from_bytes(length, "big"))
    except (OSError, ValueError):
        pass
    break_off(other)


def send_frame(target: socket.socket, frame: bytes) -> None:
    """Send a frame, with its length before it; nothing where the connection has ended."""
    with suppress(OSError):
        target.sendall(len(frame).to_bytes(4, "big") + frame)


def break_off(connection: socket.socket) -> None:
    """End a connection both ways; reads of it end. A second time does nothing."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

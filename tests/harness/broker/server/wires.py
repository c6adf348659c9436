"""The socket side of a connection, for tests without sockets."""

from __future__ import annotations

import asyncio


class Wire(asyncio.Transport):
    """The acts of a connection on its socket."""

    def __init__(self):
        super().__init__()
        self.sent = b""
        self.reading = True
        self.closed = False
        self.unsent = 0

    def write(self, data):
        self.sent += data

    def writelines(self, pieces):
        self.sent += b"".join(pieces)

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self.closed

    def abort(self):
        self.closed = True


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body

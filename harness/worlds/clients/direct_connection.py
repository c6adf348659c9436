"""A connection to one broker, for requests that no client library makes by itself, or not to a broker of our choice.

The protocol's classes are kafka-python's own (a pinned release).
"""

from __future__ import annotations

import socket
import time
from collections import deque
from typing import Any, Final, Self

from kafka.protocol.parser import KafkaProtocol

_READ_BYTES: Final = 1 << 16


class DirectConnection:
    """Sends requests to the broker at ``address``, "host" and "port", and waits for the answers in their order.

    A broker begins with the next request of a connection when it has answered the one before.

    Raises:
        OSError: the broker does not listen within ``limit_s``, or it closed the connection.
        KafkaError: what it answers is no answer to what was asked.
    """

    def __init__(self, address: tuple[str, int], client_id: str, limit_s: float) -> None:
        self._protocol: Any = KafkaProtocol(client_id=client_id)
        self._socket = socket.create_connection(address, limit_s)
        self._limit_s = limit_s
        self._answers: deque[Any] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """The socket's number: ``select`` tells whether an answer begins to arrive."""
        return self._socket.fileno()

    def send(self, request: Any) -> None:
        """Send a request without waiting for its answer."""
        self._protocol.send_request(request)
        self._socket.settimeout(self._limit_s)
        self._socket.sendall(self._protocol.send_bytes())

    def answer(self, limit_s: float) -> Any:
        """The answer to the oldest request that has none yet.

        Raises:
            TimeoutError: it did not come within ``limit_s``.
        """
        until = time.monotonic() + limit_s
        while not self._answers:
            self._socket.settimeout(max(until - time.monotonic(), 0.001))
            if not (data := self._socket.recv(_READ_BYTES)):
                raise ConnectionResetError("the broker closed the connection")
            self._answers += [response for _, response in self._protocol.receive_bytes(data)]
        return self._answers.popleft()

    def ask(self, request: Any) -> Any:
        """The answer to a request, within the limit of the connection."""
        self.send(request)
        return self.answer(self._limit_s)

    def close(self) -> None:
        """Hang up. Idempotent."""
        self._socket.close()

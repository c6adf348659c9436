"""Asks nodes over their Unix control sockets: each request and each answer is a JSON object on one line.

The control sockets are not part of the network under test: faults do not reach them, so they report and carry the cuts
even while every link is down.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

#: An answer larger than this is refused: a cluster's image is some kilobytes.
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024


class NodeCall:
    """One request under way. Made apart from its answer, so that many nodes are asked at the same time."""

    def __init__(self, path: str, request: Mapping[str, Any], limit_s: float) -> None:
        """Send the request.

        Raises:
            OSError: the node does not listen, or cannot take a request within ``limit_s`` seconds.
        """
        self._deadline = time.monotonic() + limit_s
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(limit_s)
            self._socket.connect(path)
            self._socket.sendall(msgspec.json.encode(request) + b"\n")
        except OSError:
            self._socket.close()
            raise

    def answer(self) -> dict[str, Any]:
        """Wait for the answer, at most until the call's limit, and hang up.

        Raises:
            OSError: no whole answer in time.
        """
        try:
            return _decoded(self._line())
        finally:
            self._socket.close()

    def _line(self) -> bytes:
        received = bytearray()
        while not received.endswith(b"\n"):
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or len(received) > ANSWER_BYTES_MAX:
                raise TimeoutError("no whole answer within the limit")
            self._socket.settimeout(left_s)
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise ConnectionResetError("the node hung up")
            received += chunk
        return bytes(received)


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ConnectionResetError(f"the node answered with no JSON object: {error}") from error


def ask(paths: Mapping[int, str], request: Mapping[str, Any], limit_s: float) -> dict[int, dict[str, Any]]:
    """Put one request to several nodes at the same time; those that are silent for ``limit_s`` are left out."""
    calls: dict[int, NodeCall] = {}
    for node, path in paths.items():
        try:
            calls[node] = NodeCall(path, request, limit_s)
        except OSError:
            continue
    answers: dict[int, dict[str, Any]] = {}
    for node, call in calls.items():
        try:
            answers[node] = call.answer()
        except OSError:
            continue
    return answers

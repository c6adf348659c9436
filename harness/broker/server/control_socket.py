"""The socket by which the harness steers a node: a Unix-domain socket, one JSON object a line in each direction.

``{"op":"cut","links":[[0,1]]}`` and ``{"op":"heal","links":[[0,1]]}`` concern directed links, ``{"op":"status"}`` asks
what the node knows, ``{"op":"stop"}`` ends it cleanly. ``{"op":"move","partition":"t-0","leader":2}`` has the
controller move a leadership, as an operator would. An answer is ``{"ok":true,...}`` or
``{"ok":false,"error":"..."}``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from harness.broker.core.types import NO_NODE, Image, NodeId
from harness.broker.server.links import NodeLinks
from workloads import LogPartition

LINE_BYTES: Final = 1_048_576


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the harness."""

    op: Literal["cut", "heal", "status", "move", "stop"]
    links: tuple[tuple[NodeId, NodeId], ...] = ()
    partition: str = ""
    leader: NodeId = NO_NODE


class Steered(Protocol):
    """A node's inside, as far as it is steered."""

    def status(self) -> dict[str, Any]:
        """Its state, as JSON."""
        ...

    def move_leader(self, partition: str, leader: NodeId) -> str:
        """Move the leadership of ``partition`` ("topic-number"); returns why that is impossible, "" if it was done."""
        ...


class ControlSocket:
    """Listens at ``path`` from :meth:`open` to :meth:`close`."""

    def __init__(self, path: Path, node: NodeId, links: NodeLinks, inside: Steered, stop: Callable[[], None]) -> None:
        self._path = path
        self._node = node
        self._links = links
        self._inside = inside
        self._stop = stop
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen; a socket that a killed predecessor left is replaced."""
        self._path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._talk, str(self._path), limit=LINE_BYTES)

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()
        self._path.unlink(missing_ok=True)

    def answer(self, line: bytes) -> dict[str, Any]:
        """Do what one line asks for; everything has taken effect when this returns."""
        try:
            command = msgspec.json.decode(line, type=Command)
        except msgspec.MsgspecError as error:
            return {"ok": False, "error": f"not a command: {error}"}
        if command.op == "cut":
            self._links.cut(command.links)
        elif command.op == "stop":
            self._stop()
        elif command.op == "move" and (why_not := self._inside.move_leader(command.partition, command.leader)):
            return {"ok": False, "error": why_not}
        healed = self._links.heal(command.links) if command.op == "heal" else None
        answer: dict[str, Any] = {"ok": True, "node": self._node}
        answer["links"] = self._links.held() if healed is None else healed
        if command.op == "status":
            answer.update(self._inside.status())
        return answer

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(msgspec.json.encode(self.answer(line)) + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            pass  # The harness went away, or sent a line beyond all measure.
        finally:
            writer.close()


def describe_image(image: Image) -> dict[str, Any]:
    """An image in the form of the control socket: brokers by number, partitions by "topic-number"."""
    return {
        "version": image.version,
        "brokers": {str(node): broker for node, broker in image.brokers.items()},
        "topics": {name: topic.config for name, topic in image.topics.items()},
        "partitions": {
            str(LogPartition(name, index)): state
            for name, topic in image.topics.items()
            for index, state in enumerate(topic.partitions)
        },
    }

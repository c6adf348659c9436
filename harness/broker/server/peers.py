"""Connections that this node opens: to the controller, and to brokers that lead.

Both connect when there is something to send and drop it if they cannot; the core asks again by itself. What is sent
while a connection is being made waits for it, up to :data:`WAITING`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from harness.broker.core.messages import Message
from harness.broker.core.types import NodeId
from harness.broker.server.codec.controller_frames import Hello, decode, encode
from harness.broker.server.codec.follower import LeaderRequest, decode_response, encode_request
from harness.broker.server.codec.wire import TopicIds
from harness.broker.server.links import BROKER_CLIENT_ID, BadFrameError, FramedConnection, NodeLinks

log = logging.getLogger(__name__)

#: Frames that wait for a connection. The core has a handful of requests under way at each peer.
WAITING: Final = 256
CONNECT_TIMEOUT_S: Final = 1.0
Address = tuple[str, int]


class Outgoing:
    """One outgoing connection, made on demand. ``lost`` is called when it breaks or cannot be made."""

    def __init__(
        self,
        links: NodeLinks,
        peer: NodeId,
        receive: Callable[[memoryview], None],
        lost: Callable[[], None],
        first: bytes = b"",
    ) -> None:
        self._links = links
        self._peer = peer
        self._receive = receive
        self._lost = lost
        self._first = first
        self._address: Address | None = None
        self._connection: FramedConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: list[bytes] = []

    def send(self, address: Address, frame: bytes) -> None:
        """Send ``frame`` to ``address``, maybe never."""
        if address != self._address:
            self.close()
            self._address = address
        if self._connection is not None and self._connection.open:
            self._connection.send(frame)
        elif len(self._waiting) < WAITING and self._links.outbound_cut(self._peer) is None:
            self._waiting.append(frame)
            if self._connecting is None:
                self._connecting = asyncio.get_running_loop().create_task(self._connect(address))

    def close(self) -> None:
        """Forget the connection and what waits for it."""
        self._waiting.clear()
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        if self._connection is not None:
            self._connection.close("not needed any more")
            self._connection = None

    async def _connect(self, address: Address) -> None:
        connection = FramedConnection(self._links, self._on_frame, peer=self._peer, closed=self._on_closed)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.create_connection(lambda: connection, *address)
        except OSError as error:  # a timeout is one
            log.debug("no connection to %s at %s: %s", self._peer, address, error)
            self._connecting = None
            self._waiting.clear()
            self._lost()
            return
        self._connecting = None
        self._connection = connection
        waiting, self._waiting = self._waiting, []
        for frame in ([self._first] if self._first else []) + waiting:
            connection.send(frame)

    def _on_frame(self, connection: FramedConnection, frame: memoryview) -> None:
        if connection is self._connection:
            self._receive(frame)

    def _on_closed(self, connection: FramedConnection) -> None:
        if connection is self._connection:
            self._connection = None
            self._lost()


class ControllerLink:
    """This broker's connection to the controller. ``lost`` is called when it broke."""

    def __init__(
        self,
        links: NodeLinks,
        node: NodeId,
        controller: NodeId,
        address: Address,
        *,
        deliver: Callable[[Message], None],
        lost: Callable[[], None],
    ) -> None:
        self._address = address
        self._deliver = deliver
        self._outgoing = Outgoing(links, controller, self._on_frame, lost, encode(Hello(node)))

    def send(self, message: Message) -> None:
        """Send to the controller, maybe never."""
        self._outgoing.send(self._address, encode(message))

    def _on_frame(self, frame: memoryview) -> None:
        message = decode(frame)
        if isinstance(message, Hello):
            raise BadFrameError("the controller introduced itself")
        self._deliver(message)


class LeaderLink:
    """This broker's connection to one that it follows, or has markers written by. ``lost`` is called when it broke."""

    def __init__(
        self,
        links: NodeLinks,
        node: NodeId,
        peer: NodeId,
        ids: TopicIds,
        *,
        deliver: Callable[[NodeId, Message], None],
        lost: Callable[[NodeId], None],
    ) -> None:
        self._peer = peer
        self._ids = ids
        self._client_id = f"{BROKER_CLIENT_ID}{node}"
        self._deliver = deliver
        self._lost = lost
        self._correlation = 0
        self._under_way: dict[int, LeaderRequest] = {}
        self._outgoing = Outgoing(links, peer, self._on_frame, self._on_lost)

    def send(self, address: Address, request: LeaderRequest) -> None:
        """Send a request, maybe never."""
        if len(self._under_way) >= WAITING:  # Nothing has been answered for very long.
            self._outgoing.close()
            self._under_way.clear()
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        self._under_way[self._correlation] = request
        self._outgoing.send(address, encode_request(request, self._correlation, self._client_id, self._ids))

    def _on_frame(self, frame: memoryview) -> None:
        request = self._under_way.pop(int.from_bytes(frame[:4], "big"), None)
        if request is None:
            raise BadFrameError("an answer to nothing that was asked")
        self._deliver(self._peer, decode_response(request, frame[4:], self._ids))

    def _on_lost(self) -> None:
        self._under_way.clear()
        self._lost(self._peer)

"""Connections that know who is at the other end, and cuts of directed links without root.

A frame is a four-byte length and that many bytes, in Kafka's protocol as between brokers and controller. Peers are
numbers as in :mod:`nemesis.cluster`: brokers from 0, the controller 100, harness clients from 1001, all others from
:data:`ANONYMOUS`. A cut of (source, target) is enforced at both ends that have the node in it:

* the target stops delivering frames from that peer and stops reading its sockets, so bytes wait in the kernel, as TCP
  would keep sending them again;
* the source holds what it would write, up to :data:`HELD_BYTES`; beyond that the connection is dropped.

After healing, what was held flows in order. Connections of a cut peer are accepted but nothing of them is delivered.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import termios
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from harness.broker.core.types import NodeId
from nemesis.cluster import CLIENTS, link_name

log = logging.getLogger(__name__)

#: The number of the first client without a client id of the harness; more than any number of a harness client.
ANONYMOUS: Final = 1_000_000
#: The client ids of brokers and of harness clients: this, and a number.
BROKER_CLIENT_ID: Final = "ackproof-broker-"
HARNESS_CLIENT_ID: Final = "ackproof-client-"
#: Kafka's default of socket.request.max.bytes.
FRAME_BYTES: Final = 104_857_600
#: Bytes that a cut link holds before its connection is dropped: a few large fetch responses, as a socket's buffers
#: would.
HELD_BYTES: Final = 8 * 1024 * 1024
#: Bytes that all connections together keep in memory, both ways, before the one that would exceed it is closed: a
#: hundred clients with the largest requests or answers at the same time, on a machine that runs several brokers.
KEPT_BYTES: Final = 512 * 1024 * 1024
#: Connections that keep less than this are not worth a look at all of them.
LITTLE_BYTES: Final = 1024 * 1024
#: Half of what a process may usually open; the other half is for files.
CONNECTIONS: Final = 500

DirectedLink = tuple[NodeId, NodeId]


class BadFrameError(Exception):
    """A peer sent bytes that cannot be understood; its connection is closed and the text is logged."""


class Held(msgspec.Struct):
    """The count of what one cut kept back: whole frames and bytes at this end."""

    frames: int = 0
    bytes: int = 0


class NodeLinks:
    """All connections of one node and the cuts among them."""

    def __init__(self, node: NodeId) -> None:
        self._node = node
        self._connections: set[FramedConnection] = set()
        self._cut: dict[DirectedLink, Held] = {}
        self._anonymous = ANONYMOUS

    def next_anonymous(self) -> NodeId:
        """A number for a peer without a client id of the harness."""
        self._anonymous += 1
        return NodeId(self._anonymous)

    def inbound_cut(self, peer: NodeId) -> Held | None:
        """The cut that keeps frames of ``peer`` from this node, if any."""
        return self._find(lambda alias: (alias, self._node), peer) if self._cut else None

    def outbound_cut(self, peer: NodeId) -> Held | None:
        """The cut that keeps frames of this node from ``peer``, if any."""
        return self._find(lambda alias: (self._node, alias), peer) if self._cut else None

    def cut(self, links: Collection[DirectedLink]) -> None:
        """Deliver nothing over those of ``links`` that have this node in them. Idempotent."""
        for link in links:
            if self._node in link:
                self._cut.setdefault(link, Held())
        for connection in self._connections:
            connection.apply_cuts()

    def heal(self, links: Collection[DirectedLink]) -> dict[str, Held]:
        """Deliver again, first what was held; what each cut held until now. Idempotent."""
        held = {name: count for name, count in self.held().items() if name in {link_name(link) for link in links}}
        for link in links:
            self._cut.pop(link, None)
        for connection in tuple(self._connections):
            connection.apply_cuts()
        return held

    def held(self) -> dict[str, Held]:
        """Counts of every cut link by "source>target", bytes waiting in the kernel included."""
        counts = {link_name(link): Held(held.frames, held.bytes) for link, held in self._cut.items()}
        for connection in self._connections:
            if connection.peer is None:
                continue
            for link, held in self._cut.items():
                if held is self.inbound_cut(connection.peer):
                    counts[link_name(link)].bytes += connection.waiting_bytes()
        return counts

    def too_much(self) -> bool:
        """True if all connections together keep more than :data:`KEPT_BYTES`."""
        return sum(connection.kept_bytes() for connection in self._connections) > KEPT_BYTES

    def add(self, connection: FramedConnection) -> bool:
        """Take one more connection, if there is room; True if it was taken."""
        if len(self._connections) >= CONNECTIONS:
            return False
        self._connections.add(connection)
        return True

    def discard(self, connection: FramedConnection) -> None:
        """The connection is gone."""
        self._connections.discard(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in tuple(self._connections):
            connection.close("this node stops")

    def _find(self, link: Callable[[NodeId], DirectedLink], peer: NodeId) -> Held | None:
        held = self._cut.get(link(peer))
        return held if held is not None or peer < CLIENTS else self._cut.get(link(NodeId(CLIENTS)))


class FramedConnection(asyncio.Protocol):
    """One connection, cut into frames.

    ``receive`` gets each frame in order. ``identify`` names the peer from its first frame where it is not known before.
    Both may raise :class:`BadFrameError`, which closes the connection. ``closed`` is called once at the end.
    """

    def __init__(
        self,
        links: NodeLinks,
        receive: Callable[[FramedConnection, memoryview], None],
        *,
        peer: NodeId | None = None,
        identify: Callable[[memoryview], NodeId] | None = None,
        closed: Callable[[FramedConnection], None] = lambda _: None,
    ) -> None:
        self.peer = peer
        self._links = links
        self._receive = receive
        self._identify = identify
        self._closed = closed
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._full = False  # the peer does not read what we write
        self._busy = False  # the owner has enough of this peer's requests
        self._delivering = False

    # --- what asyncio calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport, or refuse when there are too many."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        self._transport = transport
        if not self._links.add(self):
            self.close(f"there are {CONNECTIONS} connections already")

    def data_received(self, data: bytes) -> None:
        """Bytes came; deliver the frames that are whole."""
        self._buffer += data
        self._deliver()
        self._bound_memory()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, with whatever was held."""
        del exc
        cut = self._links.inbound_cut(self.peer) if self.peer is not None else None
        if cut is not None:
            cut.bytes += len(self._buffer)
        self._links.discard(self)
        self._transport = None
        self._buffer.clear()
        self._held.clear()
        self._held_bytes = 0
        self._closed(self)

    def pause_writing(self) -> None:
        """The peer is slow: take no more requests from it."""
        self._full = True

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._full = False
        self._deliver()

    # --- what the owner calls --------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The peer's address as Kafka's tools print it, "/" in front; empty where it has none."""
        address = self._transport.get_extra_info("peername") if self._transport else None
        return f"/{address[0]}" if address else ""

    @property
    def open(self) -> bool:
        """True while something can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: bytes) -> None:
        """Send a whole frame, its length included, or hold it while the link is cut."""
        if self._transport is None or self._transport.is_closing():
            return
        cut = self._links.outbound_cut(self.peer) if self.peer is not None else None
        if cut is None:
            self._transport.write(frame)
            self._bound_memory()
            return
        cut.frames += 1
        cut.bytes += len(frame)
        self._held.append(frame)
        self._held_bytes += len(frame)
        if self._held_bytes > HELD_BYTES:
            self.close(f"the cut link holds more than {HELD_BYTES} bytes")
        self._bound_memory()

    def set_busy(self, busy: bool) -> None:
        """While busy, no frame is delivered and the socket is not read."""
        if busy != self._busy:
            self._busy = busy
            self._deliver()

    def apply_cuts(self) -> None:
        """The cuts changed: hold or release."""
        if self.peer is None or self._transport is None:
            return
        if self._held and self._links.outbound_cut(self.peer) is None:
            self._transport.writelines(self._held)
            self._held.clear()
            self._held_bytes = 0
        self._deliver()

    def waiting_bytes(self) -> int:
        """Bytes of this peer that came and were not delivered, those that wait in the kernel included."""
        socket = self._transport.get_extra_info("socket") if self._transport else None
        if socket is None or socket.fileno() < 0:
            return len(self._buffer)
        waiting = array.array("i", [0])
        fcntl.ioctl(socket.fileno(), termios.FIONREAD, waiting)
        return len(self._buffer) + waiting[0]

    def kept_bytes(self) -> int:
        """Bytes in memory for this connection: not delivered yet, held by a cut, or not taken by the peer's socket."""
        unsent = self._transport.get_write_buffer_size() if self._transport is not None else 0
        return len(self._buffer) + self._held_bytes + unsent

    def close(self, reason: str) -> None:
        """Close at once; ``reason`` is logged."""
        if self._transport is not None and not self._transport.is_closing():
            log.info("connection of %s closed: %s", self.peer, reason)
            self._transport.abort()

    # --- inside ----------------------------------------------------------------------------------------------------

    def _bound_memory(self) -> None:
        if self.kept_bytes() > LITTLE_BYTES and self._links.too_much():
            self.close(f"all connections keep more than {KEPT_BYTES} bytes, and this one a share of them")

    def _blocked(self) -> bool:
        if self._busy or self._full:
            return True
        return self.peer is not None and self._links.inbound_cut(self.peer) is not None

    def _deliver(self) -> None:
        if self._delivering:
            return  # the loop below looks again after each frame
        self._delivering = True
        try:
            del self._buffer[: self._deliver_frames()]
        except BadFrameError as error:
            log.warning("bad request from %s: %s", self.peer, error)
            self.close("bad request")
        finally:
            self._delivering = False
        if self._transport is None or self._transport.is_closing():
            return
        if self._blocked():
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _deliver_frames(self) -> int:
        """Deliver the frames that may be delivered, and return the number of their bytes."""
        position, buffer = 0, self._buffer
        while self.open and not self._blocked() and len(buffer) - position >= 4:
            size = int.from_bytes(buffer[position : position + 4], "big", signed=True)
            if not 0 <= size <= FRAME_BYTES:
                raise BadFrameError(f"a frame of {size} bytes; 0 to {FRAME_BYTES} are possible")
            if len(buffer) - position - 4 < size:
                break
            frame = memoryview(bytes(memoryview(buffer)[position + 4 : position + 4 + size]))
            if self.peer is None and self._identify is not None:
                self.peer = self._identify(frame)
                continue  # a cut of this peer is looked at first
            position += 4 + size
            self._receive(self, frame)
        return position

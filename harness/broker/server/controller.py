"""The controller: its core, its file, and the brokers that are connected to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from harness.broker.core.controller import Controller
from harness.broker.core.messages import Message, MetadataUpdate, MoveLeader, TopicResponse
from harness.broker.core.planted import with_bug
from harness.broker.core.types import CONTROLLER, Image, NodeId
from harness.broker.server.codec.controller_frames import Hello, decode, encode
from harness.broker.server.config import NodeConfig
from harness.broker.server.control_socket import describe_image
from harness.broker.server.handlers.gateway import Gateway
from harness.broker.server.links import BadFrameError, FramedConnection, NodeLinks
from harness.broker.server.runtime import Runtime
from harness.broker.server.trace import TraceFile
from harness.ground.machine.durable_files import write_durably
from workloads import LogPartition


class DurableState(msgspec.Struct, frozen=True):
    """The state that the controller may never forget."""

    image: Image
    next_producer_id: int


class ControllerServer:
    """One controller process's inside. Its state is on disk before anything that follows from it is sent."""

    def __init__(self, config: NodeConfig, trace: TraceFile, links: NodeLinks) -> None:
        self._links = links
        self._file = Path(config.directory) / "controller-state"
        self._kept = self._read()
        core = with_bug(Controller, config.broker.planted_bug)
        self._core = core(config.broker, self._kept.image, self._kept.next_producer_id)
        self._brokers: dict[NodeId, FramedConnection] = {}
        self._runtime = Runtime(self._core, self._send, trace, self._keep)
        self._gateway = Gateway(self._runtime.deliver)

    def start(self) -> None:
        """Begin to watch over sessions."""
        self._runtime.start()

    def protocol(self) -> asyncio.Protocol:
        """The receiving end of a new connection."""
        return FramedConnection(self._links, self._receive, identify=_introduced, closed=self._on_closed)

    def status(self) -> dict[str, Any]:
        """The controller's image, for the control socket."""
        return {"image": describe_image(self._core.image)}

    def move_leader(self, partition: str, leader: NodeId) -> str:
        """A planned move, as a preferred leader election or a reassignment has; see ``control_socket.Steered``."""
        try:
            topic, index = LogPartition.named(partition)
        except ValueError as error:
            return str(error)
        answers: list[TopicResponse] = []
        self._gateway.ask(CONTROLLER, MoveLeader(0, topic, index, leader), answers.append)
        return answers[0].reason

    async def stop(self) -> None:
        """Nothing has to be saved: everything is."""
        self._runtime.close()

    # --- inside ----------------------------------------------------------------------------------------------------

    def _read(self) -> DurableState:
        if not self._file.exists():
            return DurableState(Image(), 0)
        return msgspec.msgpack.decode(self._file.read_bytes(), type=DurableState)

    def _keep(self) -> None:
        now = DurableState(self._core.image, self._core.next_producer_id)
        if now.image is not self._kept.image or now.next_producer_id != self._kept.next_producer_id:
            write_durably(self._file, msgspec.msgpack.encode(now))
            self._kept = now

    def _receive(self, connection: FramedConnection, frame: memoryview) -> None:
        message = decode(frame)
        peer = connection.peer
        if peer is None:
            raise BadFrameError("a message without a sender")
        if isinstance(message, Hello):
            self._brokers[peer] = connection
        else:
            self._runtime.deliver(peer, message)

    def _send(self, target: NodeId, message: Message) -> None:
        if target == CONTROLLER:  # asked over the control socket
            self._gateway.answered(message)
            return
        connection = self._brokers.get(target)
        # Brokers fetch the metadata (KRaft), so what one was cut off from reaches it as one change, with its heartbeat.
        missed = isinstance(message, MetadataUpdate) and self._links.outbound_cut(target) is not None
        if connection is not None and not missed:
            connection.send(encode(message))

    def _on_closed(self, connection: FramedConnection) -> None:
        if connection.peer is not None and self._brokers.get(connection.peer) is connection:
            del self._brokers[connection.peer]


def _introduced(frame: memoryview) -> NodeId:
    message = decode(frame)
    if not isinstance(message, Hello):
        raise BadFrameError("a connection that does not begin with its peer's number")
    return message.node

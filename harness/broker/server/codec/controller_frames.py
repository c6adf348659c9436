"""The protocol between brokers and the controller: MessagePack in frames, the peer's number first."""

from __future__ import annotations

import msgspec

from harness.broker.core import messages as core
from harness.broker.core.types import NodeId
from harness.broker.server.links import BadFrameError


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first frame of a broker's connection to the controller: who it is."""

    node: NodeId


ControllerMessage = (
    core.RegisterBroker
    | core.RegisterBrokerResponse
    | core.Heartbeat
    | core.HeartbeatResponse
    | core.MetadataUpdate
    | core.AlterPartition
    | core.AlterPartitionResponse
    | core.AllocateProducerIds
    | core.AllocateProducerIdsResponse
    | core.CreateTopic
    | core.DeleteTopic
    | core.MoveLeader
    | core.LogEnd
    | core.LogEndResponse
    | core.TopicResponse
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Hello | ControllerMessage] = msgspec.msgpack.Decoder(Hello | ControllerMessage)


def encode(message: Hello | core.Message) -> bytes:
    """A whole frame."""
    body = _encoder.encode(message)
    return len(body).to_bytes(4, "big") + body


def decode(frame: memoryview) -> Hello | ControllerMessage:
    """The message in ``frame``.

    Raises:
        BadFrameError: it is not such a message.
    """
    try:
        return _decoder.decode(frame)
    except msgspec.MsgspecError as error:
        raise BadFrameError(f"not a message of the controller's protocol: {error}") from error
